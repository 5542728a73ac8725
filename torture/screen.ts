/** Progress output of a run: one updated line on a terminal, a line every ten seconds elsewhere. */
export class Screen {
  readonly #write: (text: string) => void;
  readonly #isTerminal: boolean;
  #lastMs = Number.NEGATIVE_INFINITY;
  #hasLine = false;

  constructor(write: (text: string) => void, isTerminal: boolean) {
    this.#write = write;
    this.#isTerminal = isTerminal;
  }

  /** Prints a permanent line. */
  print(text: string): void {
    this.#write(`${this.#hasLine ? CLEAR : ''}${text}\n`);
    this.#hasLine = false;
  }

  /** Updates the progress line. */
  update(line: () => string): void {
    const nowMs = performance.now();
    if (nowMs - this.#lastMs < (this.#isTerminal ? TERMINAL_MS : LINE_MS)) return;
    this.#lastMs = nowMs;
    if (this.#isTerminal) {
      this.#write(`${CLEAR}${line()}`);
      this.#hasLine = true;
    } else this.#write(`${line()}\n`);
  }
}

const CLEAR = '\r\u001b[K';
const TERMINAL_MS = 200;
const LINE_MS = 10_000;
