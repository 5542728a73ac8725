import { ErrorCode, type JuteChunks, type JuteWriter, writeConnectResponse } from '@meerkat/protocol';
import type { ByteStream } from '../base/ports.ts';
import type { ReplyOutput } from '../request/client.ts';
import type { ConnectionHost } from './connection-host.ts';
import { ConnectionOutput, isSentAtOnce, LENGTH_BYTES, OUTPUT_BYTES_MAX } from './connection-output.ts';
import type { ConnectionStats } from './connection-stats.ts';

/** The connection that owns the output. */
interface OutputOwner {
  readonly stats: ConnectionStats;
  close(reason: string): void;
}

/**
 * What a server writes to a client: replies, events, four-letter answers. All output is counted and announced to
 * `ConnectionEvents`, which flushes it.
 */
export class ClientOutput<Connection extends OutputOwner> implements ReplyOutput {
  readonly #owner: Connection;
  readonly #host: ConnectionHost<Connection>;
  readonly #bytes: ConnectionOutput;
  /** `flush` will be called in this turn. */
  #isAnnounced = false;
  /** `onEventsTaken` will be called in one of the next turns. */
  #hasEvents = false;

  constructor(owner: Connection, stream: ByteStream, host: ConnectionHost<Connection>) {
    this.#owner = owner;
    this.#host = host;
    this.#bytes = new ConnectionOutput(stream, host.outputPool);
  }

  /** True when nothing was written since the last flush. */
  get isEmpty(): boolean {
    return this.#bytes.isEmpty;
  }

  /** True while the peer has not taken everything that was flushed. */
  get isBackedUp(): boolean {
    return this.#bytes.isBackedUp;
  }

  /** True when so much is queued that no further requests are answered. */
  get isFull(): boolean {
    return this.#bytes.isFull;
  }

  get isTooMuch(): boolean {
    return this.#bytes.isTooMuch;
  }

  /** @param sessionId 0 when the session is refused */
  connectResponse(sessionId: bigint, timeoutMs: number, password: Uint8Array, hasReadOnlyByte: boolean): void {
    this.#announce();
    const writer = this.#bytes.writer();
    const at = writer.beginFrame();
    const readOnly = this.#host.isReadOnly;
    writeConnectResponse(writer, { protocolVersion: 0, timeoutMs, sessionId, password, readOnly, hasReadOnlyByte });
    writer.endFrame(at);
    this.#countSent(0, writer.position - at - LENGTH_BYTES);
  }

  beginReply(xid: number, zxid: number, error: ErrorCode): JuteWriter {
    this.#announce();
    return this.#bytes.beginReply(xid, zxid, error);
  }

  endReply(receivedMs: number): void {
    this.#countReply(receivedMs, this.#bytes.endReply());
  }

  reply(xid: number, zxid: number, record: JuteChunks, receivedMs: number): void {
    // A long reply leaves at once, together with everything before it.
    if (isSentAtOnce(record) && !this.#host.connections.gate.look()) {
      this.#owner.close('this server may not send replies at the moment');
      return;
    }
    this.beginReply(xid, zxid, ErrorCode.ok);
    const bytes = this.#bytes.endReplyWith(record);
    this.#host.work.add(bytes >> SENT_PER_UNIT_SHIFT);
    this.#countReply(receivedMs, bytes);
    this.#reportUntaken();
  }

  holdEvents(): void {
    this.#bytes.holdEvents();
  }

  /** @param frame a complete frame, see `encodeEvent` */
  event(frame: Uint8Array): void {
    if (!this.#bytes.holdsEvents) this.#announceEvents();
    this.#bytes.writeEvent(frame);
    this.#owner.stats.packetsSent++;
    this.#host.stats.packetsSent++;
    this.#host.turn.meters.eventBytes += frame.length;
    if (!this.#bytes.hasTooManyEvents) return;
    this.#owner.close(`it does not read: ${OUTPUT_BYTES_MAX} bytes of events are queued`);
  }

  /** A piece of the answer to a four-letter word. */
  text(piece: string): void {
    this.#announce();
    this.#bytes.writer().raw(ENCODER.encode(piece));
  }

  /**
   * Hands everything to the stream in one write.
   *
   * @returns true when it was full and has room again at once: the stream took everything, so `onDrain` will not be
   * called
   */
  flush(): boolean {
    this.#isAnnounced = false;
    const { isEmpty, isFull: wasFull } = this.#bytes;
    // Also without anything to write: a long reply may have left already.
    this.#host.turn.meters.sentBytes += this.#bytes.flush();
    if (isEmpty) return false;
    this.#reportUntaken();
    return wasFull && !this.#bytes.isFull;
  }

  /** The announcement made by `onEvents` has been taken: `flush` follows. */
  onEventsTaken(): void {
    this.#hasEvents = false;
  }

  onDrain(): void {
    this.#bytes.onDrain();
    this.#host.connections.onTaken(this.#owner);
  }

  /** Discards what was not flushed. */
  discard(): void {
    this.#bytes.discard();
  }

  #reportUntaken(): void {
    if (this.#bytes.isBackedUp) this.#host.connections.onUntaken(this.#owner, this.#bytes.queuedBytes);
  }

  /** Output is about to be written: requests a `flush` in this turn. */
  #announce(): void {
    if (this.#isAnnounced) return;
    this.#isAnnounced = true;
    this.#host.connections.onOutput(this.#owner);
  }

  /** An event is about to be written. It may wait for another turn; a reply written after it takes it along. */
  #announceEvents(): void {
    if (this.#isAnnounced || this.#hasEvents) return;
    this.#hasEvents = true;
    this.#host.connections.onEvents(this.#owner);
  }

  #countReply(receivedMs: number, bytes: number): void {
    const nowMs = this.#host.turn.nowMs();
    // It may have arrived at a fraction of the current millisecond.
    const latencyMs = Math.max(0, nowMs - receivedMs);
    this.#owner.stats.onReply(this.#host.pipeline.lastApplied, latencyMs, nowMs);
    this.#countSent(latencyMs, bytes);
  }

  #countSent(latencyMs: number, bytes: number): void {
    this.#owner.stats.packetsSent++;
    this.#host.stats.onReply(latencyMs, bytes);
  }
}

/** Cost of a long reply, mostly in the kernel: one unit per 256 bytes. */
const SENT_PER_UNIT_SHIFT = 8;

const ENCODER = new TextEncoder();
