import { type ChildProcess, spawn } from 'node:child_process';
import { SHORT_ZKCLI } from './java.ts';
import { guardOrphan } from './orphan-guard.ts';

const WAIT_MS = 120_000;

/** A program that reads commands from stdin and answers on stdout and stderr, which are merged. */
export class ConsoleProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  #output = '';
  /** Start of the text that `waitFor` has not consumed yet. */
  #position = 0;
  #hasEnded = false;
  readonly #onChange: (() => void)[] = [];

  constructor(command: string, args: readonly string[]) {
    // The shell merges both streams into one pipe, which keeps their order.
    this.#child = spawn('/bin/sh', ['-c', 'exec "$0" "$@" 2>&1', command, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: SHORT_ZKCLI,
    });
    const release = guardOrphan(this.#child.pid, null);
    this.#child.stdin?.on('error', () => undefined);
    this.#child.stdout?.on('data', (chunk: Buffer) => {
      this.#output += chunk.toString();
      this.#changed();
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once('close', (code) => {
        release();
        this.#hasEnded = true;
        this.#changed();
        resolve(code);
      });
    });
  }

  get output(): string {
    return this.#output;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Writes a line to the program. */
  send(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** Waits for a match after the last one; returns the text since then, including the match. */
  async waitFor(pattern: RegExp): Promise<string> {
    const deadline = Date.now() + WAIT_MS;
    for (;;) {
      const match = pattern.exec(this.#output.slice(this.#position));
      if (match !== null) {
        const text = this.#output.slice(this.#position, this.#position + match.index + match[0].length);
        this.#position += text.length;
        return text;
      }
      const left = deadline - Date.now();
      if (this.#hasEnded || left <= 0) {
        const why = this.#hasEnded ? 'the program ended' : `${WAIT_MS} ms went by`;
        throw new Error(`${why} before it printed ${pattern}; it printed:\n${this.#output}`);
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#onChange.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Waits until the program exits. @returns its exit code */
  async end(): Promise<number | null> {
    this.#child.stdin?.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), WAIT_MS);
    const code = await this.#ended;
    clearTimeout(timer);
    return code;
  }

  /** Kills the program, like a crash. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#hasEnded) await this.kill();
  }

  #changed(): void {
    for (const resolve of this.#onChange.splice(0)) resolve();
  }
}
