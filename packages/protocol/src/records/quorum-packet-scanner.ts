import { DEFAULT_FIELD_BYTES_MAX } from '../jute/reader.ts';
import { getInt } from '../jute/writer.ts';

/**
 * Finds the ends of packets on the quorum port, which only follow from their fields. Each field's length is read once,
 * even when a packet arrives byte by byte, so a slow or hostile peer costs no more than its bytes.
 *
 *     │ type │ zxid │ length │ data ··· │ count │ length │ scheme │ length │ id │ …
 *       4      8      4                   4       4 ─────────────── count times
 *                     └ #next: the first field that has not been read yet
 */
export class QuorumPacketScanner {
  readonly #fieldBytesMax: number;
  /** A packet holds at most one large field; the other bytes are for the client's identities. */
  readonly #packetBytesMax: number;
  /** Offset, from the start of the packet, of the next length or count to read. */
  #next = DATA_LENGTH_OFFSET;
  #expects: Expected = Expected.dataLength;
  /** Number of schemes and ids that have not been read yet. */
  #textsLeft = 0;

  constructor(fieldBytesMax: number = DEFAULT_FIELD_BYTES_MAX) {
    this.#fieldBytesMax = fieldBytesMax;
    this.#packetBytesMax = 2 * fieldBytesMax + PACKET_BYTES_MIN;
  }

  /**
   * Continues with the packet that starts at `start`; bytes before the last call's `end` must be unchanged.
   *
   * @returns the packet's length in bytes once it is complete, and the next call continues with the packet behind it;
   *   0 while more bytes are needed; −1 when the packet is invalid, and nothing that follows can be read
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

  /** @returns false when the length is invalid */
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
