/** The key `g`, followed soon by the key of a view. */
export class GoKey {
  #pressedMs = Number.NEGATIVE_INFINITY;

  /** @param nowMs milliseconds, of a clock that may begin with the page */
  press(nowMs: number): void {
    this.#pressedMs = nowMs;
  }

  /** True for the first key that comes soon enough. */
  take(nowMs: number): boolean {
    const isSoon = nowMs - this.#pressedMs < SOON_MS;
    if (isSoon) this.#pressedMs = Number.NEGATIVE_INFINITY;
    return isSoon;
  }
}

const SOON_MS = 1500;
