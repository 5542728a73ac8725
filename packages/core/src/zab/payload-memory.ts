import { JuteWriter } from '@meerkat/protocol';

/** Bytes of memory that payloads share. */
const SHARED_BYTES = 256 * 1024;
/** So much is left of what is shared when the next payload begins, or there is a new one. */
const ROOM_BYTES = 8 * 1024;

/**
 * Where the payloads of txns are written, one behind the other. Memory of its own for each would be an allocation outside
 * of the heap for each, which takes longer than to write a small one.
 *
 *     │ payload │ payload │ payload │ . . . . . . │       nothing is written twice
 */
export class PayloadMemory {
  #writer = new JuteWriter(SHARED_BYTES);
  #start = 0;

  /** Where the next payload is written. */
  begin(): JuteWriter {
    if (this.#writer.bytes.length - this.#writer.position < ROOM_BYTES) this.#writer = new JuteWriter(SHARED_BYTES);
    this.#start = this.#writer.position;
    return this.#writer;
  }

  /** @returns what was written since `begin` */
  end(): Uint8Array {
    const { bytes, position } = this.#writer;
    if (bytes.length === SHARED_BYTES) return bytes.subarray(this.#start, position);
    // It was longer than the room that was left, and keeps no more memory than it needs.
    this.#writer = new JuteWriter(SHARED_BYTES);
    return bytes.slice(this.#start, position);
  }
}
