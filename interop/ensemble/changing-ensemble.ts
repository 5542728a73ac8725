import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, connect } from '@meerkat/client';
import { guardOrphan } from '../harness/orphan-guard.ts';
import { commandLine, fourLetterWord, freePort, type ServerKind, SUPER_DIGEST } from '../harness/server-process.ts';

/** Milliseconds. */
const TICK_MS = 500;
const READY_MS = 90_000;

/** The ports of a server on the loopback interface. */
interface Ports {
  quorum: number;
  election: number;
  client: number;
}

/** A server that may change its configuration: zoo.cfg is written once, and read at each start. */
export class ChangingServer {
  readonly id: number;
  kind: ServerKind;
  readonly directory: string;
  ports: Ports;
  #child: ChildProcess | null = null;
  #output = '';

  constructor(id: number, kind: ServerKind, directory: string, ports: Ports) {
    this.id = id;
    this.kind = kind;
    this.directory = directory;
    this.ports = ports;
  }

  /** Its line in the list of members, without `server.N=`. */
  line(role: 'participant' | 'observer' = 'participant', ports: Ports = this.ports): string {
    return `127.0.0.1:${ports.quorum}:${ports.election}:${role};127.0.0.1:${ports.client}`;
  }

  get address(): string {
    return `127.0.0.1:${this.ports.client}`;
  }

  get output(): string {
    return this.#output;
  }

  get isRunning(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Its current zoo.cfg. */
  get staticText(): string {
    return readFileSync(join(this.directory, 'zoo.cfg'), 'utf8');
  }

  /** The member list that its zoo.cfg refers to. */
  get dynamicText(): string {
    const path = /^dynamicConfigFile=(.*)$/m.exec(this.staticText)?.[1] ?? '';
    return readFileSync(path, 'utf8');
  }

  /** Names of the files in the directory of zoo.cfg. */
  get files(): readonly string[] {
    return readdirSync(this.directory).filter((name) => name.startsWith('zoo.cfg'));
  }

  launch(): void {
    const [command, args] = commandLine(this.kind, join(this.directory, 'zoo.cfg'), null, true);
    const child = spawn(command, args, { cwd: this.directory, stdio: ['ignore', 'pipe', 'pipe'] });
    const release = guardOrphan(child.pid, null);
    const collect = (chunk: Buffer): void => {
      this.#output = (this.#output + chunk.toString()).slice(-200_000);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('exit', (code, signal) => {
      release();
      this.#output += `\nended with ${signal ?? `exit code ${code}`}\n`;
    });
    this.#child = child;
  }

  /** Its answer to srvr; '' while there is none. */
  srvr(): Promise<string> {
    return fourLetterWord(this.ports.client, 'srvr', 2000).catch(() => '');
  }

  /** `leader`, `follower` or `observer`; null while it does not serve. */
  async mode(): Promise<string | null> {
    return /^Mode: (.*)$/m.exec(await this.srvr())?.[1] ?? null;
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal);
  }

  async waitFor(mode: RegExp): Promise<void> {
    const deadline = Date.now() + READY_MS;
    for (;;) {
      const found = await this.mode();
      if (found !== null && mode.test(found)) return;
      if (Date.now() > deadline) throw new Error(`server ${this.id} is ${found}, not ${mode}\n${this.output}`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  /** Waits until its output matches. */
  async waitForOutput(text: RegExp): Promise<void> {
    const deadline = Date.now() + READY_MS;
    while (!text.test(this.#output)) {
      if (Date.now() > deadline) throw new Error(`server ${this.id} does not say ${text}\n${this.output}`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  async kill(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
    child.kill(signal);
    await ended;
  }
}

/** An ensemble with changing members. */
export class ChangingEnsemble {
  readonly servers: Map<number, ChangingServer> = new Map();
  readonly #directory = mkdtempSync(join(tmpdir(), 'interop-changing-'));

  /**
   * Starts servers 1, 2, … with a static member list.
   *
   * @param more further lines of zoo.cfg
   * @param groups lines of the member list other than servers
   * @returns once all serve
   */
  static async start(
    kinds: readonly ServerKind[],
    more: readonly string[] = [],
    groups: readonly string[] = [],
  ): Promise<ChangingEnsemble> {
    const ensemble = new ChangingEnsemble();
    for (const [i, kind] of kinds.entries()) await ensemble.add(i + 1, kind);
    const members = [...ensemble.servers.values()].map((server) => `server.${server.id}=${server.line()}`);
    try {
      for (const server of ensemble.servers.values()) ensemble.configure(server, [...members, ...groups], more);
      for (const server of ensemble.servers.values()) server.launch();
      for (const server of ensemble.servers.values()) await server.waitFor(/./);
    } catch (error) {
      await ensemble.dispose();
      throw error;
    }
    return ensemble;
  }

  /** Adds a server with an empty directory; it is configured and started separately. */
  async add(id: number, kind: ServerKind): Promise<ChangingServer> {
    const directory = join(this.#directory, String(id));
    mkdirSync(join(directory, 'data'), { recursive: true });
    writeFileSync(join(directory, 'data', 'myid'), String(id));
    const ports = await freePorts();
    const server = new ChangingServer(id, kind, directory, ports);
    this.servers.set(id, server);
    return server;
  }

  /** Writes its zoo.cfg and its initial member list. */
  configure(server: ChangingServer, members: readonly string[], more: readonly string[] = []): void {
    const { directory } = server;
    writeFileSync(join(directory, 'members.cfg'), `${members.join('\n')}\n`);
    const lines = [
      `dataDir=${directory}/data`,
      `tickTime=${TICK_MS}`,
      'initLimit=20',
      'syncLimit=10',
      'maxSessionTimeout=60000',
      'maxClientCnxns=0',
      'preAllocSize=64',
      'standaloneEnabled=false',
      'reconfigEnabled=true',
      'admin.enableServer=false',
      '4lw.commands.whitelist=*',
      `DigestAuthenticationProvider.superDigest=${SUPER_DIGEST}`,
      ...more,
      `dynamicConfigFile=${directory}/members.cfg`,
    ];
    writeFileSync(join(directory, 'zoo.cfg'), `${lines.join('\n')}\n`);
  }

  /** Starts a joining server: it knows the current members, and itself as an observer. @returns once it follows */
  async join(id: number, kind: ServerKind, known: readonly number[]): Promise<ChangingServer> {
    const server = this.servers.get(id) ?? (await this.add(id, kind));
    const members = known.map((other) => `server.${other}=${this.server(other).line()}`);
    this.configure(server, [...members, `server.${id}=${server.line('participant')}`]);
    server.launch();
    await server.waitFor(/follower|observer/);
    return server;
  }

  server(id: number): ChangingServer {
    const server = this.servers.get(id);
    if (server === undefined) throw new Error(`there is no server ${id}`);
    return server;
  }

  connectString(ids: Iterable<number> = this.servers.keys()): string {
    return [...ids].map((id) => this.server(id).address).join(',');
  }

  /** A client that may change the membership. */
  async connect(ids?: Iterable<number>): Promise<Client> {
    const client = await connect(this.connectString(ids), {
      sessionTimeoutMs: 20_000,
      backOff: { minMs: 5, maxMs: 50 },
      auth: [{ scheme: 'digest', auth: 'super:test' }],
    });
    return client;
  }

  async leader(): Promise<ChangingServer> {
    for (;;) {
      for (const server of this.servers.values()) if ((await server.mode()) === 'leader') return server;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  get logs(): string {
    return [...this.servers.values()]
      .map(({ id, kind, output, ports }) => `---- server ${id} (${kind}), ${JSON.stringify(ports)}\n${output}`)
      .join('\n');
  }

  async dispose(): Promise<void> {
    await Promise.all([...this.servers.values()].map((server) => server.kill()));
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

export async function freePorts(): Promise<Ports> {
  return { quorum: await freePort(), election: await freePort(), client: await freePort() };
}
