import { EMPTY_BYTES, getInt, JuteReader, QuorumPacketScanner, type Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { InputBuffer } from './input-buffer.ts';
import type { ReadMemory } from './read-memory.ts';
import { isTlsHello, SPEAKS_TLS } from './tls-hello.ts';

/** Takes bytes that are not packets from the stream. */
export interface RawReceiver {
  /** @returns how many bytes were consumed; the rest is passed again, together with what follows */
  read(bytes: Uint8Array, start: number, end: number): number;
  /** True when packets follow. */
  readonly isComplete: boolean;
  /** What is wrong with the bytes; otherwise null. */
  readonly fault: string | null;
}

export interface PacketInputEvents<Packet> {
  onPacket(packet: Packet): void;
  /** The receiver passed to `divert` is complete. */
  onReceived(): void;
  /** There is no valid packet where one should be; nothing more is read. */
  onFault(reason: string): void;
  /** The stream has ended, and everything received has been delivered. */
  onEnd(reason: string): void;
}

/**
 * Decodes the packets of a stream and delivers them one by one.
 *
 *     chunks ──► packets ──► SNAP: `divert` ──► a receiver, until it is complete ──► packets ──► end
 *
 * There are no events while it is paused, not even the end. Views inside a packet stay valid, because their bytes are
 * not written again, except in memory given by `roomIn`. A view that is kept retains its chunk.
 */
export class PacketInput<Packet> {
  readonly #scanner: QuorumPacketScanner;
  readonly #reader: JuteReader;
  readonly #readPacket: (reader: JuteReader) => Packet | null;
  readonly #events: PacketInputEvents<Packet>;
  readonly #input = new InputBuffer();
  #receiver: RawReceiver | null = null;
  #isPaused = false;
  #isOver = false;
  #endReason: string | null = null;

  /** @param fieldBytesMax largest field of a packet */
  constructor(
    fieldBytesMax: number,
    readPacket: (reader: JuteReader) => Packet | null,
    events: PacketInputEvents<Packet>,
  ) {
    this.#scanner = new QuorumPacketScanner(fieldBytesMax);
    this.#reader = new JuteReader(EMPTY_BYTES, fieldBytesMax);
    this.#readPacket = readPacket;
    this.#events = events;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Events may follow once `resume` and `advance` have been called. */
  get isWaiting(): boolean {
    return !this.#isOver && (!this.#input.isEmpty || this.#endReason !== null);
  }

  /**
   * Where the stream may read to.
   *
   * @param lastZxid the last txn that has been delivered
   */
  roomIn(memory: ReadMemory, lastZxid: Zxid): Uint8Array {
    return memory.roomOf(this.#input, lastZxid);
  }

  onBytes(chunk: Uint8Array): void {
    if (this.#isOver || this.#endReason !== null) return;
    this.#input.appendPart(chunk);
    this.advance();
  }

  /** The stream has ended or was abandoned: the first reason counts. */
  onClosed(reason: string): void {
    this.#endReason ??= reason;
    this.advance();
  }

  /** The bytes after the current packet belong to the receiver. */
  divert(receiver: RawReceiver): void {
    assert(this.#receiver === null, 'raw bytes have one receiver');
    this.#receiver = receiver;
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** No events before `advance`, or before more bytes arrive. */
  resume(): void {
    this.#isPaused = false;
  }

  /** No events follow. */
  stop(): void {
    this.#isOver = true;
    this.#receiver = null;
    this.#input.clear();
  }

  advance(): void {
    while (!this.#isPaused && !this.#isOver) {
      const hasRead = this.#receiver === null ? this.#deliverPacket() : this.#feed(this.#receiver);
      if (!hasRead && !this.#input.more()) break;
    }
    if (this.#isPaused || this.#isOver || this.#endReason === null) return;
    this.stop();
    this.#events.onEnd(this.#endReason);
  }

  /** @returns false when more bytes are needed, or reading is over */
  #deliverPacket(): boolean {
    const input = this.#input;
    const { bytes, start } = input;
    const length = this.#scanner.scan(bytes, start, input.end);
    if (length === 0) return false;
    if (length < 0) return this.#fail(`there is no packet where one should be${describe(bytes, start, input.end)}`);
    this.#reader.reset(bytes, start, start + length);
    input.start = start + length;
    const packet = this.#readPacket(this.#reader);
    if (packet === null)
      return this.#fail(`a packet of ${length} bytes is malformed${describe(bytes, start, input.end)}`);
    this.#events.onPacket(packet);
    return true;
  }

  #feed(receiver: RawReceiver): boolean {
    const input = this.#input;
    input.start += receiver.read(input.bytes, input.start, input.end);
    if (receiver.fault !== null) return this.#fail(receiver.fault);
    if (!receiver.isComplete) return false;
    this.#receiver = null;
    this.#events.onReceived();
    return true;
  }

  #fail(reason: string): false {
    this.stop();
    this.#events.onFault(reason);
    return false;
  }
}

/** The type helps to find out whether the peer was a server at all. */
function describe(bytes: Uint8Array, start: number, end: number): string {
  if (end - start < 4) return '';
  const type = getInt(bytes, start);
  return isTlsHello(type) ? `: ${SPEAKS_TLS}` : ` (its type is ${type})`;
}
