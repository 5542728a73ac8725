import type { DataTree } from '../tree/data-tree.ts';

export interface ContainerSweepOptions {
  /** Milliseconds from one search to the next. */
  readonly intervalMs: number;
  readonly deletesPerMinuteMax: number;
  /** Age in milliseconds at which a container that never had a child goes; 0 = never. */
  readonly neverUsedMs: number;
}

/**
 * Finds empty containers and TTL znodes whose time is over, and hands them out at a limited pace (ContainerManager).
 * Whether one may really go is decided when its deletion is prepared.
 */
export class ContainerSweep {
  readonly #tree: DataTree;
  readonly #options: ContainerSweepOptions;
  #found: readonly string[] = [];
  #at = 0;
  #nextSearchMs: number;
  #lastTickMs: number;

  constructor(tree: DataTree, options: ContainerSweepOptions, nowMs: number) {
    this.#tree = tree;
    this.#options = options;
    this.#nextSearchMs = nowMs + options.intervalMs;
    this.#lastTickMs = nowMs;
  }

  get nextDeadlineMs(): number {
    return this.#at < this.#found.length ? this.#lastTickMs + this.#pauseMs : this.#nextSearchMs;
  }

  /** @returns paths to delete now, at most as many as the pace allows since the last call */
  onTick(nowMs: number, wallMs: number): readonly string[] {
    const elapsedMs = nowMs - this.#lastTickMs;
    if (this.#at < this.#found.length) {
      if (elapsedMs < this.#pauseMs) return NONE;
      this.#lastTickMs = nowMs;
      const count = Math.max(1, Math.floor(elapsedMs / this.#pauseMs));
      const due = this.#found.slice(this.#at, this.#at + count);
      this.#at += due.length;
      return due;
    }
    if (nowMs < this.#nextSearchMs) return NONE;
    this.#nextSearchMs = nowMs + this.#options.intervalMs;
    this.#lastTickMs = nowMs - this.#pauseMs;
    this.#found = this.#tree.collectablePaths(wallMs, this.#options.neverUsedMs);
    this.#at = 0;
    return this.#found.length === 0 ? NONE : this.onTick(nowMs, wallMs);
  }

  get #pauseMs(): number {
    return 60_000 / this.#options.deletesPerMinuteMax;
  }
}

const NONE: readonly string[] = [];
