/** The last lines of a trace, in a ring. */
export class TraceTail {
  readonly #lines: string[] = [];
  readonly #max: number;
  #next = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(line: string): void {
    this.#lines[this.#next] = line;
    this.#next = (this.#next + 1) % this.#max;
  }

  /** Oldest first. */
  get lines(): readonly string[] {
    return [...this.#lines.slice(this.#next), ...this.#lines.slice(0, this.#next)];
  }
}
