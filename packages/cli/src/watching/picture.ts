import type { Stat } from '@meerkat/client';

/** What is known of a znode since it was read last. */
export interface Seen {
  readonly czxid: bigint;
  readonly mzxid: bigint;
  readonly version: number;
  /** Bytes. */
  readonly size: number;
  /** null when it is not kept: there was no room, or no permission. */
  readonly data: Uint8Array | null;
}

export interface PictureLimits {
  readonly znodesMax: number;
  /** Of all values together. */
  readonly bytesMax: number;
}

export const PICTURE_LIMITS: PictureLimits = { znodesMax: 100_000, bytesMax: 64 * 1024 * 1024 };

export function seenOf(stat: Stat, data: Uint8Array | null): Seen {
  return { czxid: stat.czxid, mzxid: stat.mzxid, version: stat.version, size: stat.dataLength, data };
}

/**
 * The state of znodes as last read, so that a change can be reported as a difference. Its size is bounded: for a new
 * value the ones that were written longest ago are evicted; a znode for which there is no room is not added, and the
 * picture is incomplete from then on.
 */
export class Picture {
  readonly #limits: PictureLimits;
  /** In the order of writing, oldest first. */
  readonly #seen = new Map<string, Entry>();
  #bytes = 0;
  #round = 0;
  /** Whether it had every znode that could be read, after some complete comparison. */
  isWhole = false;

  constructor(limits: PictureLimits = PICTURE_LIMITS) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#seen.size;
  }

  get isFull(): boolean {
    return this.#seen.size >= this.#limits.znodesMax || this.#bytes >= this.#limits.bytesMax;
  }

  get(path: string): Seen | null {
    return this.#seen.get(path)?.seen ?? null;
  }

  put(path: string, seen: Seen): void {
    this.remove(path);
    if (this.#seen.size >= this.#limits.znodesMax) {
      this.isWhole = false;
      return;
    }
    this.#seen.set(path, { seen, round: this.#round });
    this.#bytes += seen.data?.length ?? 0;
    if (this.#bytes > this.#limits.bytesMax) this.#forgetValues();
  }

  remove(path: string): void {
    const entry = this.#seen.get(path);
    if (entry === undefined) return;
    this.#bytes -= entry.seen.data?.length ?? 0;
    this.#seen.delete(path);
  }

  /** What is not `put` or `keep`-ed from now on is in `leftover` later. */
  beginRound(): void {
    this.#round++;
  }

  keep(path: string): void {
    const entry = this.#seen.get(path);
    if (entry !== undefined) entry.round = this.#round;
  }

  /** What was there before this round began, and has not been met in it. */
  leftover(): readonly string[] {
    return [...this.#seen].filter(([, { round }]) => round !== this.#round).map(([path]) => path);
  }

  #forgetValues(): void {
    for (const [path, entry] of this.#seen) {
      if (this.#bytes <= this.#limits.bytesMax) return;
      const { seen } = entry;
      if (seen.data === null || seen.data.length === 0) continue;
      this.#bytes -= seen.data.length;
      this.#seen.set(path, { ...entry, seen: { ...seen, data: null } });
    }
  }
}

interface Entry {
  readonly seen: Seen;
  round: number;
}
