import { EMPTY_BYTES, getInt } from '@meerkat/protocol';
import { InputBuffer } from '../links/input-buffer.ts';

/**
 * Passes whole frames and buffers the beginning of an incomplete one, so that bytes that arrive one by one cost the
 * core's thread nothing. It does not validate: frames longer than its limit, and what is not a frame at all, pass
 * immediately.
 */
export class FrameGate {
  readonly #keptBytesMax: number;
  readonly #input: InputBuffer = new InputBuffer();
  /** Bytes of a long frame that have not arrived yet. */
  #passing = 0;

  /** @param keptBytesMax most that is kept of a frame, including its length prefix */
  constructor(keptBytesMax: number) {
    this.#keptBytesMax = keptBytesMax;
  }

  /** @returns what may pass, from this and earlier chunks; empty when nothing may yet. The receiver owns it */
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
    // What is kept is copied: a view would keep a much larger buffer alive.
    else if (at > start || bytes === chunk) {
      input.clear();
      input.append(bytes.slice(at, end));
    }
    return at === start ? EMPTY_BYTES : start === 0 && at === bytes.length ? bytes : bytes.subarray(start, at);
  }
}

const LENGTH_BYTES = 4;
/** Bytes of an incomplete frame that an I/O thread keeps per connection. */
export const GATE_BYTES_MAX: number = 32 * 1024;
