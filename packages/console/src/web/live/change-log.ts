import type { ChangeInfo } from '../../api/messages.ts';

/** The last 20,000 changes: those shown, and those that are held back while it is paused. */
export class ChangeLog {
  /** Oldest first. */
  #changes: ChangeInfo[] = [];
  #paused: readonly ChangeInfo[] | null = null;
  /** The number of changes per second. */
  readonly #seconds: Map<number, number> = new Map();
  #total = 0;
  #dropped = 0;
  #waiting = 0;

  get total(): number {
    return this.#total;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** Number of changes since it was paused. */
  get waiting(): number {
    return this.#waiting;
  }

  add(changes: readonly ChangeInfo[]): void {
    this.#changes.push(...changes);
    this.#total += changes.length;
    if (this.#paused !== null) this.#waiting += changes.length;
    for (const { atMs } of changes) {
      const second = Math.floor(atMs / 1000);
      this.#seconds.set(second, (this.#seconds.get(second) ?? 0) + 1);
    }
    for (const second of this.#seconds.keys()) {
      if (this.#seconds.size <= SECONDS_KEPT) break;
      this.#seconds.delete(second);
    }
    // Not for each one: dropping copies the array.
    if (this.#changes.length > 2 * KEPT_MAX) {
      this.#dropped += this.#changes.length - KEPT_MAX;
      this.#changes = this.#changes.slice(-KEPT_MAX);
    }
  }

  pause(): void {
    this.#paused = this.#changes.slice();
    this.#waiting = 0;
  }

  resume(): void {
    this.#paused = null;
    this.#waiting = 0;
  }

  clear(): void {
    this.#changes = [];
    this.#total = 0;
    this.#dropped = 0;
    if (this.#paused !== null) this.#paused = [];
  }

  /** The newest first. */
  shown(filter: string): readonly ChangeInfo[] {
    const all = this.#paused ?? this.#changes;
    const text = filter.trim().toLowerCase();
    const found = text === '' ? all : all.filter((change) => matches(change, text));
    return found.slice(-KEPT_MAX).reverse();
  }

  /** Changes in the previous second. */
  rate(nowMs: number): number {
    return this.#seconds.get(Math.floor(nowMs / 1000) - 1) ?? 0;
  }
}

function matches({ path, value, before, type }: ChangeInfo, text: string): boolean {
  return [path, value ?? '', before ?? '', type].some((part) => part.toLowerCase().includes(text));
}

const KEPT_MAX = 20_000;
const SECONDS_KEPT = 10;
