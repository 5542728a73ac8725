import { ErrorCode, type JuteChunks, type JuteWriter, writeConnectResponse } from '@meerkat/protocol';
import type { ByteStream } from '../base/ports.ts';
import type { ReplyOutput } from '../request/client.ts';
import type { ConnectionHost } from './connection-host.ts';
import { ConnectionOutput, isSentAtOnce, LENGTH_BYTES, OUTPUT_BYTES_MAX } from './connection-output.ts';
import type { ConnectionStats } from './connection-stats.ts';

/** Whose output it is. */
interface OutputOwner {
  readonly stats: ConnectionStats;
  close(reason: string): void;
}

/**
 * What a server writes to a client: replies, events, the answer to a word. Whatever is written is counted, and announced
 * to the one that keeps all connections, who has it leave.
 */
export class ClientOutput<Connection extends OutputOwner> implements ReplyOutput {
  readonly #owner: Connection;
  readonly #host: ConnectionHost<Connection>;
  readonly #bytes: ConnectionOutput;
  /** `flush` is to be called in this turn. */
  #isAnnounced = false;
  /** `onEventsTaken` is to be called in one of the next turns. */
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

  /** True when so much is queued that no further request is answered. */
  get isFull(): boolean {
    return this.#bytes.isFull;
  }

  get isTooMuch(): boolean {
    return this.#bytes.isTooMuch;
  }

  /** @param sessionId 0 when it is refused */
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
    // A long one leaves at once, and what was answered before it.
    if (isSentAtOnce(record) && !this.#host.connections.gate.look()) {
      this.#owner.close('this server may answer no client at the moment');
      return;
    }
    this.beginReply(xid, zxid, ErrorCode.ok);
    const bytes = this.#bytes.endReplyWith(record);
    this.#host.work.add(bytes >> SENT_PER_UNIT_SHIFT);
    this.#countReply(receivedMs, bytes);
    this.#tellUntaken();
  }

  holdEvents(): void {
    this.#bytes.holdEvents();
  }

  /** @param frame a whole one, see `encodeEvent` */
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
   * Hands everything to the stream, in one write.
   *
   * @returns true when it was full and has room again at once: as the stream took everything, no `onDrain` will come
   */
  flush(): boolean {
    this.#isAnnounced = false;
    if (this.#bytes.isEmpty) return false;
    const wasFull = this.#bytes.isFull;
    this.#host.turn.meters.sentBytes += this.#bytes.flush();
    this.#tellUntaken();
    return wasFull && !this.#bytes.isFull;
  }

  /** What `onEvents` has told is known: `flush` follows. */
  onEventsTaken(): void {
    this.#hasEvents = false;
  }

  onDrain(): void {
    this.#bytes.onDrain();
    this.#host.connections.onTaken(this.#owner);
  }

  /** Forgets what was not flushed. */
  discard(): void {
    this.#bytes.discard();
  }

  #tellUntaken(): void {
    if (this.#bytes.isBackedUp) this.#host.connections.onUntaken(this.#owner, this.#bytes.queuedBytes);
  }

  /** Something is about to be written: `flush` is to be called in this turn. */
  #announce(): void {
    if (this.#isAnnounced) return;
    this.#isAnnounced = true;
    this.#host.connections.onOutput(this.#owner);
  }

  /** An event is about to be written. It may wait for a turn; a reply that comes behind it takes it along. */
  #announceEvents(): void {
    if (this.#isAnnounced || this.#hasEvents) return;
    this.#hasEvents = true;
    this.#host.connections.onEvents(this.#owner);
  }

  #countReply(receivedMs: number, bytes: number): void {
    const nowMs = this.#host.turn.nowMs();
    // It came at a fraction of a millisecond, perhaps of this one.
    const latencyMs = Math.max(0, nowMs - receivedMs);
    this.#owner.stats.onReply(this.#host.pipeline.lastApplied, latencyMs, nowMs);
    this.#countSent(latencyMs, bytes);
  }

  #countSent(latencyMs: number, bytes: number): void {
    this.#owner.stats.packetsSent++;
    this.#host.stats.onReply(latencyMs, bytes);
  }
}

/** What the bytes of a long reply cost, most of it in the kernel: a unit for 256 of them. */
const SENT_PER_UNIT_SHIFT = 8;

const ENCODER = new TextEncoder();
