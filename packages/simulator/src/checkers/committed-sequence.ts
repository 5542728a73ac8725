import { epochOf, hexZxid, type TxnEntry, type Zxid } from '@meerkat/protocol';

/**
 * C of the paper: everything that has ever been committed, in order. It only grows.
 *
 * A txn enters when a leader says that it is committed, or with the leader's whole history when its epoch is established.
 */
export class CommittedSequence {
  readonly zxids: number[] = [];
  readonly hashes: number[] = [];
  /** Decoded; null where the bytes are unknown (a history from before the world began). */
  readonly entries: (TxnEntry | null)[] = [];
  readonly #indexes: Map<number, number> = new Map();

  get length(): number {
    return this.zxids.length;
  }

  /** 0 while nothing is committed. */
  get last(): number {
    return this.zxids[this.zxids.length - 1] ?? 0;
  }

  has(zxid: number): boolean {
    return this.#indexes.has(zxid);
  }

  /** Position of a txn, or −1. */
  indexOf(zxid: number): number {
    return this.#indexes.get(zxid) ?? -1;
  }

  /** Number of txns up to `zxid`. */
  countUpTo(zxid: number): number {
    const known = this.#indexes.get(zxid);
    if (known !== undefined) return known + 1;
    let low = 0;
    let high = this.zxids.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.zxids[middle]! <= zxid) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  push(zxid: number, hash: number, entry: TxnEntry | null): void {
    this.#indexes.set(zxid, this.zxids.length);
    this.zxids.push(zxid);
    this.hashes.push(hash);
    this.entries.push(entry);
  }
}

/** What is wrong when `zxid` follows `previous` in a history, or null. `previous` 0 is an empty history. */
export function gapBetween(previous: number, zxid: number): string | null {
  if (zxid <= previous) return `${hexZxid(zxid)} follows ${hexZxid(previous)}: zxids do not ascend`;
  const epoch = epochOf(zxid as Zxid);
  if (zxid === previous + 1 && epoch === epochOf(previous as Zxid)) return null;
  const first = epoch * 0x100000000 + 1;
  if (zxid === first) return null;
  const missing = epoch === epochOf(previous as Zxid) ? previous + 1 : first;
  return `${hexZxid(zxid)} follows ${hexZxid(previous)}: ${hexZxid(missing)} is missing`;
}
