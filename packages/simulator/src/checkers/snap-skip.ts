/**
 * Finds where the snapshot behind a SNAP packet ends, by lengths alone: nothing of it is decoded or kept.
 *
 *     stream := int n, n × (long session, int timeout)
 *               int n, n × (long number, int m, m × (int perms, ustring scheme, ustring id))
 *               (ustring path, buffer data, long acl, 60 bytes of stat)* until the path "/"
 *               signature of 14 bytes
 */
import { getInt, isSnapSignatureAt, PERSISTED_STAT_BYTES, SNAP_SIGNATURE_BYTES } from '@meerkat/protocol';

type Phase = 'sessions' | 'acls' | 'acl' | 'znodes' | 'signature' | 'done' | 'fault';

const SESSION_BYTES = 12;

export class SnapSkip {
  #phase: Phase = 'sessions';
  #left = 0;

  get isComplete(): boolean {
    return this.#phase === 'done';
  }

  /** The bytes are no snapshot. */
  get isFault(): boolean {
    return this.#phase === 'fault';
  }

  /** @returns how many of the bytes belong to parts that are there as a whole; the rest is given again, with more behind it */
  skip(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    for (;;) {
      const next = this.#skipPart(bytes, at, end);
      if (next < 0) return at - start;
      at = next;
      if (this.#phase === 'done' || this.#phase === 'fault') return at - start;
    }
  }

  /** @returns where the next part begins; −1 when this one is not complete */
  #skipPart(bytes: Uint8Array, at: number, end: number): number {
    switch (this.#phase) {
      case 'sessions': {
        if (at + 4 > end) return -1;
        const next = at + 4 + Math.max(0, getInt(bytes, at)) * SESSION_BYTES;
        if (next > end) return -1;
        this.#phase = 'acls';
        return next;
      }
      case 'acls':
        if (at + 4 > end) return -1;
        this.#left = Math.max(0, getInt(bytes, at));
        this.#phase = this.#left > 0 ? 'acl' : 'znodes';
        return at + 4;
      case 'acl': {
        const next = endOfAcl(bytes, at, end);
        if (next < 0) return -1;
        this.#left--;
        if (this.#left === 0) this.#phase = 'znodes';
        return next;
      }
      case 'znodes': {
        const pathEnd = endOfText(bytes, at, end);
        if (pathEnd < 0) return -1;
        if (pathEnd - at === 5 && bytes[at + 4] === SLASH) {
          this.#phase = 'signature';
          return pathEnd;
        }
        const dataEnd = endOfText(bytes, pathEnd, end);
        if (dataEnd < 0) return -1;
        const next = dataEnd + 8 + PERSISTED_STAT_BYTES;
        return next > end ? -1 : next;
      }
      case 'signature':
        if (at + SNAP_SIGNATURE_BYTES > end) return -1;
        this.#phase = isSnapSignatureAt(bytes, at) ? 'done' : 'fault';
        return at + SNAP_SIGNATURE_BYTES;
      case 'done':
      case 'fault':
        return -1;
    }
  }
}

const SLASH = 0x2f;

function endOfText(bytes: Uint8Array, at: number, end: number): number {
  if (at < 0 || at + 4 > end) return -1;
  const next = at + 4 + Math.max(0, getInt(bytes, at));
  return next > end ? -1 : next;
}

function endOfAcl(bytes: Uint8Array, at: number, end: number): number {
  if (at + 12 > end) return -1;
  let next = at + 12;
  for (let left = getInt(bytes, at + 8); left > 0; left--) {
    next = endOfText(bytes, next + 4, end);
    if (next >= 0) next = endOfText(bytes, next, end);
    if (next < 0) return -1;
  }
  return next;
}
