import { EMPTY_BYTES, getInt } from '@meerkat/protocol';
import { InputBuffer } from '../links/input-buffer.ts';

/**
 * Lets whole frames pass, and keeps the beginning of one that is not complete, so that bytes that come one by one cost the thread of
 * the core nothing. It judges nothing: what is longer than it keeps, and what is no frame at all, passes as it comes.
 */
export class FrameGate {
  readonly #keptBytesMax: number;
  readonly #input: InputBuffer = new InputBuffer();
  /** Bytes of a long frame that are still to come. */
  #passing = 0;

  /** @param keptBytesMax of a frame, with its length before it */
  constructor(keptBytesMax: number) {
    this.#keptBytesMax = keptBytesMax;
  }

  /** @returns what may pass, of this and of former chunks; empty when nothing may yet. It is the receiver's to keep */
  pass(chunk: Uint8Array): Uint8Array {
    const input = this.#input;
    if (input.isEmpty && this.#passing >= chunk.length) {
      this.#passing -= chunk.length;
      return chunk;
    }
    input.append(chunk);
    const { bytes, start, end } = input;
    let at = start + Math.min(this.#passing, end - start);
    this.#passing -= at - start;
    while (end - at >= LENGTH_BYTES) {
      const length = getInt(bytes, at);
      const whole = LENGTH_BYTES + length;
      if (length < 0) {
        this.#passing = Number.POSITIVE_INFINITY;
        at = end;
      } else if (whole <= end - at) at += whole;
      else if (whole <= this.#keptBytesMax) break;
      else {
        this.#passing = whole - (end - at);
        at = end;
      }
    }
    if (at === end) input.clear();
    // What is kept is copied: it would hold memory that is many times as long.
    else if (at > start || bytes === chunk) {
      input.clear();
      input.append(bytes.slice(at, end));
    }
    return at === start ? EMPTY_BYTES : start === 0 && at === bytes.length ? bytes : bytes.subarray(start, at);
  }
}

const LENGTH_BYTES = 4;
/** Bytes of an incomplete frame that an I/O thread keeps of a connection. */
export const GATE_BYTES_MAX: number = 32 * 1024;
