/**
 * A zxid orders every change of the service: epoch in the high 32 bits, counter in the low 32.
 *
 * It is held as a plain number, `epoch * 2**32 + counter`, which is exact while the epoch stays below 2**21.
 * −1 is the one negative value: "no zxid" in replies to unknown operations and in replayed watch events.
 */
export type Zxid = number & { readonly __brand: 'Zxid' };

/** Largest epoch whose zxids are exact numbers. */
export const MAX_EPOCH: number = 2 ** 21 - 1;

/** Largest counter of an epoch; a leader starts a new epoch before it is reached. */
export const MAX_COUNTER: number = 2 ** 32 - 1;

const COUNTER_SPAN = 2 ** 32;

/** The zxid of an empty database. */
export const ZXID_ZERO: Zxid = 0 as Zxid;

/** "No zxid": what an unknown operation and a replayed watch event carry. */
export const ZXID_NONE: Zxid = -1 as Zxid;

export function makeZxid(epoch: number, counter: number): Zxid {
  if (!Number.isInteger(epoch) || epoch < 0 || epoch > MAX_EPOCH) {
    throw new RangeError(`epoch ${epoch} is not between 0 and ${MAX_EPOCH}`);
  }
  if (!Number.isInteger(counter) || counter < 0 || counter > MAX_COUNTER) {
    throw new RangeError(`zxid counter ${counter} is not between 0 and ${MAX_COUNTER}`);
  }
  return (epoch * COUNTER_SPAN + counter) as Zxid;
}

/** Whether a zxid read from a peer or a file is valid: −1, or an exact non-negative number. */
export function isZxid(value: number): value is Zxid {
  return Number.isSafeInteger(value) && value >= -1;
}

/** The number after this one; of the same epoch, unless its counter is at the maximum. */
export function nextZxid(zxid: Zxid): Zxid {
  return (zxid + 1) as Zxid;
}

/** The number before this one, which need not be the zxid of a txn. */
export function previousZxid(zxid: Zxid): Zxid {
  return (zxid - 1) as Zxid;
}

export function maxZxid(a: Zxid, b: Zxid): Zxid {
  return a > b ? a : b;
}

export function epochOf(zxid: Zxid): number {
  return Math.floor(zxid / COUNTER_SPAN);
}

export function counterOf(zxid: Zxid): number {
  return zxid < 0 ? MAX_COUNTER : zxid % COUNTER_SPAN;
}

/** Lower-case hexadecimal without prefix or padding, as in the names of log and snapshot files. */
export function formatZxid(zxid: number): string {
  return zxid < 0 ? 'ffffffffffffffff' : zxid.toString(16);
}

/** Hexadecimal with `0x`, for humans. */
export function hexZxid(zxid: number): string {
  return `0x${formatZxid(zxid)}`;
}

/** The zxid that hexadecimal text names, or null when the text is not one. */
export function parseZxid(text: string): Zxid | null {
  if (!/^[0-9a-f]{1,16}$/i.test(text)) return null;
  const value = Number.parseInt(text, 16);
  return isZxid(value) ? value : null;
}
