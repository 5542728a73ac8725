import { resolve } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { ConfigurationError, ExitCode, MEERKAT_VERSION, ZOOKEEPER_VERSION } from '@meerkat/server/run';
import type { Certificates } from '../up/certificates.ts';
import { COMMANDS_HELP, parseUpCommand, type UpCommand } from '../up/command.ts';
import { countMembers, type Layout, writeLayout } from '../up/layout.ts';
import { LocalEnsemble } from '../up/local-ensemble.ts';
import { choosePorts, type MemberPorts } from '../up/ports.ts';
import { LineScreen, type Screen, TerminalScreen } from '../up/screen.ts';

/** As on the command line. */
export interface UpWords {
  readonly servers: string;
  readonly dir: string;
  readonly port: string;
  readonly tickTime: string;
  readonly tls?: boolean;
  /** `key=value` of zoo.cfg. */
  readonly set: readonly string[];
}

/**
 * `meerkat up`: an ensemble on this machine for development, each server a process of its own, until it is stopped.
 *
 * @returns the code to exit with
 */
export async function up(words: UpWords): Promise<number> {
  const plan = await prepare(words);
  if (typeof plan === 'string') {
    console.error(plan);
    return ExitCode.invocation;
  }
  return new UpRun(plan).run();
}

interface Plan {
  readonly directory: string;
  readonly layout: Layout;
  readonly ports: readonly MemberPorts[];
}

/** Makes everything ready to start. @returns what is wrong, in words, when it cannot be done */
async function prepare({ servers, dir, port, tickTime, tls, set }: UpWords): Promise<Plan | string> {
  const count = parseNumber(servers, 1, SERVERS_MAX);
  if (count === null) return `expected a number of servers from 1 to ${SERVERS_MAX}, found "${servers}"`;
  const first = parseNumber(port, 1, 65_535);
  if (first === null) return `--port: expected a port from 1 to 65535, found "${port}"`;
  const tickTimeMs = parseNumber(tickTime, 20, 60_000);
  if (tickTimeMs === null) return `--tick-time: expected 20 to 60000 milliseconds, found "${tickTime}"`;
  const unread = set.find((setting) => !/^[^=\s]+=[^\r\n]*$/.test(setting));
  if (unread !== undefined) return `--set: expected key=value as in zoo.cfg, found "${unread}"`;
  const directory = resolve(dir);
  try {
    const found = countMembers(directory);
    if (found !== 0 && found !== count) {
      // A majority of another number may leave out servers that know what has been acknowledged.
      return `${directory} has the data of ${found} servers, not of ${count}: run "meerkat up ${found}", give another --dir, or remove it`;
    }
    const ports = await choosePorts(count, first, (taken) => console.log(`port ${taken} is taken, so it is skipped`));
    if (ports === null) return `--port: from ${first} on there are too few free ports for ${count} servers`;
    const layout = await writeLayout(directory, ports, { tickTimeMs, hasTls: tls === true, lines: set });
    return { directory, ports, layout };
  } catch (error) {
    if (error instanceof ConfigurationError) return `--set: ${error.message}`;
    return `cannot use the directory ${directory}: ${(error as Error).message}; give another --dir`;
  }
}

/** More have no place on one machine. */
const SERVERS_MAX = 9;

function parseNumber(text: string, min: number, max: number): number | null {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : null;
}

/** From the start of the servers to their end. */
class UpRun {
  readonly #directory: string;
  readonly #certificates: Certificates | null;
  readonly #ensemble: LocalEnsemble;
  readonly #input: Interface;
  readonly #screen: Screen;
  readonly #end: Promise<number>;
  #resolveEnd: (exitCode: number) => void = () => {};
  #isGreeted = false;
  #isStopping = false;

  constructor({ directory, layout, ports }: Plan) {
    this.#directory = directory;
    this.#certificates = layout.certificates;
    this.#end = new Promise((resolve) => {
      this.#resolveEnd = resolve;
    });
    this.#ensemble = new LocalEnsemble(layout.members, ports, {
      onChanged: () => this.#onChanged(),
      onDied: (id, reason) => this.#onDied(id, reason),
    });
    const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
    const write = (text: string): void => void process.stdout.write(text);
    this.#input = createInterface({
      input: process.stdin,
      prompt: '> ',
      ...(isTerminal ? { output: process.stdout } : { terminal: false }),
    });
    const { members } = this.#ensemble;
    this.#screen = isTerminal ? new TerminalScreen(members, this.#input, write) : new LineScreen(members, write);
    this.#input.on('line', (line) => void this.#onLine(line));
    // At a terminal the end of the input is Ctrl-D; a pipe that ends has nothing more to say.
    this.#input.on('close', () => isTerminal && void this.#stop());
    this.#input.on('SIGINT', () => void this.#stop());
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void this.#stop());
  }

  run(): Promise<number> {
    const { ids } = this.#ensemble;
    this.#screen.print(
      `Meerkat ${MEERKAT_VERSION} (ZooKeeper ${ZOOKEEPER_VERSION}): an ensemble of ${ids.length} for development, data in ${this.#directory}`,
    );
    if (ids.length % 2 === 0) {
      const tolerated = ids.length / 2 - 1;
      this.#screen.print(
        `of ${ids.length} servers only ${tolerated} may fail, as of ${ids.length - 1}: an odd number is better`,
      );
    }
    this.#ensemble.start();
    return this.#end;
  }

  #onChanged(): void {
    if (this.#isStopping) return;
    this.#screen.update();
    if (this.#isGreeted || !this.#ensemble.isWhole) return;
    this.#isGreeted = true;
    this.#screen.print(`connect to ${this.#ensemble.connectString}${this.#tlsOptions}\n${COMMANDS_HELP}`);
  }

  /** How `meerkat` connects, where it takes more than the address. */
  get #tlsOptions(): string {
    if (this.#certificates === null) return '';
    const { authority, client } = this.#certificates;
    return ` with TLS: meerkat --tls-ca ${authority} --tls-cert ${client}`;
  }

  #onDied(id: number, reason: string): void {
    if (this.#isStopping) return;
    this.#screen.print(`server ${id} ${reason}`);
    // A configuration that cannot work from the start is not one that a server has died of.
    if (!this.#isGreeted) void this.#stop(ExitCode.unexpected);
  }

  async #onLine(line: string): Promise<void> {
    if (this.#isStopping) return;
    const command = parseUpCommand(line, this.#ensemble);
    if (command === null) this.#screen.update();
    else if ('fault' in command) this.#screen.print(command.fault);
    else await this.#carryOut(command);
  }

  async #carryOut(command: UpCommand): Promise<void> {
    switch (command.kind) {
      case 'status':
        this.#screen.showAll();
        return;
      case 'help':
        this.#screen.print(COMMANDS_HELP);
        return;
      case 'quit':
        await this.#stop();
        return;
      case 'heal':
        this.#ensemble.heal();
        this.#screen.print('all servers reach each other');
        return;
      case 'partition':
        this.#partition(command.groups);
        return;
      case 'isolate':
        this.#partition([[command.id]]);
        return;
      default:
        await this.#carryOutOn(command.kind, command.id);
    }
  }

  #partition(groups: readonly (readonly number[])[]): void {
    this.#ensemble.partition(groups);
    const others = this.#ensemble.ids.filter((id) => !groups.flat().includes(id));
    const all = others.length === 0 ? groups : [...groups, others];
    this.#screen.print(`the network is cut: ${all.map((group) => group.join(' ')).join(' | ')}`);
  }

  async #carryOutOn(kind: 'kill' | 'pause' | 'resume' | 'restart', id: number): Promise<void> {
    const member = this.#ensemble.member(id);
    if (kind !== 'restart' && !member.isRunning) {
      this.#screen.print(`server ${id} is dead: "restart ${id}" starts it`);
      return;
    }
    switch (kind) {
      case 'kill':
        await member.kill();
        this.#screen.print(`server ${id} was killed`);
        return;
      case 'pause':
        member.pause();
        this.#screen.print(`server ${id} is paused: "resume ${id}" lets it continue`);
        return;
      case 'resume':
        member.resume();
        this.#screen.print(`server ${id} continues`);
        return;
      case 'restart':
        await member.stop();
        if (this.#isStopping) return;
        member.start();
        this.#screen.print(`server ${id} starts`);
        return;
    }
  }

  /** Lets all servers finish; asked again, ends them at once. */
  async #stop(exitCode: number = ExitCode.ok): Promise<void> {
    if (this.#isStopping) {
      await this.#ensemble.kill();
      return;
    }
    this.#isStopping = true;
    this.#screen.close();
    this.#screen.print('stopping all servers; again ends them at once');
    await this.#ensemble.stop();
    this.#input.close();
    this.#screen.print('stopped');
    this.#resolveEnd(exitCode);
  }
}
