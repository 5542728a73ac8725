import { JuteReader, QuorumPacketScanner } from '@meerkat/protocol';
import type { Timeline } from '../timeline.ts';
import type { CloseReason, EndEvents, VirtualEnd } from '../virtual-network.ts';

export interface PacketSocketOwner<Packet> {
  /** `raw` are the packet's own bytes; `packet` is null when they mean nothing. */
  onPacket(packet: Packet | null, raw: Uint8Array): void;
  /** Closed by the other side, broken, or nothing was read for too long. Called once, and not after `close`. */
  onSocketClosed(reason: string): void;
}

/**
 * One end of a connection to the quorum port, read like a thread of 3.8.0 does: one packet after the other, with a
 * timeout for each read. While the thread is blocked elsewhere, received data waits.
 */
export class PacketSocket<Packet> implements EndEvents {
  readonly #timeline: Timeline;
  readonly #read: (reader: JuteReader) => Packet | null;
  readonly #owner: PacketSocketOwner<Packet>;
  #end: VirtualEnd | null = null;
  #bytes: Uint8Array = new Uint8Array(0);
  #scanner = new QuorumPacketScanner();
  #isBlocked = false;
  #isReading = false;
  #isClosed = false;
  #pendingClose: string | null = null;
  #timeoutMs = Number.POSITIVE_INFINITY;
  #cancelTimeout: () => void = () => {};
  /** Set while other data than a packet is expected: returns the number of bytes consumed, 0 while it needs more. */
  #takeRaw: ((bytes: Uint8Array) => number) | null = null;

  constructor(timeline: Timeline, read: (reader: JuteReader) => Packet | null, owner: PacketSocketOwner<Packet>) {
    this.#timeline = timeline;
    this.#read = read;
    this.#owner = owner;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  open(end: VirtualEnd): void {
    this.#end = end;
  }

  /** `setSoTimeout`: timeout of one read. */
  setTimeout(ms: number): void {
    this.#timeoutMs = ms;
    this.#restartTimeout();
  }

  write(bytes: Uint8Array): void {
    if (!this.#isClosed) this.#end?.write(bytes);
  }

  /** The thread does not read until `unblock`. */
  block(): void {
    this.#isBlocked = true;
    this.#cancelTimeout();
  }

  unblock(): void {
    if (!this.#isBlocked) return;
    this.#isBlocked = false;
    this.#restartTimeout();
    // Waiting data is read in a separate event.
    this.#timeline.after(0, () => this.#readPackets());
  }

  /** The next bytes are not a packet. */
  expectRaw(take: (bytes: Uint8Array) => number): void {
    this.#takeRaw = take;
  }

  /** Closes after sending what was written. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelTimeout();
    this.#end?.end();
  }

  onBytes(chunk: Uint8Array): void {
    if (this.#isClosed) return;
    const both = new Uint8Array(this.#bytes.length + chunk.length);
    both.set(this.#bytes);
    both.set(chunk, this.#bytes.length);
    this.#bytes = both;
    if (!this.#isBlocked) this.#restartTimeout();
    this.#readPackets();
  }

  onDrain(): void {}

  onClosed(reason: CloseReason): void {
    this.#pendingClose = reason;
    this.#maybeReportClosed();
  }

  #readPackets(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    while (!this.#isBlocked && !this.#isClosed) {
      if (this.#takeRaw !== null) {
        const taken = this.#takeRaw(this.#bytes);
        if (taken === 0) break;
        this.#takeRaw = null;
        this.#bytes = this.#bytes.slice(taken);
        continue;
      }
      const length = this.#scanner.scan(this.#bytes, 0, this.#bytes.length);
      if (length === 0) break;
      const raw = length < 0 ? this.#bytes : this.#bytes.slice(0, length);
      this.#bytes = this.#bytes.slice(length < 0 ? this.#bytes.length : length);
      this.#owner.onPacket(length < 0 ? null : this.#read(new JuteReader(raw)), raw);
    }
    this.#isReading = false;
    this.#maybeReportClosed();
  }

  /** The end of the stream is read after all data before it. */
  #maybeReportClosed(): void {
    if (this.#pendingClose === null || this.#isBlocked || this.#isClosed || this.#isReading) return;
    this.#reportClosed(this.#pendingClose);
  }

  #reportClosed(reason: string): void {
    this.close();
    this.#owner.onSocketClosed(reason);
  }

  #restartTimeout(): void {
    this.#cancelTimeout();
    if (this.#isClosed || this.#isBlocked || this.#timeoutMs === Number.POSITIVE_INFINITY) return;
    const timeoutMs = this.#timeoutMs;
    this.#cancelTimeout = this.#timeline.after(timeoutMs, () =>
      this.#reportClosed(`nothing was read for ${timeoutMs} ms`),
    );
  }
}
