import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isSingleFile } from '@meerkat/server/run';
import type { MemberFiles } from './layout.ts';
import { MEMBER_WORD } from './member-word.ts';
import { type Cuts, type MemberStatus, parseStatus } from './messages.ts';

export interface MemberEvents {
  /** It does something else than before. */
  onChanged(): void;
  /** It has ended without being asked to. */
  onDied(reason: string): void;
}

/** What the process of a member begins with, besides its arguments. */
function entry(): string {
  return isSingleFile() ? MEMBER_WORD : fileURLToPath(new URL('./member-main.js', import.meta.url));
}

/** One server of the ensemble through its lives, each of them a process. */
export class MemberProcess {
  readonly id: number;
  readonly clientPort: number;
  readonly #files: MemberFiles;
  readonly #events: MemberEvents;
  #process: ChildProcess | null = null;
  #ended: Promise<unknown> = Promise.resolve();
  #status: MemberStatus | null = null;
  #cutFrom: readonly number[] = [];
  #isPaused = false;
  /** It is being stopped or killed. */
  #isEnding = false;

  constructor(files: MemberFiles, clientPort: number, events: MemberEvents) {
    this.id = files.id;
    this.clientPort = clientPort;
    this.#files = files;
    this.#events = events;
  }

  get isRunning(): boolean {
    return this.#process !== null;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Null until the first report since its start. */
  get status(): MemberStatus | null {
    return this.#status;
  }

  get cutFrom(): readonly number[] {
    return this.#cutFrom;
  }

  start(): void {
    if (this.#process !== null) return;
    const log = openSync(this.#files.log, 'a');
    // In a process group of its own: Ctrl-C is for the parent, which stops the members in order.
    const child = fork(entry(), [this.#files.configuration, this.#cutFrom.join(',')], {
      detached: true,
      stdio: ['ignore', log, log, 'ipc'],
    });
    closeSync(log);
    this.#process = child;
    this.#isEnding = false;
    child.on('message', (message) => {
      const status = parseStatus(message);
      if (status === null || this.#process !== child) return;
      this.#status = status;
      this.#events.onChanged();
    });
    // It was not started, or has ended: `#ended` reports it.
    child.on('error', () => {});
    this.#ended = once(child, 'exit').then(
      ([code, signal]) => this.#onEnded(signal === null ? `with code ${code}` : `by ${signal}`),
      (error: Error) => this.#onEnded(`at its start: ${error.message}`),
    );
  }

  /** Sends SIGKILL. */
  async kill(): Promise<void> {
    this.#isEnding = true;
    this.#process?.kill('SIGKILL');
    await this.#ended;
  }

  /** Lets it finish what is in flight. */
  async stop(): Promise<void> {
    this.#isEnding = true;
    this.#process?.kill('SIGTERM');
    this.resume();
    await this.#ended;
  }

  pause(): void {
    if (this.#process === null) return;
    this.#process.kill('SIGSTOP');
    this.#isPaused = true;
    this.#events.onChanged();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#process?.kill('SIGCONT');
    this.#isPaused = false;
    this.#events.onChanged();
  }

  /** Streams that it dials to these servers let nothing through from now on; those to others do again. */
  cutOffFrom(ids: readonly number[]): void {
    this.#cutFrom = ids;
    const cuts: Cuts = { cutFrom: ids };
    if (this.#process?.connected === true) this.#process.send(cuts);
    this.#events.onChanged();
  }

  /** The last thing that it has printed. */
  get lastWords(): string {
    return readFileSync(this.#files.log, 'utf8').trimEnd().split('\n').at(-1) ?? '';
  }

  #onEnded(how: string): void {
    this.#process = null;
    this.#status = null;
    this.#isPaused = false;
    this.#events.onChanged();
    if (!this.#isEnding) this.#events.onDied(`ended ${how}: ${this.lastWords} (${this.#files.log})`);
  }
}
