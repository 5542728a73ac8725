import { type ApacheHost, ApacheTimers } from './apache-host.ts';

interface Waiting {
  readonly go: () => void;
  readonly cancel: () => void;
}

/** A condition that threads of a leader wait for, each for at most initLimit ticks since it began to wait. */
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

  /** @param fail null: no timeout */
  wait(go: () => void, fail: (() => void) | null): void {
    if (this.#isOpen) {
      go();
      return;
    }
    const cancel = fail === null ? () => {} : this.#timers.after(this.#limitMs, fail);
    this.#waiting.push({ go, cancel });
  }

  /** Resumes each waiting thread in a separate event. */
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
