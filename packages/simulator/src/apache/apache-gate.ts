import { type ApacheHost, ApacheTimers } from './apache-host.ts';

interface Waiting {
  readonly go: () => void;
  readonly cancel: () => void;
}

/** What threads of a leader wait for together, each for at most initLimit ticks from when it came. */
export class Gate {
  readonly #timers: ApacheTimers;
  readonly #limitMs: number;
  #isOpen = false;
  #isClosed = false;
  #waiting: Waiting[] = [];

  constructor({ timeline, timings }: ApacheHost) {
    this.#timers = new ApacheTimers(timeline);
    this.#limitMs = timings.tickTimeMs * timings.initLimit;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** @param fail null: waits without a limit */
  wait(go: () => void, fail: (() => void) | null): void {
    if (this.#isOpen) {
      go();
      return;
    }
    const cancel = fail === null ? () => {} : this.#timers.after(this.#limitMs, fail);
    this.#waiting.push({ go, cancel });
  }

  /** Whoever waited goes on, in an event of its own. */
  open(): void {
    this.#isOpen = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { go, cancel } of waiting) {
      cancel();
      this.#timers.after(0, () => {
        if (!this.#isClosed) go();
      });
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
    this.#timers.cancelAll();
  }
}
