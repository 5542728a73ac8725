import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, connect } from '@meerkat/client';
import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import { meerkatCommand } from '../harness/meerkat-command.ts';
import { describeWith, isCi, isInstalled } from '../harness/peers.ts';
import { SERVER_KINDS, type ServerKind, type ServerOptions, ServerProcess } from '../harness/server-process.ts';

/** The result of a command. */
export interface Ended {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as bytes. */
  readonly bytes: Buffer;
}

export interface RunOptions {
  /** Standard input, closed at its end. Default: empty. */
  readonly input?: string | Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The reader of its output has gone before it starts. */
  readonly isUnread?: boolean;
}

/** Becomes a command whose standard output is a pipe without a reader. */
const UNREAD = ['/bin/bash', '-c', 'exec > >(:); wait $!; exec "$@"', 'unread'];

/** A running command. */
export class RunningCommand {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<Ended>;
  readonly #stdout: Buffer[] = [];
  readonly #stderr: Buffer[] = [];
  readonly #waiting: (() => void)[] = [];

  constructor(args: readonly string[], { input, env = {}, cwd, isUnread }: RunOptions, keepsInputOpen: boolean) {
    const [program, ...words] = [...(isUnread === true ? UNREAD : []), ...meerkatCommand(env), ...args] as [
      string,
      ...string[],
    ];
    this.child = spawn(program, words, {
      stdio: 'pipe',
      cwd,
      // Isolated from the user's environment: no profiles, no colours, no server.
      env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', ...env },
    });
    const { stdin, stdout, stderr } = this.child;
    stdout.on('data', (chunk: Buffer) => this.#onOutput(this.#stdout, chunk));
    stderr.on('data', (chunk: Buffer) => this.#onOutput(this.#stderr, chunk));
    // A command that does not read its input may exit before it is written.
    stdin.on('error', () => {});
    if (!keepsInputOpen) stdin.end(input ?? '');
    this.ended = new Promise((resolve) => {
      this.child.on('close', (exitCode, signal) => {
        resolve({ exitCode, signal, stdout: this.stdout, stderr: this.stderr, bytes: Buffer.concat(this.#stdout) });
        this.#wake();
      });
    });
  }

  get stdout(): string {
    return Buffer.concat(this.#stdout).toString();
  }

  get stderr(): string {
    return Buffer.concat(this.#stderr).toString();
  }

  /** Waits for output. Rejects when the command ends before. */
  async until(what: string, holds: (output: { stdout: string; stderr: string }) => boolean): Promise<void> {
    while (!holds(this)) {
      if (this.child.exitCode !== null || this.child.signalCode !== null) {
        throw new Error(`the command ended before ${what}:\n${this.stdout}\n${this.stderr}`);
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #onOutput(chunks: Buffer[], chunk: Buffer): void {
    chunks.push(chunk);
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** One server for the tests of a file, the command, and a client to arrange and check with. */
export class CliSite {
  readonly kind: ServerKind;
  readonly #directories: string[] = [];
  readonly #running: RunningCommand[] = [];
  #server: ServerProcess | null = null;
  #client: Client | null = null;

  constructor(kind: ServerKind, options: ServerOptions) {
    this.kind = kind;
    beforeAll(async () => {
      this.#server = await ServerProcess.start(kind, options);
      this.#client = await connect(this.address, { sessionTimeoutMs: 30_000, connectTimeoutMs: 30_000 });
    });
    afterEach(async () => {
      for (const { child, ended } of this.#running.splice(0)) {
        child.kill('SIGKILL');
        await ended;
      }
    });
    afterAll(async () => {
      await this.#client?.close();
      await this.#server?.dispose();
      for (const directory of this.#directories) rmSync(directory, { recursive: true, force: true });
    });
  }

  get server(): ServerProcess {
    if (this.#server === null) throw new Error('the server is started before the first test');
    return this.#server;
  }

  get client(): Client {
    if (this.#client === null) throw new Error('the client connects before the first test');
    return this.#client;
  }

  /** host:port of the server. */
  get address(): string {
    return `127.0.0.1:${this.server.port}`;
  }

  /** A temporary directory, deleted after the tests. */
  directory(): string {
    const directory = mkdtempSync(join(tmpdir(), 'cli-'));
    this.#directories.push(directory);
    return directory;
  }

  /** Runs the command against the server and waits for its end. */
  run(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
    return this.#start(args, options, false).ended;
  }

  /** Starts the command with its input open. It is killed at the end of the test if it is still running. */
  start(args: readonly string[], options: RunOptions = {}): RunningCommand {
    return this.#start(args, options, true);
  }

  #start(args: readonly string[], options: RunOptions, keepsInputOpen: boolean): RunningCommand {
    const env = { MEERKAT_SERVER: this.address, ...options.env };
    const running = new RunningCommand(args, { ...options, env }, keepsInputOpen);
    this.#running.push(running);
    return running;
  }
}

/** The same tests against our server and, if installed, Apache's. */
export function describeCli(title: string, body: (site: CliSite) => void, options: ServerOptions = {}): void {
  for (const kind of SERVER_KINDS) {
    const inner = (): void => body(new CliSite(kind, options));
    if (kind === 'apache') describeWith(['apache'], `${title}, on Apache's server`, inner);
    else describe(title, inner);
  }
}

/**
 * Tests of a command that sends plain requests only: against Apache's server, or ours where that is not installed. That
 * both servers reply alike is shown by `interop/client/` and `interop/differential/`.
 */
export function describeRequests(title: string, body: (site: CliSite) => void, options: ServerOptions = {}): void {
  // In CI it must be installed: the server's start fails otherwise.
  const kind = isInstalled('apache') || isCi() ? 'apache' : 'meerkat';
  describe(title, () => body(new CliSite(kind, options)));
}
