/** Strangers cause these lines at will: one a second at most, with how many there were. */
export class RefusalLog {
  readonly #log: (text: string) => void;
  #more = 0;
  #last = '';
  #timer: NodeJS.Timeout | null = null;

  constructor(log: (text: string) => void) {
    this.#log = log;
  }

  add(text: string): void {
    if (this.#timer !== null) {
      this.#more++;
      this.#last = text;
      return;
    }
    this.#log(text);
    this.#timer = setTimeout(() => this.#onSecond(), 1000);
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #onSecond(): void {
    this.#timer = null;
    if (this.#more === 0) return;
    const others = this.#more - 1;
    this.#more = 0;
    this.add(others === 0 ? this.#last : `${this.#last} (and ${others} more before)`);
  }
}
