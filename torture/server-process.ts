import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type FromServer, type Inspection, isFromServer, type ServerStatus, type ToServer } from './messages.ts';
import { hostOf, type TortureNetwork } from './network.ts';
import { listAgain, readIfThere, type ServerFiles } from './server-files.ts';

export interface ServerEvents {
  onMessage(message: FromServer): void;
  onStarted(): void;
  /** It has exited without being asked to. `reason` contains its last output. */
  onDied(reason: string): void;
}

const MAIN = fileURLToPath(new URL('./server-main.js', import.meta.url));

/** One server of the ensemble across restarts; each run is a process. */
export class ServerProcess {
  readonly id: number;
  readonly host: string;
  readonly files: ServerFiles;
  readonly #network: TortureNetwork;
  readonly #events: ServerEvents;
  #process: ChildProcess | null = null;
  #ended: Promise<unknown> = Promise.resolve();
  #status: ServerStatus | null = null;
  #isPaused = false;
  /** It was asked to exit. */
  #isEnding = false;
  /** Callers that wait for an inspection. */
  #inspectors: ((inspection: Inspection | null) => void)[] = [];

  constructor(files: ServerFiles, network: TortureNetwork, events: ServerEvents) {
    this.id = files.id;
    this.host = hostOf(files.id);
    this.files = files;
    this.#network = network;
    this.#events = events;
  }

  get isRunning(): boolean {
    return this.#process !== null;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Null until the first report of the current process. */
  get status(): ServerStatus | null {
    return this.#status;
  }

  start(): void {
    if (this.#process !== null) return;
    listAgain(this.files);
    const log = openSync(this.files.log, 'a');
    const redirections = JSON.stringify(this.#network.redirectionsOf(this.id));
    const command = [process.execPath, MAIN, this.files.configuration, redirections];
    const [program = '', ...args] = [...this.#network.commandOf(this.id), ...command];
    // In its own process group, so that Ctrl-C only reaches the parent.
    const child = spawn(program, args, { detached: true, stdio: ['ignore', log, log, 'ipc'] });
    closeSync(log);
    this.#process = child;
    this.#isEnding = false;
    if (child.pid !== undefined) writeFileSync(this.files.pid, String(child.pid));
    child.on('message', (message) => {
      if (this.#process === child && isFromServer(message)) this.#onMessage(message);
    });
    // A process that has exited or never started is reported by 'exit'.
    child.on('error', () => {});
    this.#ended = once(child, 'exit').then(
      ([code, signal]) => this.#onEnded(signal === null ? `with code ${code}` : `by ${signal}`),
      (error: Error) => this.#onEnded(`at its start: ${error.message}`),
    );
    this.#events.onStarted();
  }

  /** Kills it with SIGKILL. */
  async kill(): Promise<void> {
    this.#isEnding = true;
    this.#process?.kill('SIGKILL');
    await this.#ended;
  }

  /** Shuts it down gracefully; a leader hands over. Await `ended` for its exit. */
  terminate(): void {
    this.#isEnding = true;
    this.#process?.kill('SIGTERM');
  }

  get ended(): Promise<unknown> {
    return this.#ended;
  }

  pause(): void {
    if (this.#process === null) return;
    this.#process.kill('SIGSTOP');
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#process?.kill('SIGCONT');
    this.#isPaused = false;
  }

  send(message: ToServer): void {
    if (this.#process?.connected === true) this.#process.send(message, () => {});
  }

  /** Returns its current state; null when it does not serve. */
  inspect(): Promise<Inspection | null> {
    return new Promise((resolve) => {
      this.#inspectors.push(resolve);
      if (this.#process === null) this.#answer(null);
      else this.send({ kind: 'inspect' });
      setTimeout(() => resolve(null), INSPECT_MS).unref();
    });
  }

  #onMessage(message: FromServer): void {
    if (message.kind === 'status') this.#status = message;
    if (message.kind === 'inspection') this.#answer(message);
    this.#events.onMessage(message);
  }

  #answer(inspection: Inspection | null): void {
    for (const resolve of this.#inspectors.splice(0)) resolve(inspection);
  }

  #onEnded(how: string): void {
    this.#process = null;
    this.#status = null;
    this.#isPaused = false;
    rmSync(this.files.pid, { force: true });
    this.#answer(null);
    if (!this.#isEnding) this.#events.onDied(`ended ${how}: ${lastLineOf(this.files.log)}`);
  }
}

const INSPECT_MS = 10_000;

function lastLineOf(path: string): string {
  return readIfThere(path).trimEnd().split('\n').at(-1) ?? '';
}
