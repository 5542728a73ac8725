import { type Io, writeAll } from '../run/io.ts';

/** How often the line is drawn again. Milliseconds. */
const EVERY_MS = 100;
/** What is done sooner needs no line. Milliseconds. */
const QUIET_MS = 400;

/**
 * A line on standard error that says the progress of long work; on a terminal only.
 *
 * The command sets `text` as often as it likes: a line is made ten times a second at most.
 */
export class Progress implements Disposable {
  readonly #io: Io;
  readonly #isShown: boolean;
  readonly #startMs: number = performance.now();
  #nextMs: number = this.#startMs + QUIET_MS;
  #isOnScreen = false;

  constructor(io: Io, isWanted: boolean) {
    this.#io = io;
    this.#isShown = isWanted && io.stderr.isTTY === true;
  }

  /** @param describe is called when a line is due: `1,234 of 5,000 znodes` */
  update(describe: () => string): void {
    if (!this.#isShown) return;
    const nowMs = performance.now();
    if (nowMs < this.#nextMs) return;
    this.#nextMs = nowMs + EVERY_MS;
    const seconds = Math.round((nowMs - this.#startMs) / 1000);
    const columns = this.#io.stderr.columns ?? 80;
    this.#isOnScreen = true;
    void writeAll(this.#io.stderr, `\r\x1b[K${`${describe()}  ${seconds} s`.slice(0, columns - 1)}`);
  }

  /** Takes the line away, so that other text may follow. */
  clear(): void {
    if (!this.#isOnScreen) return;
    this.#isOnScreen = false;
    void writeAll(this.#io.stderr, '\r\x1b[K');
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}
