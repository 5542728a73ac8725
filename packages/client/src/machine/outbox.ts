import { JuteWriter, type Request, writeRequest } from '@meerkat/protocol';
import type { MonotonicClock } from './ports.ts';
import type { Timing } from './timing.ts';

export interface OutboxEffects {
  /** @returns true when the bytes have been written, so that the memory may be reused */
  write(bytes: Uint8Array): boolean;
  /** Requests a call of `flush` once all code that is running now has completed. */
  flushSoon(): void;
}

/** The output buffer: requests are added as they come and sent together, in one write. */
export class Outbox {
  readonly #effects: OutboxEffects;
  readonly #clock: MonotonicClock;
  readonly #timing: Timing;
  #writer: JuteWriter = new JuteWriter(WRITER_BYTES);
  #isFlushAsked = false;

  constructor(effects: OutboxEffects, clock: MonotonicClock, timing: Timing) {
    this.#effects = effects;
    this.#clock = clock;
    this.#timing = timing;
  }

  /** Writes a frame without a RequestHeader: the first one of a connection. It is sent at once. */
  writeFirst(write: (writer: JuteWriter) => void): void {
    const writer = this.#writer;
    writer.position = 0;
    const at = writer.beginFrame();
    write(writer);
    writer.endFrame(at);
    this.flush();
  }

  /**
   * @returns the length of the frame without its length field, in bytes; more than `bytesMax`: it was not written
   * @throws Error for a record with a field that cannot be written; nothing of it is
   */
  write(xid: number, request: Request, bytesMax: number = Number.POSITIVE_INFINITY): number {
    if (!this.#isFlushAsked) {
      this.#isFlushAsked = true;
      this.#timing.onSending(this.#clock.monotonicMs());
      this.#effects.flushSoon();
    }
    const writer = this.#writer;
    const at = writer.beginFrame();
    writer.int(xid);
    writer.int(request.op);
    try {
      writeRequest(writer, request);
    } catch (error) {
      writer.position = at;
      throw error;
    }
    const frameBytes = writer.position - at - 4;
    if (frameBytes > bytesMax) {
      writer.position = at;
      return frameBytes;
    }
    writer.endFrame(at);
    if (writer.position >= FLUSH_BYTES) this.flush();
    return frameBytes;
  }

  /** Sends everything written since the last call. */
  flush(): void {
    this.#isFlushAsked = false;
    const writer = this.#writer;
    if (writer.position === 0) return;
    const canReuse = this.#effects.write(writer.written());
    if (canReuse && writer.bytes.length <= WRITER_BYTES_KEPT) writer.position = 0;
    else this.#writer = new JuteWriter(WRITER_BYTES);
  }

  /** Drops what has not been sent: the connection is gone. */
  clear(): void {
    this.#writer.position = 0;
  }
}

const WRITER_BYTES = 16 * 1024;
/** A buffer that grew beyond this is not kept. */
const WRITER_BYTES_KEPT = 256 * 1024;
/** This much is sent without waiting for the rest, so that the server can start. */
const FLUSH_BYTES = 64 * 1024;
