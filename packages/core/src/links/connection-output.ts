import {
  type ErrorCode,
  type JuteChunks,
  type JuteWriter,
  putInt,
  REPLY_HEADER_BYTES,
  writeReplyHeader,
} from '@meerkat/protocol';
import type { ByteStream } from '../base/ports.ts';
import type { OutputPool } from './output-pool.ts';

/** Length field of a frame, which ZooKeeper does not count as part of a reply. */
export const LENGTH_BYTES: number = 4;
/** Records below this length are copied into the turn's output. */
const COPIED_BYTES_MAX = 0x10000;
/** Queued bytes at which no further requests of a client are answered. */
const BYTES_HIGH = 1024 * 1024;
/** Bytes of events, or of replies that leave before the client's own next write, at which it is disconnected. */
export const OUTPUT_BYTES_MAX: number = 16 * 1024 * 1024;

/** True for a record that is not copied into the turn's output: it leaves now, after what has been written. */
export function isSentAtOnce(record: JuteChunks): boolean {
  return record.bytes >= COPIED_BYTES_MAX;
}

/**
 * Output to a client: collected during a turn, handed to the stream at its end, in one write.
 *
 *     writer() … writer() ──► flush ──► stream ──► the peer takes it ──► onDrain
 *
 * The buffer is taken from the pool for the first bytes of a turn, and returned when the stream has passed them on.
 */
export class ConnectionOutput {
  readonly #stream: ByteStream;
  readonly #pool: OutputPool;
  #writer: JuteWriter | null = null;
  /** Buffers held by the stream: free again once it has passed on everything. */
  #lent: JuteWriter[] = [];
  /** Long replies held by the stream. */
  #lentRecords: JuteChunks[] = [];
  /** The stream holds bytes that the peer has not taken. */
  #isBackedUp = false;
  /** Bytes of long replies among them. */
  #appendedBytes = 0;
  /** Bytes that left before the end of the turn because of a long reply. */
  #appendedSinceFlush = 0;
  /** Start of the reply that is being written. */
  #replyAt = 0;
  /** Events to be written after the next reply; null when events need not wait. */
  #heldEvents: Uint8Array[] | null = null;
  #heldEventBytes = 0;
  /** Upper bound of event bytes that the peer has not taken. */
  #eventBytes = 0;

  constructor(stream: ByteStream, pool: OutputPool) {
    this.#stream = stream;
    this.#pool = pool;
  }

  /** True when nothing was written since the last flush. */
  get isEmpty(): boolean {
    return this.#writer === null;
  }

  get isBackedUp(): boolean {
    return this.#isBackedUp;
  }

  /** Bytes that the peer has not taken. */
  get queuedBytes(): number {
    const unflushed = this.#writer === null ? 0 : this.#writer.position;
    return this.#isBackedUp ? unflushed + this.#stream.queuedBytes : unflushed;
  }

  /** True when more is queued than a client may leave unread. The length of long replies is not counted. */
  get isTooMuch(): boolean {
    return this.queuedBytes > OUTPUT_BYTES_MAX + this.#appendedBytes || this.#heldEventBytes > OUTPUT_BYTES_MAX;
  }

  /** True when more events are queued than a client may leave unread, regardless of long replies before them. */
  get hasTooManyEvents(): boolean {
    return this.#eventBytes + this.#heldEventBytes > OUTPUT_BYTES_MAX;
  }

  get isFull(): boolean {
    return this.queuedBytes >= BYTES_HIGH;
  }

  /** Writer for the next bytes; valid until the end of the turn. */
  writer(): JuteWriter {
    this.#writer ??= this.#pool.take();
    return this.#writer;
  }

  /** Starts a reply; its record is written to the returned writer. */
  beginReply(xid: number, zxid: number, error: ErrorCode): JuteWriter {
    const writer = this.writer();
    this.#replyAt = writer.beginFrame();
    writeReplyHeader(writer, xid, zxid, error);
    return writer;
  }

  /** @returns bytes of the reply as ZooKeeper counts them, without its length field */
  endReply(): number {
    const writer = this.writer();
    writer.endFrame(this.#replyAt);
    const bytes = writer.position - this.#replyAt - LENGTH_BYTES;
    if (this.#heldEvents !== null) this.#writeHeldEvents(this.#heldEvents);
    return bytes;
  }

  /**
   * Adds a record to the current reply and ends it. A long record is not copied; it is released when the stream has
   * passed it on.
   *
   * @returns as `endReply`
   */
  endReplyWith(record: JuteChunks): number {
    const writer = this.writer();
    if (!isSentAtOnce(record)) {
      for (const piece of record.pieces) writer.raw(piece);
      record.release();
      return this.endReply();
    }
    const bytes = REPLY_HEADER_BYTES + record.bytes;
    putInt(writer.bytes, this.#replyAt, bytes);
    this.#append(record);
    if (this.#heldEvents !== null) this.#writeHeldEvents(this.#heldEvents);
    return bytes;
  }

  get holdsEvents(): boolean {
    return this.#heldEvents !== null;
  }

  /** From now on events wait until after the next reply. */
  holdEvents(): void {
    this.#heldEvents ??= [];
  }

  /** @param frame a complete frame */
  writeEvent(frame: Uint8Array): void {
    if (this.#heldEvents === null) {
      this.writer().raw(frame);
      this.#eventBytes += frame.length;
    } else {
      this.#heldEvents.push(frame);
      this.#heldEventBytes += frame.length;
    }
  }

  #writeHeldEvents(frames: readonly Uint8Array[]): void {
    this.#heldEvents = null;
    this.#heldEventBytes = 0;
    for (const frame of frames) {
      this.writer().raw(frame);
      this.#eventBytes += frame.length;
    }
  }

  /** @returns bytes handed to the stream since the last flush */
  flush(): number {
    const appended = this.#appendedSinceFlush;
    this.#appendedSinceFlush = 0;
    const writer = this.#writer;
    if (writer === null) return appended;
    const bytes = writer.position + appended;
    this.#writer = null;
    this.#stream.write(writer.written());
    this.#eventBytes = Math.min(this.#eventBytes, this.#stream.queuedBytes);
    if (this.#stream.queuedBytes === 0) this.#pool.give(writer);
    else {
      this.#isBackedUp = true;
      this.#lent.push(writer);
    }
    return bytes;
  }

  /** Sends what has been written, then the record, whose bytes must no longer change. */
  #append(record: JuteChunks): void {
    let sent = this.flush();
    for (const piece of record.pieces) {
      this.#stream.write(piece);
      this.#appendedBytes += piece.length;
      sent += piece.length;
    }
    this.#appendedSinceFlush = sent;
    if (this.#stream.queuedBytes > 0) {
      this.#isBackedUp = true;
      this.#lentRecords.push(record);
    } else {
      this.#appendedBytes = 0;
      record.release();
    }
  }

  onDrain(): void {
    for (const writer of this.#lent) this.#pool.give(writer);
    this.#lent = [];
    for (const record of this.#lentRecords) record.release();
    this.#lentRecords = [];
    this.#isBackedUp = false;
    this.#appendedBytes = 0;
    this.#eventBytes = 0;
  }

  /** Discards what was not flushed. */
  discard(): void {
    this.#writer = null;
  }
}
