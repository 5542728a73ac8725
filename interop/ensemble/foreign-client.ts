import { fileURLToPath } from 'node:url';
import type { CClientTls } from '../c-client/with-tls.ts';
import { ConsoleProcess } from '../harness/console-process.ts';
import type { Peer } from '../harness/peers.ts';

/** A line for a client's shell, and the output that confirms it. */
interface Exchange {
  readonly line: string;
  readonly answer: RegExp;
}

/** How to start and control one of the foreign clients. */
interface Dialect {
  readonly peer: Peer;
  /** @param tls of the C client; the others do not use TLS here */
  command(
    servers: readonly string[],
    timeoutMs: number,
    tls: CClientTls | null,
  ): readonly [program: string, args: readonly string[]];
  readonly connected: RegExp;
  create(path: string, data: string): Exchange;
  createEphemeral(path: string): Exchange;
  /** Reads these data and sets a watch. */
  watch(path: string, data: string): Exchange;
  /** The shell's output for a change of watched data. */
  changed(path: string): RegExp;
  set(path: string, data: string, version: number): Exchange;
  /** Group 1 is a state reported by the client. */
  readonly state: RegExp;
}

const SCRIPTS = { kazoo: '../kazoo/shell.py', c: '../c-client/single_threaded.py' };

function python(script: keyof typeof SCRIPTS, ...args: readonly string[]): [string, readonly string[]] {
  return ['/usr/bin/python3', [fileURLToPath(new URL(SCRIPTS[script], import.meta.url)), ...args]];
}

function literal(text: string): string {
  return text.replaceAll(/[/.-]/g, '\\$&');
}

/** Session timeout: a usual value, and enough for a busy machine. */
const TIMEOUT_MS = 10_000;

const DIALECTS = {
  kazoo: {
    peer: 'kazoo',
    command: (servers, timeoutMs) => python('kazoo', servers.join(','), String(timeoutMs / 1000)),
    connected: /state CONNECTED\n/,
    create: (path, data) => ({ line: `create ${path} ${data}`, answer: new RegExp(`created ${literal(path)}\\n`) }),
    createEphemeral: (path) => ({ line: `ephemeral ${path} x`, answer: new RegExp(`created ${literal(path)}\\n`) }),
    watch: (path, data) => ({
      line: `watch ${path}`,
      answer: new RegExp(`watches ${literal(path)}, which is ${data}\\n`),
    }),
    changed: (path) => new RegExp(`changed ${literal(path)}\\n`),
    set: (path, data, version) => ({
      line: `set ${path} ${data}`,
      answer: new RegExp(`set version ${version}\\n`),
    }),
    state: /^state (\w+)$/gm,
  },
  zkCli: {
    peer: 'zkCli',
    command: (servers, timeoutMs) => [
      '/usr/share/zookeeper/bin/zkCli.sh',
      ['-timeout', String(timeoutMs), '-server', servers.join(',')],
    ],
    connected: /state:SyncConnected.*\n/,
    create: (path, data) => ({ line: `create ${path} ${data}`, answer: new RegExp(`Created ${literal(path)}\\n`) }),
    createEphemeral: (path) => ({ line: `create -e ${path} x`, answer: new RegExp(`Created ${literal(path)}\\n`) }),
    watch: (path, data) => ({ line: `get -w ${path}`, answer: new RegExp(`^${data}\\n`, 'm') }),
    changed: (path) => new RegExp(`WatchedEvent state:SyncConnected type:NodeDataChanged path:${literal(path)}\\n`),
    set: (path, data, version) => ({
      line: `set -s ${path} ${data}`,
      answer: new RegExp(`dataVersion = ${version}\\n`),
    }),
    state: /^WatchedEvent state:(\w+) type:None path:null$/gm,
  },
  /** The threaded C library, in its own shell. */
  cliMt: {
    peer: 'cliMt',
    // The shell has no option for the timeout, which is 30 seconds.
    command: (servers, _, tls) => [
      tls?.shell ?? '/usr/lib/zookeeper/bin/cli_mt',
      ['-h', servers.join(','), ...(tls === null ? [] : ['-s', tls.files])],
    ],
    connected: /state = CONNECTED_STATE\n/,
    // The shell sets its own data.
    create: (path) => ({ line: `create ${path}`, answer: new RegExp(`rc = 0\\n\\tname = ${literal(path)}\\n`) }),
    createEphemeral: (path) => ({
      line: `create +e ${path}`,
      answer: new RegExp(`rc = 0\\n\\tname = ${literal(path)}\\n`),
    }),
    watch: (path, data) => ({
      line: `get ${path}`,
      answer: new RegExp(`${literal(path)}: rc = 0\\n value_len = \\d+\\n${data}\\n`),
    }),
    changed: (path) => new RegExp(`Watcher CHANGED_EVENT state = CONNECTED_STATE for path ${literal(path)}\\n`),
    set: (path, data, version) => ({
      line: `set ${path} ${data}`,
      answer: new RegExp(`${literal(path)}: rc = 0 Stat:\\n(?:\\t.*\\n){4}\\tversion=${version.toString(16)}\\t`),
    }),
    state: /^Watcher SESSION_EVENT state = (\w+)_STATE$/gm,
  },
  /** The single-threaded C library. */
  libzookeeperSt: {
    peer: 'libzookeeperSt',
    command: (servers, timeoutMs, tls) =>
      python('c', servers.join(','), String(timeoutMs), ...(tls === null ? [] : [tls.library, tls.files])),
    connected: /^connected\n/m,
    create: (path, data) => ({ line: `create ${path} ${data}`, answer: new RegExp(`rc 0 ${literal(path)}\\n`) }),
    createEphemeral: (path) => ({ line: `ephemeral ${path} x`, answer: new RegExp(`rc 0 ${literal(path)}\\n`) }),
    watch: (path, data) => ({ line: `get ${path}`, answer: new RegExp(`rc 0 ${data} version \\d+ `) }),
    changed: (path) => new RegExp(`event changed ${literal(path)}\\n`),
    set: (path, data, version) => ({ line: `set ${path} ${data}`, answer: new RegExp(`rc 0 version ${version} `) }),
    state: /^(connecting|associating|connected|not connected|expired|refused)$/gm,
  },
} as const satisfies Readonly<Record<string, Dialect>>;

export interface ForeignOptions {
  readonly timeoutMs?: number;
  readonly tls?: CClientTls;
}

export type ForeignKind = keyof typeof DIALECTS;

export const FOREIGN_KINDS: readonly ForeignKind[] = Object.keys(DIALECTS) as ForeignKind[];

/** A foreign client in a separate process, controlled by lines, with its own root znode. */
export class ForeignClient {
  readonly kind: ForeignKind;
  readonly root: string;
  readonly #dialect: Dialect;
  readonly #console: ConsoleProcess;
  #version = 0;

  /**
   * @param servers `host:port`; it connects to the first of them if the client supports that
   * @param options.timeoutMs session timeout, if the client supports it
   */
  static async start(
    kind: ForeignKind,
    servers: readonly string[],
    root: string,
    options: ForeignOptions = {},
  ): Promise<ForeignClient> {
    const client = new ForeignClient(kind, servers, root, options);
    try {
      await client.#console.waitFor(client.#dialect.connected);
      await client.#exchange(client.#dialect.create(root, 'x'));
      await client.#exchange(client.#dialect.create(client.written, 'x'));
      await client.createEphemeral('mine');
    } catch (error) {
      await client.kill();
      throw error;
    }
    return client;
  }

  private constructor(kind: ForeignKind, servers: readonly string[], root: string, options: ForeignOptions) {
    this.kind = kind;
    this.root = root;
    this.#dialect = DIALECTS[kind];
    const { timeoutMs = TIMEOUT_MS, tls = null } = options;
    const [program, args] = this.#dialect.command(servers, timeoutMs, tls);
    this.#console = new ConsoleProcess(program, args);
  }

  /** The znode that the client writes. */
  get written(): string {
    return `${this.root}/written`;
  }

  get output(): string {
    return this.#console.output;
  }

  /** All states reported by the client, in its own terms. */
  get states(): readonly string[] {
    return [...this.output.matchAll(this.#dialect.state)].map((match) => match[1] ?? '');
  }

  createEphemeral(name: string): Promise<void> {
    return this.#exchange(this.#dialect.createEphemeral(`${this.root}/${name}`));
  }

  watch(path: string, data: string): Promise<void> {
    return this.#exchange(this.#dialect.watch(path, data));
  }

  async hearsOfChange(path: string): Promise<void> {
    await this.#console.waitFor(this.#dialect.changed(path));
  }

  write(data: string): Promise<void> {
    this.#version += 1;
    return this.#exchange(this.#dialect.set(this.written, data, this.#version));
  }

  /** Makes it close its session and exit. @returns its exit code */
  quit(): Promise<number | null> {
    this.#console.send('quit');
    return this.#console.end();
  }

  kill(): Promise<void> {
    return this.#console.kill();
  }

  async #exchange({ line, answer }: Exchange): Promise<void> {
    this.#console.send(line);
    await this.#console.waitFor(answer);
  }
}
