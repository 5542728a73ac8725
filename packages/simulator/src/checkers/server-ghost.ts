import type { CommittedSequence } from './committed-sequence.ts';

export type Role = 'looking' | 'leading' | 'following' | 'observing';

/**
 * H(s): what a server's log holds, and how much of it a reader after a power loss would find.
 *
 *     base │ entry entry entry │ entry entry
 *          └──── durable ──────┘
 *
 * The base is the zxid of a snapshot; what it holds is known only by that number.
 */
export class ServerLog {
  base = 0;
  zxids: number[] = [];
  hashes: number[] = [];
  /** Entries that are durable, counted from the oldest. */
  durableCount = 0;

  /** How many txns of C are a durable prefix of this log; see `heldCount`. */
  #heldCount = 0;
  #heldAt = 0;

  get last(): number {
    return this.zxids[this.zxids.length - 1] ?? this.base;
  }

  /** Last zxid that a reader after a power loss would find. */
  get durableLast(): number {
    return this.durableCount === 0 ? this.base : this.zxids[this.durableCount - 1]!;
  }

  /** Position of the first entry behind `zxid`. */
  after(zxid: number): number {
    let low = 0;
    let high = this.zxids.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.zxids[middle]! <= zxid) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The hash of an entry; null when the log has none of this zxid. */
  hashAt(zxid: number): number | null {
    const at = this.after(zxid) - 1;
    return at >= 0 && this.zxids[at] === zxid ? this.hashes[at]! : null;
  }

  append(zxid: number, hash: number): void {
    this.zxids.push(zxid);
    this.hashes.push(hash);
  }

  /** Everything up to here is durable. A watermark: it does not go back by itself. */
  onDurable(zxid: number): void {
    this.durableCount = Math.max(this.durableCount, this.after(zxid));
  }

  /** Forgets what follows, on the disk too. */
  truncate(zxid: number): void {
    const count = this.after(zxid);
    this.zxids.length = count;
    this.hashes.length = count;
    this.durableCount = Math.min(this.durableCount, count);
    if (zxid < this.base) this.base = zxid;
    this.#forgetHeld();
  }

  /** What was found on the disk; all of it is durable. */
  replace(base: number, zxids: readonly number[], hashes: readonly number[]): void {
    this.base = base;
    this.zxids = [...zxids];
    this.hashes = [...hashes];
    this.durableCount = zxids.length;
    this.#forgetHeld();
  }

  /**
   * How many txns of C this disk holds without a gap from the first one on. The base counts as all of C up to it.
   *
   * Continues where the last call ended, so that each txn is compared once.
   */
  heldCount(committed: CommittedSequence): number {
    if (this.#heldCount < 0) {
      this.#heldCount = committed.countUpTo(this.base);
      this.#heldAt = this.after(this.base);
    }
    // A snapshot may be ahead of what is known to be committed, and hold it before it is.
    while (this.#heldCount < committed.length && committed.zxids[this.#heldCount]! <= this.base) this.#heldCount++;
    while (
      this.#heldAt < this.durableCount &&
      this.#heldCount < committed.length &&
      this.zxids[this.#heldAt] === committed.zxids[this.#heldCount] &&
      this.hashes[this.#heldAt] === committed.hashes[this.#heldCount]
    ) {
      this.#heldAt++;
      this.#heldCount++;
    }
    return this.#heldCount;
  }

  #forgetHeld(): void {
    this.#heldCount = -1;
    this.#heldAt = 0;
  }
}

/** What is known of one server; its disk, listed first, outlives its process. */
export class ServerGhost {
  readonly id: number;
  readonly isVoter: boolean;
  readonly log: ServerLog = new ServerLog();
  /** Durable; 0 while there is no file. */
  acceptedEpoch = 0;
  currentEpoch = 0;
  /** What was truncated here, and the promise that this server had given then. */
  readonly truncated: Map<number, { readonly hash: number; readonly epoch: number }> = new Map();

  isUp = false;
  /** From the start of a process to the end of its recovery: what its disk holds is known then. */
  isRecovering = false;
  /** The disk has failed in this life. */
  hasDiskFailed = false;
  role: Role = 'looking';
  leader: number | null = null;
  /** Counts the roles of this server, over all its lives. */
  term = 0;
  /** Of the last txn that was applied because it was committed; null: none since the state was rebuilt. */
  applied: number | null = null;
  /** What was applied before this server's epoch was established: its leader's history, checked later. */
  readonly appliedEarly: { readonly zxid: number; readonly hash: number | null; readonly digest: bigint | null }[] = [];
  /** Highest zxid that this server considers committed, in this role, and up to where that was compared with C. */
  committedByMessage = 0;
  checkedCommitted = 0;
  /** Epoch that is being served in this role; null before it is established. */
  established: number | null = null;

  constructor(id: number, isVoter: boolean) {
    this.id = id;
    this.isVoter = isVoter;
  }
}
