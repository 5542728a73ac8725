import type { PeerCertificate } from '@meerkat/core';
import type { LinkQuality } from './link-quality.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { StreamTap, StreamValve } from './stream-tap.ts';
import type { PlannedEvent, Timeline } from './timeline.ts';

/** Events for the owner of one end of a stream. The owner may keep the bytes. */
export interface EndEvents {
  onBytes(chunk: Uint8Array): void;
  /** Everything that was queued has left. */
  onDrain(): void;
  /** Called once, as the last event. */
  onClosed(reason: CloseReason): void;
}

export type CloseReason = 'closed here' | 'closed by peer' | 'reset by peer';

/** The network, as seen by its ends. */
export interface EndNetwork {
  readonly timeline: Timeline;
  readonly random: SeededRandom;
  readonly tap: StreamTap | null;
  readonly valve: StreamValve | null;
  /** Bytes that the kernels of both sides buffer, of a stream to this port, before the sender's reports that it is full. */
  readonly windowBytesOf: (servicePort: number) => number;
  isBlocked(source: string, target: string): boolean;
  isEndBlocked(end: VirtualEnd): boolean;
  qualityOf(source: string, target: string): LinkQuality;
  delayMs(source: string, target: string): number;
  /** A sender's kernel is full. */
  onBackedUp(): void;
  /** The end is closed, and nothing that it sent is in flight. */
  onEndOver(end: VirtualEnd): void;
}

interface Segment {
  /** null is the end of the stream. */
  bytes: Uint8Array | null;
  /** The bytes are the writer's memory, which belongs to the stream for now. */
  isBorrowed: boolean;
  readonly close: CloseReason | null;
  arrivesMs: number;
}

/**
 * One end of a stream.
 *
 *     write ─► #way, the oldest first ─► peer: #held while it cannot take them ─► onBytes
 *
 * One event is planned for the oldest segment on its way, however many there are.
 */
export class VirtualEnd {
  readonly host: string;
  readonly port: number;
  readonly peerHost: string;
  /** The port that was listened at: this end's, or the other's. */
  readonly servicePort: number;
  /** Number of the stream, the same at both ends; never used twice. */
  readonly connection: number;
  /** What the other end has shown when it connected. */
  peerCertificate: PeerCertificate | null = null;
  readonly #network: EndNetwork;
  #peer: VirtualEnd | null = null;
  #events: EndEvents | null = null;
  /** Sent, not arrived yet, oldest first. */
  readonly #way: Segment[] = [];
  #arrival: PlannedEvent | null = null;
  #lastArrivalMs = 0;
  /** Written here and not taken by the other side's process yet. */
  #untakenBytes = 0;
  #owesDrain = false;
  /** What the kernels had no room for: it is in the writer's memory until there is. */
  #borrowed: Segment[] = [];
  /** Arrived, not delivered yet: there is no listener, or the owner or its whole process is paused. */
  readonly #held: Segment[] = [];
  #isReleasePlanned = false;
  #isPaused = false;
  #isFrozen = false;
  #isClosed = false;
  /** Its host has lost power since. */
  #isDead = false;
  #isEnding = false;
  /** The stream is broken, and its owner has not been notified yet: what is written now is lost. */
  #isBroken = false;
  /** Close reason that is delivered once the owner listens. */
  #pendingCloseReason: CloseReason | null = null;

  constructor(
    network: EndNetwork,
    connection: number,
    host: string,
    port: number,
    peerHost: string,
    servicePort: number,
  ) {
    this.#network = network;
    this.connection = connection;
    this.host = host;
    this.port = port;
    this.peerHost = peerHost;
    this.servicePort = servicePort;
  }

  /** @internal */
  join(peer: VirtualEnd): void {
    this.#peer = peer;
  }

  /** Delivers arrivals from now on, including earlier ones. */
  listen(events: EndEvents): void {
    this.#events = events;
    this.#release();
    const reason = this.#pendingCloseReason;
    if (reason !== null) this.#network.timeline.plan(0, () => events.onClosed(reason));
  }

  /** @internal The connection was never established. */
  forget(): void {
    this.#isClosed = true;
    this.#network.onEndOver(this);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Closed, and nothing that it sent is in flight. */
  get isOver(): boolean {
    return this.#isClosed && this.#way.length === 0;
  }

  get isPeerOver(): boolean {
    return this.#peer?.isOver ?? true;
  }

  /** Port of the other end. */
  get peerPort(): number {
    return this.#peer?.port ?? 0;
  }

  /** Host of the listening side. */
  get serviceHost(): string {
    return this.port === this.servicePort ? this.host : this.peerHost;
  }

  /** Bytes that the other process has not taken and the kernels have no room for. */
  get queuedBytes(): number {
    return Math.max(0, this.#untakenBytes - this.#network.windowBytesOf(this.servicePort));
  }

  /** Takes a copy of what the kernels have room for; see `ByteStream.write`. */
  write(bytes: Uint8Array): void {
    if (this.#isClosed || this.#isEnding || bytes.length === 0) return;
    const { tap, valve } = this.#network;
    tap?.onBytes(this.connection, this.host, 'sent', bytes);
    const admitted = valve === null ? bytes.length : valve.admit(this.connection, this.host, bytes.length);
    if (admitted > 0) this.#setOut(admitted < bytes.length ? bytes.subarray(0, admitted) : bytes);
  }

  #setOut(bytes: Uint8Array): void {
    const { random } = this.#network;
    const { splitChance, mergeChance, dribbleChance = 0 } = this.#network.qualityOf(this.host, this.peerHost);
    this.#untakenBytes += bytes.length;
    if (this.queuedBytes > 0 && !this.#owesDrain) {
      this.#owesDrain = true;
      this.#network.onBackedUp();
    }
    const last = this.#way.at(-1);
    const fate = random.fraction();
    const begin = this.#way.length;
    const own = (start: number, end?: number): Uint8Array =>
      this.#owesDrain ? bytes.subarray(start, end) : bytes.slice(start, end);
    if (fate < mergeChance && last !== undefined && last.bytes !== null && !this.#isBroken) {
      last.bytes = concat(last.bytes, bytes);
    } else if (fate > 1 - splitChance && bytes.length > 1) {
      const at = random.between(1, bytes.length - 1);
      this.#send(own(0, at));
      this.#send(own(at));
    } else if (fate > 1 - splitChance - dribbleChance) {
      const singles = Math.min(bytes.length, DRIBBLED_BYTES_MAX);
      for (let i = 0; i < singles; i++) this.#send(own(i, i + 1));
      if (bytes.length > singles) this.#send(own(singles));
    } else this.#send(own(0));
    if (this.#owesDrain) this.#borrow(this.#way.slice(begin));
  }

  #borrow(segments: readonly Segment[]): void {
    for (const segment of segments) segment.isBorrowed = true;
    this.#borrowed.push(...segments);
  }

  /** The kernels have room for all of it: the writer's memory is free again. */
  #returnBorrowed(): void {
    for (const segment of this.#borrowed) {
      segment.bytes = segment.bytes?.slice() ?? null;
      segment.isBorrowed = false;
    }
    this.#borrowed = [];
  }

  /** Closes after what was written; `onClosed` follows. */
  end(): void {
    if (this.#isClosed || this.#isEnding) return;
    this.#isEnding = true;
    this.#send(null, 'closed by peer');
    this.#network.timeline.plan(0, () => this.#close('closed here'));
  }

  /**
   * Closes at once. No event of this end follows. What is in flight arrives completely or not at all, as with a kernel
   * that may have unread bytes.
   */
  destroy(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#held.length = 0;
    if (this.#isEnding) return;
    if (this.#isBroken) {
      if (this.#way.length === 0) this.#network.onEndOver(this);
    } else if (this.#network.random.chance(RESET_CHANCE)) {
      this.#way.length = 0;
      // A reset is not retransmitted.
      if (!this.#network.isEndBlocked(this)) this.#send(null, 'reset by peer');
      else this.#network.onEndOver(this);
    } else this.#send(null, 'closed by peer');
  }

  /** Delivers no bytes until `resume`: they wait here, until the sender's kernel is full. */
  pause(): void {
    this.#isPaused = true;
  }

  /** What waited is delivered in an event of its own. */
  resume(): void {
    this.#isPaused = false;
    this.#planRelease();
  }

  /** @internal The process is paused. */
  freeze(): void {
    this.#isFrozen = true;
  }

  /** @internal */
  thaw(): void {
    this.#isFrozen = false;
    this.#planRelease();
  }

  /** The stream breaks: a random part of what is in flight still arrives, then both ends are reset. */
  breakStream(): void {
    for (const end of [this, this.#peer]) {
      if (end === null) continue;
      const { random, timeline } = end.#network;
      end.#isBroken = true;
      end.#cutWay(end.#network.isEndBlocked(end) ? 0 : random.between(0, end.#way.length));
      if (!end.#isClosed) {
        timeline.plan(end.#network.delayMs(end.peerHost, end.host), () => end.#close('reset by peer'));
      }
    }
  }

  /** @internal Its host loses power; a random part of what was sent still arrives. */
  vanish(): void {
    this.#isDead = true;
    this.#isClosed = true;
    this.#held.length = 0;
    this.#cutWay(this.#network.random.between(0, this.#way.length));
    if (this.#way.length === 0) this.#network.onEndOver(this);
  }

  /** @internal Sends again what waited for a block to end. */
  retransmit(): void {
    const oldest = this.#way[0];
    if (oldest === undefined || this.#arrival !== null || this.#network.isEndBlocked(this)) return;
    const { timeline } = this.#network;
    oldest.arrivesMs = Math.max(oldest.arrivesMs, timeline.nowMs + this.#network.delayMs(this.host, this.peerHost));
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, oldest.arrivesMs);
    this.#planArrival(oldest);
  }

  /** Keeps the first `count` segments in flight, the last of them in part. */
  #cutWay(count: number): void {
    this.#way.length = count;
    const last = this.#way.at(-1);
    if (last === undefined || last.bytes === null || last.bytes.length < 2) return;
    last.bytes = last.bytes.subarray(0, this.#network.random.between(1, last.bytes.length));
  }

  #send(bytes: Uint8Array | null, close: CloseReason | null = null): void {
    if (this.#isBroken) return;
    const { timeline } = this.#network;
    const { bytesPerMs } = this.#network.qualityOf(this.host, this.peerHost);
    let arrivesMs = timeline.nowMs + this.#network.delayMs(this.host, this.peerHost);
    if (arrivesMs < this.#lastArrivalMs) arrivesMs = this.#lastArrivalMs;
    if (bytesPerMs !== undefined && bytes !== null) arrivesMs += bytes.length / bytesPerMs;
    this.#lastArrivalMs = arrivesMs;
    const segment = { bytes, isBorrowed: false, close, arrivesMs };
    this.#way.push(segment);
    if (this.#way.length === 1) this.#planArrival(segment);
  }

  #planArrival(segment: Segment): void {
    const { timeline } = this.#network;
    if (this.#arrival !== null) timeline.cancel(this.#arrival);
    this.#arrival = timeline.plan(segment.arrivesMs - timeline.nowMs, this.#arrive);
  }

  /** Delivers everything that is due, unless the end is blocked: then `retransmit` schedules it again. */
  readonly #arrive = (): void => {
    this.#arrival = null;
    if (this.#network.isEndBlocked(this)) return;
    const { nowMs } = this.#network.timeline;
    const peer = this.#peer;
    for (;;) {
      const segment = this.#way[0];
      if (segment === undefined || segment.arrivesMs > nowMs) break;
      this.#way.shift();
      if (peer !== null) peer.#receive(segment);
    }
    const next = this.#way[0];
    // If an event handler has sent something, its arrival is scheduled already.
    if (next !== undefined) {
      if (this.#arrival === null) this.#planArrival(next);
    } else if (this.#isClosed) this.#network.onEndOver(this);
  };

  #receive(segment: Segment): void {
    if (this.#isClosed) {
      this.#answerClosed(segment);
      return;
    }
    this.#held.push(segment);
    this.#release();
  }

  /** A kernel resets a stream that it does not know. */
  #answerClosed(segment: Segment): void {
    const peer = this.#peer;
    // A closed end whose close is still in flight needs no reset.
    if (peer === null || segment.bytes === null || (this.#way.length > 0 && !this.#isDead)) return;
    if (this.#network.isBlocked(this.host, this.peerHost)) return;
    this.#network.timeline.plan(this.#network.delayMs(this.host, this.peerHost), () => peer.#close('reset by peer'));
  }

  #planRelease(): void {
    if (this.#isReleasePlanned || this.#held.length === 0) return;
    this.#isReleasePlanned = true;
    this.#network.timeline.plan(0, () => {
      this.#isReleasePlanned = false;
      this.#release();
    });
  }

  #release(): void {
    while (this.#held.length > 0 && this.#events !== null && !this.#isPaused && !this.#isFrozen && !this.#isClosed) {
      const segment = this.#held.shift()!;
      const { close } = segment;
      // Its memory may be used again from the next event on.
      const bytes = segment.isBorrowed ? (segment.bytes?.slice() ?? null) : segment.bytes;
      if (bytes === null) this.#close(close ?? 'closed by peer');
      else {
        if (this.#peer !== null) this.#peer.#onTaken(bytes.length);
        this.#network.tap?.onBytes(this.connection, this.peerHost, 'received', bytes);
        this.#events.onBytes(bytes);
      }
    }
  }

  #onTaken(count: number): void {
    this.#untakenBytes -= count;
    if (!this.#owesDrain || this.queuedBytes > 0) return;
    this.#owesDrain = false;
    this.#returnBorrowed();
    this.#network.timeline.plan(0, () => {
      if (!this.#isClosed) this.#events?.onDrain();
    });
  }

  #close(reason: CloseReason): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#held.length = 0;
    // What was in flight before the reset is lost.
    if (reason === 'reset by peer') this.#way.length = 0;
    if (this.#way.length === 0) this.#network.onEndOver(this);
    if (this.#events === null) this.#pendingCloseReason = reason;
    else this.#events.onClosed(reason);
  }
}

const DRIBBLED_BYTES_MAX = 40;
/** How often an end that is closed at once resets the stream. */
const RESET_CHANCE = 0.4;

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
