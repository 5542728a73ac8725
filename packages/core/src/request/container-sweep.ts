import type { DataTree } from '../tree/data-tree.ts';

export interface ContainerSweepOptions {
  /** Milliseconds from one search to the next. */
  readonly intervalMs: number;
  readonly deletesPerMinuteMax: number;
  /** Age in milliseconds at which a container that never had a child is deleted; 0 = never. */
  readonly neverUsedMs: number;
}

/**
 * Finds empty containers and expired TTL znodes, and returns them at a limited rate (ContainerManager). Each is checked
 * again when its deletion is prepared.
 *
 * A search visits a few thousand znodes per tick, and continues once all znodes found so far are returned.
 */
export class ContainerSweep {
  readonly #tree: Pick<DataTree, 'collectablePaths'>;
  readonly #options: ContainerSweepOptions;
  /** Paths to delete, the next one last. */
  #found: string[] = [];
  /** null between two searches. */
  #search: Iterator<string | null> | null = null;
  #nextSearchMs: number;
  /** Time of the last search step. */
  #searchedMs = 0;
  /** When paths were last returned. */
  #lastTickMs: number;

  constructor(tree: Pick<DataTree, 'collectablePaths'>, options: ContainerSweepOptions, nowMs: number) {
    this.#tree = tree;
    this.#options = options;
    this.#nextSearchMs = nowMs + options.intervalMs;
    this.#lastTickMs = nowMs;
  }

  /** In whole milliseconds, as `onTick` counts. */
  get nextDeadlineMs(): number {
    if (this.#found.length > 0) return Math.ceil(this.#lastTickMs + this.#pauseMs);
    return this.#search === null ? this.#nextSearchMs : this.#searchedMs + 1;
  }

  /** @returns paths to delete now, at most as many as the rate allows since the last call */
  onTick(nowMs: number, wallMs: number): readonly string[] {
    if (this.#found.length === 0 && this.#search === null) {
      if (nowMs < this.#nextSearchMs) return NONE;
      this.#nextSearchMs = nowMs + this.#options.intervalMs;
      this.#lastTickMs = nowMs - this.#pauseMs;
      this.#search = this.#tree.collectablePaths(wallMs, this.#options.neverUsedMs);
    }
    if (this.#found.length === 0 && this.#search !== null) this.#searchOn(this.#search, nowMs);
    const elapsedMs = nowMs - this.#lastTickMs;
    if (this.#found.length === 0 || elapsedMs < this.#pauseMs) return NONE;
    this.#lastTickMs = nowMs;
    const count = Math.min(DELETES_PER_TICK_MAX, Math.max(1, Math.floor(elapsedMs / this.#pauseMs)));
    return this.#found.splice(-count).reverse();
  }

  #searchOn(search: Iterator<string | null>, nowMs: number): void {
    this.#searchedMs = nowMs;
    const found: string[] = [];
    for (let i = 0; i < STEPS_PER_TICK; i++) {
      const { value, done } = search.next();
      if (done === true) {
        this.#search = null;
        break;
      }
      if (value !== null) found.push(value);
    }
    this.#found = found.reverse();
  }

  get #pauseMs(): number {
    return 60_000 / this.#options.deletesPerMinuteMax;
  }
}

const NONE: readonly string[] = [];
/** Znodes visited per tick: a fraction of a millisecond, somewhat more if all of them are expired. */
const STEPS_PER_TICK = 2048;
/** Limit after a long pause between ticks. */
const DELETES_PER_TICK_MAX = 64;
