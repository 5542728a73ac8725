import { getInt } from '@meerkat/protocol';

/** Offsets inside a StatPersisted; up to version its layout equals that of the stat on the wire. */
export const PersistedOffset = {
  mzxid: 8,
  ctime: 16,
  cversion: 36,
  aversion: 40,
  ephemeralOwner: 44,
  pzxid: 52,
} as const;

/** Largest high half of a zxid that is an exact number. */
const ZXID_HIGH_MAX = 2 ** 21 - 1;

/** Whether czxid, mzxid and pzxid of the stat at `persisted` are exact numbers, not negative except −1. */
export function areZxids(bytes: Uint8Array, persisted: number): boolean {
  return (
    isZxidAt(bytes, persisted) &&
    isZxidAt(bytes, persisted + PersistedOffset.mzxid) &&
    isZxidAt(bytes, persisted + PersistedOffset.pzxid)
  );
}

function isZxidAt(bytes: Uint8Array, at: number): boolean {
  const high = getInt(bytes, at);
  return high >= 0 ? high <= ZXID_HIGH_MAX : high === -1 && getInt(bytes, at + 4) === -1;
}
