import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePorts } from '@meerkat/testing';
import { CLASS_PATH, SHORT_JAVA, WITH_ARCHIVE } from './java.ts';
import { meerkatCommand } from './meerkat-command.ts';
import { guardOrphan } from './orphan-guard.ts';

/** The server program: Apache's or ours. A parameter of most interop tests. */
export type ServerKind = 'apache' | 'meerkat';

export interface ServerOptions {
  /** Keys of `zoo.cfg` in addition to those of every test server. */
  readonly config?: Readonly<Record<string, string | number | boolean>>;
  /** Data directory; default: a temporary one, deleted by `dispose`. */
  readonly directory?: string;
  /** TLS on a separate port, `securePort`. */
  readonly tls?: TlsStores;
  /** Apache's server logs too, if the jar for it is installed. */
  readonly logs?: boolean;
  /** Limit of open file descriptors of the process. */
  readonly descriptorsMax?: number;
  /** The admin port is open, at `adminPort`. */
  readonly hasAdmin?: boolean;
  /** SASL DIGEST-MD5 for these users, passwords by names (no quotes in them). */
  readonly saslUsers?: Readonly<Record<string, string>>;
  /** Environment of the process, in addition to that of the tests: `NODE_OPTIONS`, `JAVA_TOOL_OPTIONS`. */
  readonly env?: Readonly<Record<string, string>>;
  /** The whole JAAS file, instead of one with `saslUsers`. */
  readonly jaas?: string;
}

/** PEM files in the format of Apache's key stores of this type: the key before its certificate. */
export interface TlsStores {
  readonly keyStorePath: string;
  readonly trustStorePath: string;
  /** Whether clients need a certificate. Default `need`, like Apache's. */
  readonly clientAuth?: 'none' | 'want' | 'need';
}

/** `super:test` with the password of the tests: see docs/protocol/client.md, "Authentication". */
export const SUPER_DIGEST = 'super:D/InIHSb7yEEbrWz8b9l71RjZJU=';
export const SUPER_CREDENTIALS = 'super:test';

/** With it Apache's server logs to standard error; without it there is no log. */
const LOG_JAR = '/usr/share/java/slf4j-simple.jar';

/** The servers that a test runs against. */
export const SERVER_KINDS: readonly ServerKind[] = ['apache', 'meerkat'];

const SASL_PROVIDER = 'org.apache.zookeeper.server.auth.SASLAuthenticationProvider';
const CONTAINER_CHECK_MS = 86_400_000;
const START_TRIES = 5;
const PROBE_MS = 500;
const READY_MS = 90_000;
const STOP_MS = 30_000;

/**
 * A server as a child process, on a free loopback port, with its own directory.
 *
 * `start` returns once the server answers. The port is kept over restarts, so that clients can reconnect.
 */
export class ServerProcess {
  readonly directory: string;
  readonly #isOwnDirectory: boolean;
  readonly #options: ServerOptions;
  readonly #changes: Record<string, string | number | boolean> = {};
  #kind: ServerKind;
  #port = 0;
  #securePort = 0;
  #adminPort = 0;
  #child: ChildProcess | null = null;
  #output = '';

  static async start(kind: ServerKind, options: ServerOptions = {}): Promise<ServerProcess> {
    const server = new ServerProcess(kind, options);
    try {
      await server.#startOnFreePort();
    } catch (error) {
      await server.dispose();
      throw error;
    }
    return server;
  }

  private constructor(kind: ServerKind, options: ServerOptions) {
    this.#kind = kind;
    this.#isOwnDirectory = options.directory === undefined;
    this.directory = options.directory ?? mkdtempSync(join(tmpdir(), `interop-${kind}-`));
    this.#options = options;
  }

  get kind(): ServerKind {
    return this.#kind;
  }

  get port(): number {
    return this.#port;
  }

  /** The port with TLS; 0 if none. */
  get securePort(): number {
    return this.#securePort;
  }

  /** The admin port; 0 if none. */
  get adminPort(): number {
    return this.#adminPort;
  }

  /** Sends a request to the admin port. @returns the response body */
  async askAdmin(path: string): Promise<string> {
    return await (await fetch(`http://127.0.0.1:${this.#adminPort}${path}`)).text();
  }

  get dataDirectory(): string {
    return join(this.directory, 'data');
  }

  /** The output of the process, over all restarts. */
  get output(): string {
    return this.#output;
  }

  /** Stops the process with SIGTERM and waits. Lets Apache's server finish a snapshot, which it would truncate. */
  async stop(): Promise<void> {
    while (this.#kind === 'apache' && this.#hasThread('Snapshot Thread'))
      await new Promise((resolve) => setTimeout(resolve, 5));
    return this.#end('SIGTERM');
  }

  /** Kills the process (SIGKILL): nothing is flushed or sent. */
  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  /**
   * Pauses the process (SIGSTOP); the kernel still accepts data sent to it.
   *
   * @returns once all its threads are stopped
   */
  async pause(): Promise<void> {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('a process that is paused must run');
    this.#child?.kill('SIGSTOP');
    while (!isStopped(pid)) await new Promise((resolve) => setTimeout(resolve, 2));
  }

  /** Resumes a paused process. */
  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  /** Resident memory of the process in bytes (Linux). */
  residentBytes(): number {
    const status = readFileSync(`/proc/${this.#child?.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  }

  /** Changes settings of zoo.cfg for the next start. */
  reconfigure(changes: NonNullable<ServerOptions['config']>): void {
    Object.assign(this.#changes, changes);
  }

  /** Restarts on the same data and port, optionally with the other program. */
  async restart(kind: ServerKind = this.#kind): Promise<void> {
    await this.kill();
    this.#kind = kind;
    for (let tries = 1; ; tries++) {
      const fault = await this.#startOnce();
      if (fault === null) return;
      if (tries === START_TRIES) throw new Error(`${this.#kind} did not start again: ${fault}\n${this.#output}`);
    }
  }

  /** Starts a stopped process again, without waiting until it serves. */
  launch(): void {
    this.#spawn(() => {});
  }

  /** Kills the process and deletes its directory if it is temporary. */
  async dispose(): Promise<void> {
    await this.kill();
    if (this.#isOwnDirectory) rmSync(this.directory, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose();
  }

  /** The answer to a four-letter word. */
  fourLetterWord(word: string): Promise<string> {
    return fourLetterWord(this.#port, word);
  }

  async #startOnFreePort(): Promise<void> {
    for (let tries = 1; ; tries++) {
      this.#port = await freePort();
      if (this.#options.tls !== undefined) this.#securePort = await freePort();
      if (this.#options.hasAdmin === true) this.#adminPort = await freePort();
      const fault = await this.#startOnce();
      if (fault === null) return;
      // Another program may have taken the port between the probe and the start. Apache's server only logs that.
      const isSilent = this.#kind === 'apache' && this.#options.logs !== true && fault.endsWith('exit code 1');
      if (tries === START_TRIES || !(isSilent || /in use|EADDRINUSE|BindException/i.test(this.#output))) {
        throw new Error(`${this.#kind} did not start: ${fault}\n${this.#output}`);
      }
    }
  }

  /** Starts the process and waits for its first answer. @returns the fault when it exits or stays silent, else null */
  async #startOnce(): Promise<string | null> {
    let fault: string | null = null;
    this.#spawn((reason) => {
      fault = reason;
    });
    const deadline = Date.now() + READY_MS;
    while (fault === null) {
      // Apache's server never answers a connection that arrives during its start; a later one is answered.
      const answer = await fourLetterWord(this.#port, 'srvr', PROBE_MS).catch(() => '');
      // The other ports are opened later.
      const others = [this.#securePort, this.#adminPort].filter((port) => port > 0);
      if (answer.includes('Mode:') && (await areListening(others))) return null;
      if (Date.now() > deadline) fault = `no answer to srvr within ${READY_MS} ms`;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    await this.#end('SIGKILL');
    return fault;
  }

  #spawn(onFault: (fault: string) => void): void {
    const configPath = join(this.directory, 'zoo.cfg');
    const jaasPath = this.#writeSaslUsers();
    writeFileSync(configPath, this.#configText(jaasPath));
    const { logs = false, env } = this.#options;
    const [command, args] = commandLine(this.#kind, configPath, jaasPath, logs, env);
    // Apache's server only reads these from Java's system properties.
    const { config = {} } = this.#options;
    const properties =
      this.#kind === 'apache'
        ? [
            ...(config['multiAddress.enabled'] === true ? ['-Dzookeeper.multiAddress.enabled=true'] : []),
            ...(config['readonlymode.enabled'] === true ? ['-Dreadonlymode.enabled=true'] : []),
          ]
        : [];
    const child = spawn(...limited([command, [...properties, ...args]], this.#options.descriptorsMax), {
      cwd: this.directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...this.#options.env },
    });
    this.#child = child;
    const release = guardOrphan(child.pid, this.#isOwnDirectory ? this.directory : null);
    const collect = (chunk: Buffer): void => {
      this.#output = (this.#output + chunk.toString()).slice(-200_000);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('error', (error) => onFault(error.message));
    // Not on 'exit': output may arrive after that.
    child.once('close', (code, signal) => {
      release();
      onFault(`the process ended with ${signal ?? `exit code ${code}`}`);
    });
  }

  #configText(jaasPath: string | null): string {
    // Apache's server only accepts these on its command line.
    const sasl =
      jaasPath === null || this.#kind === 'apache'
        ? {}
        : { 'java.security.auth.login.config': jaasPath, 'authProvider.sasl': SASL_PROVIDER };
    const config = {
      ...sasl,
      dataDir: this.dataDirectory,
      clientPort: this.#port,
      clientPortAddress: '127.0.0.1',
      tickTime: 3000,
      // Containers must not be collected during a test; Apache's server accepts this on its command line.
      'znode.container.checkIntervalMs': CONTAINER_CHECK_MS,
      maxClientCnxns: 0,
      'admin.enableServer': this.#adminPort > 0,
      ...(this.#adminPort > 0 ? { 'admin.serverPort': this.#adminPort, 'admin.serverAddress': '127.0.0.1' } : {}),
      '4lw.commands.whitelist': '*',
      extendedTypesEnabled: true,
      'DigestAuthenticationProvider.superDigest': SUPER_DIGEST,
      ...this.#tlsConfig(),
      ...this.#options.config,
      ...this.#changes,
    };
    return Object.entries(config)
      .map(([key, value]) => `${key}=${value}\n`)
      .join('');
  }

  #tlsConfig(): Record<string, string | number> {
    const { tls } = this.#options;
    if (tls === undefined) return {};
    return {
      secureClientPort: this.#securePort,
      secureClientPortAddress: '127.0.0.1',
      // Apache's default factory does not support TLS.
      serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
      'ssl.keyStore.location': tls.keyStorePath,
      'ssl.keyStore.type': 'PEM',
      'ssl.trustStore.location': tls.trustStorePath,
      'ssl.trustStore.type': 'PEM',
      'ssl.clientAuth': tls.clientAuth ?? 'need',
    };
  }

  /** @returns the path of the JAAS file, null without SASL */
  #writeSaslUsers(): string | null {
    const { saslUsers, jaas } = this.#options;
    if (saslUsers === undefined && jaas === undefined) return null;
    const users = Object.entries(saslUsers ?? {}).map(([name, password]) => `  user_${name}="${password}"`);
    const path = join(this.directory, 'jaas.conf');
    const module = 'org.apache.zookeeper.server.auth.DigestLoginModule required';
    writeFileSync(path, jaas ?? `Server {\n  ${module}\n${users.join('\n')};\n};\n`);
    return path;
  }

  #hasThread(name: string): boolean {
    const pid = this.#child?.pid;
    return pid !== undefined && namesOfThreads(pid).includes(name);
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(timer);
  }
}

/** The same command with a limit of file descriptors. */
function limited([command, args]: [string, string[]], descriptorsMax: number | undefined): [string, string[]] {
  if (descriptorsMax === undefined) return [command, args];
  return ['/bin/sh', ['-c', `ulimit -n ${descriptorsMax}; exec "$0" "$@"`, command, ...args]];
}

export function commandLine(
  kind: ServerKind,
  configPath: string,
  jaasPath: string | null,
  logs: boolean,
  env?: Readonly<Record<string, string>>,
): [string, string[]] {
  if (kind === 'meerkat') {
    const [program, ...words] = meerkatCommand(env);
    return [program, [...words, 'server', configPath]];
  }
  const sasl =
    jaasPath === null
      ? []
      : [`-Djava.security.auth.login.config=${jaasPath}`, `-Dzookeeper.authProvider.sasl=${SASL_PROVIDER}`];
  const java = [
    // A small heap, so that several servers fit on a small machine.
    ...[...SHORT_JAVA, ...WITH_ARCHIVE, '-Xmx512m'],
    // Apache does not read prefix-less properties from zoo.cfg.
    `-Dznode.container.checkIntervalMs=${CONTAINER_CHECK_MS}`,
    ...sasl,
    '-Dorg.slf4j.simpleLogger.showDateTime=true',
    '-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS',
    ...['-cp', logs ? `${CLASS_PATH}:${LOG_JAR}` : CLASS_PATH],
    ...['org.apache.zookeeper.server.quorum.QuorumPeerMain', configPath],
  ];
  return ['java', java];
}

/** Thread names from Linux, of at most 15 characters; empty for an exited process. */
function namesOfThreads(pid: number): readonly string[] {
  const nameOf = (path: string): readonly string[] => {
    try {
      return [readFileSync(path, 'utf8').trim()];
    } catch {
      // It has exited meanwhile.
      return [];
    }
  };
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((id) => nameOf(`/proc/${pid}/task/${id}/comm`));
  } catch {
    return [];
  }
}

/** Whether all threads of the process are in the state "stopped" (Linux). */
function isStopped(pid: number): boolean {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.every((id) => /\) [Tt] /.test(readFileSync(`/proc/${pid}/task/${id}/stat`, 'utf8')));
}

async function areListening(ports: readonly number[]): Promise<boolean> {
  for (const port of ports) if (!(await isListening(port))) return false;
  return true;
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

/** Sends a four-letter word and returns the answer until the server closes the connection. */
export function fourLetterWord(port: number, word: string, waitMs = 30_000): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' });
    let answer = '';
    socket.setTimeout(waitMs, () => socket.destroy(new Error(`no answer to ${word}`)));
    socket.on('connect', () => socket.write(word));
    socket.on('data', (chunk) => {
      answer += chunk.toString();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(answer));
  });
}

export async function freePort(): Promise<number> {
  const [port = 0] = await findFreePorts(1);
  return port;
}
