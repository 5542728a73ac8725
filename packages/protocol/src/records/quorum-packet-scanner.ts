import { DEFAULT_FIELD_BYTES_MAX } from '../jute/reader.ts';
import { getInt } from '../jute/writer.ts';

/**
 * Finds where the packets of the quorum port end: nothing but their own fields tells. Each field's length is looked at
 * once, also when a packet arrives byte by byte; that a peer is slow or hostile costs no more than its bytes.
 *
 *     │ type │ zxid │ length │ data ··· │ count │ length │ scheme │ length │ id │ …
 *       4      8      4                   4       4 ─────────────── count times
 *                     └ #next: the field that has not been looked at yet
 */
export class QuorumPacketScanner {
  readonly #fieldBytesMax: number;
  /** A packet holds one large field at most; the rest of the bytes is for what a client is known as. */
  readonly #packetBytesMax: number;
  /** Offset, from the start of the packet, of the length or count to be looked at next. */
  #next = DATA_LENGTH_OFFSET;
  #expects: Expected = Expected.dataLength;
  /** Schemes and ids that have not been looked at. */
  #textsLeft = 0;

  constructor(fieldBytesMax: number = DEFAULT_FIELD_BYTES_MAX) {
    this.#fieldBytesMax = fieldBytesMax;
    this.#packetBytesMax = 2 * fieldBytesMax + PACKET_BYTES_MIN;
  }

  /**
   * Goes on with the packet that starts at `start`; the bytes before the last call's `end` are the same as then.
   *
   * @returns the packet's length in bytes once it is there as a whole, and the next call is about the packet behind it;
   *   0 while more bytes are needed; −1 when there is no packet, and nothing that follows can be read
   */
  scan(bytes: Uint8Array, start: number, end: number): number {
    while (this.#expects !== Expected.nothing) {
      const at = start + this.#next;
      if (at + 4 > end) return 0;
      const value = getInt(bytes, at);
      this.#next += 4;
      if (this.#expects === Expected.count) this.#onCount(value);
      else if (!this.#onLength(value)) return -1;
      if (this.#next + this.#textsLeft * 4 > this.#packetBytesMax) return -1;
    }
    if (start + this.#next > end) return 0;
    const length = this.#next;
    this.#next = DATA_LENGTH_OFFSET;
    this.#expects = Expected.dataLength;
    return length;
  }

  /** A null vector reads as an empty one. */
  #onCount(count: number): void {
    this.#textsLeft = 2 * Math.max(count, 0);
    this.#expects = count > 0 ? Expected.textLength : Expected.nothing;
  }

  /** @returns false when it is no length */
  #onLength(length: number): boolean {
    if (length < -1 || length > this.#fieldBytesMax) return false;
    this.#next += Math.max(length, 0);
    if (this.#expects === Expected.dataLength) {
      this.#expects = Expected.count;
    } else {
      this.#textsLeft--;
      if (this.#textsLeft === 0) this.#expects = Expected.nothing;
    }
    return true;
  }
}

/** Type, zxid, two lengths. */
const PACKET_BYTES_MIN = 20;
const DATA_LENGTH_OFFSET = 12;

const Expected = { dataLength: 0, count: 1, textLength: 2, nothing: 3 } as const;
type Expected = (typeof Expected)[keyof typeof Expected];
