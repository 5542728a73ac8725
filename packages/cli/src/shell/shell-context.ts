import type { Client, WatchEvent } from '@meerkat/client';
import { parseLocation } from '../connection/location.ts';
import { Progress } from '../output/progress.ts';
import type { Report } from '../output/report.ts';
import { type CommonWords, timeoutOf } from '../run/common-words.ts';
import type { Context, Located } from '../run/context.ts';
import { type Io, writeAll } from '../run/io.ts';
import type { ShellState } from './shell-command.ts';
import { resolvePath } from './znode-path.ts';

/** What a line of the shell works with: the session of the shell, and paths below its current znode. */
export class ShellContext implements Context {
  readonly io: Io;
  readonly report: Report;
  readonly signal: AbortSignal;
  readonly isShell = true;
  readonly timeoutMs: number | undefined;
  readonly call: Context['call'];
  readonly #shell: ShellState;
  readonly #isQuiet: boolean;
  /** A path may end with "/": that of a sequential znode whose name is its number. */
  readonly #keepsSlash: boolean;

  constructor(shell: ShellState, report: Report, words: CommonWords, signal: AbortSignal, keepsSlash: boolean) {
    this.#shell = shell;
    this.io = shell.io;
    this.report = report;
    this.signal = signal;
    this.timeoutMs = timeoutOf(words);
    this.call = { signal, timeoutMs: this.timeoutMs };
    this.#isQuiet = words.quiet === true;
    this.#keepsSlash = keepsSlash;
  }

  servers(): Promise<never> {
    return Promise.reject(new Error('the commands that ask for servers are not in the shell'));
  }

  services(): Promise<never> {
    return this.servers();
  }

  settings(): Promise<never> {
    return this.servers();
  }

  connect(): Promise<Client> {
    return this.#shell.session.open(this.signal);
  }

  async locate(text: string): Promise<Located> {
    const { path, service } = parseLocation(text);
    if (service.kind === 'current') return { client: await this.connect(), path: this.resolve(path), shown: text };
    return { client: await this.#shell.otherSession(service, this.signal), path, shown: text };
  }

  resolve(path: string): string {
    const resolved = resolvePath(this.#shell.currentPath, path);
    return this.#keepsSlash && path.endsWith('/') && resolved !== '/' ? `${resolved}/` : resolved;
  }

  note(text: string): void {
    if (!this.#isQuiet) void writeAll(this.io.stderr, `${text}\n`);
  }

  leaveWatch(changed: Promise<WatchEvent>): void {
    this.#shell.watches.leave(changed);
  }

  progress(): Progress {
    return new Progress(this.io, !this.#isQuiet);
  }
}
