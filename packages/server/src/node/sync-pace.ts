/**
 * Decides whether the next lone write may be synced without the thread pool.
 *
 * Handing a sync to the thread pool and coming back costs about 80 µs, half as much as the sync itself on a quick
 * disk (0.25 ms against 0.17 ms). Doing it right here costs every other connection its duration. So it is done while
 * recent syncs took less than a millisecond on average and nothing large is being written; one that turns out slow puts
 * an end to it for a while.
 */
export class SyncPace {
  /** Moving average in milliseconds; the first sync is measured in the thread pool. */
  #averageMs = Number.POSITIVE_INFINITY;
  #pausedUntilMs = 0;

  get isQuick(): boolean {
    return this.#averageMs < QUICK_MS && (this.#pausedUntilMs === 0 || performance.now() >= this.#pausedUntilMs);
  }

  /**
   * Much was written at once to some file, most likely a snapshot. While the disk is busy with it, a small sync may
   * occasionally take tens of milliseconds.
   */
  onLargeWrite(): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, performance.now() + BUSY_MS);
  }

  /** A sync took that long, the hop to the thread pool included where there was one. */
  onSynced(durationMs: number, isOnLoop: boolean): void {
    this.#averageMs =
      this.#averageMs === Number.POSITIVE_INFINITY
        ? durationMs
        : this.#averageMs + (durationMs - this.#averageMs) * WEIGHT;
    this.#pausedUntilMs = isOnLoop && durationMs > SLOW_MS ? performance.now() + PAUSE_MS : this.#pausedUntilMs;
    if (!isOnLoop && this.#pausedUntilMs !== 0 && performance.now() >= this.#pausedUntilMs) this.#pausedUntilMs = 0;
  }
}

const WEIGHT = 1 / 8;
const QUICK_MS = 1;
/** A sync on the loop that took longer stops the practice for `PAUSE_MS`. */
const SLOW_MS = 4;
const PAUSE_MS = 1000;
/** How long after a large write the disk counts as busy. */
const BUSY_MS = 500;
