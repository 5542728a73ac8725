import type { SeededRandom } from './seeded-random.ts';
import type { Timeline } from './timeline.ts';

/** One end of a stream tells its owner. Bytes are the owner's to keep. */
export interface EndEvents {
  onBytes(chunk: Uint8Array): void;
  /** Everything that was queued has left. */
  onDrain(): void;
  /** Told once; nothing follows. */
  onClosed(reason: CloseReason): void;
}

export type CloseReason = 'closed by peer' | 'reset by peer';

/** How fast and how smoothly bytes travel from one host to another. */
export interface LinkQuality {
  readonly delayMinMs: number;
  readonly delayMaxMs: number;
  /** Probability that what is written at once arrives in two pieces. */
  readonly splitChance: number;
  /** Probability that it is joined to what is still on its way. */
  readonly mergeChance: number;
}

export const DEFAULT_LINK: LinkQuality = { delayMinMs: 0.1, delayMaxMs: 1, splitChance: 0.05, mergeChance: 0.05 };

/** Why nobody could be reached; told after a while, as a real network does. */
export type ConnectFailure = 'refused' | 'unreachable';

export interface ConnectEvents extends EndEvents {
  onOpen(): void;
  onFailed(failure: ConnectFailure): void;
}

/**
 * A network of named hosts with streams of bytes between them, first in, first out, until they break.
 *
 *     write ─► segments, each with its moment of arrival ─► the other end
 *                   │ blocked (partition): waits, as a kernel retransmits
 *                   └ broken (`breakStream`): a prefix still arrives, the rest is lost, both ends hear of it
 *
 * A direction between two hosts can be blocked on its own. A stream may outlive a block: whoever does not want to wait
 * has a time limit of his own.
 */
export class VirtualNetwork {
  readonly #timeline: Timeline;
  readonly #random: SeededRandom;
  readonly #listeners: Map<string, (end: VirtualEnd) => EndEvents | null> = new Map();
  readonly #ends: Set<VirtualEnd> = new Set();
  readonly #blocked: Set<string> = new Set();
  readonly #slow: Map<string, LinkQuality> = new Map();
  readonly #quality: LinkQuality;
  #nextPort = 40_000;

  constructor(timeline: Timeline, random: SeededRandom, quality: LinkQuality = DEFAULT_LINK) {
    this.#timeline = timeline;
    this.#random = random;
    this.#quality = quality;
  }

  /** Streams that are open, on either side. */
  get openEnds(): readonly VirtualEnd[] {
    return [...this.#ends];
  }

  /** Takes connections at `host:port`; `accept` returns null to close one at once. */
  listen(host: string, port: number, accept: (end: VirtualEnd) => EndEvents | null): () => void {
    const place = `${host}:${port}`;
    if (this.#listeners.has(place)) throw new Error(`somebody listens at ${place} already`);
    this.#listeners.set(place, accept);
    return () => void this.#listeners.delete(place);
  }

  /** Opens a stream. @returns this side's end; it is of use once `onOpen` has been told */
  connect(source: string, host: string, port: number, events: ConnectEvents): VirtualEnd {
    const here = new VirtualEnd(this, source, this.#nextPort++, host);
    const there = new VirtualEnd(this, host, port, source);
    here.join(there, events);
    // The request for a connection travels, and its answer travels back.
    this.#travel(source, host, () => {
      if (here.isClosed) return;
      const accept = this.#listeners.get(`${host}:${port}`);
      if (accept === undefined) {
        this.#travel(host, source, () => {
          if (here.isClosed) return;
          here.forget();
          events.onFailed('refused');
        });
        return;
      }
      this.#ends.add(there);
      there.join(here, null);
      const theirs = accept(there);
      if (theirs === null) {
        there.destroy();
        return;
      }
      there.listen(theirs);
      this.#travel(host, source, () => {
        if (here.isClosed) return;
        this.#ends.add(here);
        events.onOpen();
        here.start();
      });
    });
    return here;
  }

  /** Nothing travels from one host to the other any more, until `unblock`. One way only. */
  block(source: string, target: string): void {
    this.#blocked.add(`${source}>${target}`);
  }

  unblock(source: string, target: string): void {
    this.#blocked.delete(`${source}>${target}`);
    for (const end of [...this.#ends]) if (end.host === source && end.peerHost === target) end.retransmit();
  }

  /** Parts the hosts of one group from all others, both ways. */
  partition(group: readonly string[], others: readonly string[]): void {
    for (const a of group) {
      for (const b of others) {
        this.block(a, b);
        this.block(b, a);
      }
    }
  }

  /** Ends all blocks and slow links. */
  heal(): void {
    this.#slow.clear();
    for (const pair of [...this.#blocked]) {
      const [source = '', target = ''] = pair.split('>');
      this.unblock(source, target);
    }
  }

  slowDown(source: string, target: string, quality: LinkQuality): void {
    this.#slow.set(`${source}>${target}`, quality);
  }

  isBlocked(source: string, target: string): boolean {
    return this.#blocked.has(`${source}>${target}`);
  }

  /** A host has gone, with its power: its ends are dead and tell nobody; the other ends hear of it when they write. */
  dropHost(host: string): void {
    for (const end of [...this.#ends]) if (end.host === host) end.vanish();
    for (const place of [...this.#listeners.keys()]) if (place.startsWith(`${host}:`)) this.#listeners.delete(place);
  }

  /** @internal For `VirtualEnd`. */
  qualityOf(source: string, target: string): LinkQuality {
    return this.#slow.get(`${source}>${target}`) ?? this.#quality;
  }

  /** @internal For `VirtualEnd`. */
  get timeline(): Timeline {
    return this.#timeline;
  }

  /** @internal For `VirtualEnd`. */
  get random(): SeededRandom {
    return this.#random;
  }

  /** @internal For `VirtualEnd`. */
  onEndClosed(end: VirtualEnd): void {
    this.#ends.delete(end);
  }

  delayMs(source: string, target: string): number {
    const { delayMinMs, delayMaxMs } = this.qualityOf(source, target);
    return delayMinMs + this.#random.fraction() * (delayMaxMs - delayMinMs);
  }

  #travel(source: string, target: string, arrive: () => void): void {
    this.#timeline.after(this.delayMs(source, target), () => {
      if (!this.isBlocked(source, target)) arrive();
      // As a kernel tries again, with growing pauses.
      else this.#timeline.after(RETRY_MS, () => this.#travel(source, target, arrive));
    });
  }
}

/** Pause of a kernel that repeats what was not acknowledged. */
const RETRY_MS = 200;
/** Bytes on their way that the sender's kernel takes before it says that it is full. */
const WINDOW_BYTES = 256 * 1024;

interface Segment {
  /** null is the end of the stream. */
  bytes: Uint8Array | null;
  readonly close: CloseReason | null;
}

/** One end of a stream. */
export class VirtualEnd {
  readonly host: string;
  readonly port: number;
  readonly peerHost: string;
  readonly #network: VirtualNetwork;
  #peer: VirtualEnd | null = null;
  #events: EndEvents | null = null;
  /** What arrived before somebody listened. */
  #early: Segment[] | null = [];
  /** Sent, not arrived yet, oldest first. */
  readonly #onTheWay: Segment[] = [];
  #bytesOnTheWay = 0;
  #lastArrivalMs = 0;
  #isPaused = false;
  readonly #held: Segment[] = [];
  #isClosed = false;
  /** Its host is gone: nothing of it does anything any more. */
  #isDead = false;
  #isEnding = false;
  #owesDrain = false;

  constructor(network: VirtualNetwork, host: string, port: number, peerHost: string) {
    this.#network = network;
    this.host = host;
    this.port = port;
    this.peerHost = peerHost;
  }

  /** @internal */
  join(peer: VirtualEnd, events: EndEvents | null): void {
    this.#peer = peer;
    this.#events = events;
  }

  /** @internal From now on arrivals are told. */
  listen(events: EndEvents): void {
    this.#events = events;
    this.start();
  }

  /** @internal */
  start(): void {
    const early = this.#early ?? [];
    this.#early = null;
    for (const segment of early) this.#take(segment);
  }

  /** @internal The connection never came to be. */
  forget(): void {
    this.#isClosed = true;
    this.#network.onEndClosed(this);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Port of the other end. */
  get peerPort(): number {
    return this.#peer?.port ?? 0;
  }

  /** Bytes that the kernel of this host could not take yet. */
  get queuedBytes(): number {
    return Math.max(0, this.#bytesOnTheWay - WINDOW_BYTES);
  }

  get isPeerDead(): boolean {
    const peer = this.#peer;
    return peer === null ? false : peer.#isDead;
  }

  write(bytes: Uint8Array): void {
    if (this.#isClosed || this.#isEnding || bytes.length === 0) return;
    if (this.isPeerDead) {
      // The other host is gone: its successor, or a router, answers with a reset.
      this.#network.timeline.after(this.#network.delayMs(this.host, this.peerHost), () => this.#onReset());
      return;
    }
    const { random } = this.#network;
    const { splitChance, mergeChance } = this.#network.qualityOf(this.host, this.peerHost);
    this.#bytesOnTheWay += bytes.length;
    if (this.queuedBytes > 0) this.#owesDrain = true;
    const last = this.#onTheWay.at(-1);
    if (last !== undefined && last.bytes !== null && random.chance(mergeChance)) {
      last.bytes = concat(last.bytes, bytes);
      return;
    }
    if (bytes.length > 1 && random.chance(splitChance)) {
      const at = random.between(1, bytes.length - 1);
      this.#send({ bytes: bytes.slice(0, at), close: null });
      this.#send({ bytes: bytes.slice(at), close: null });
    } else this.#send({ bytes: bytes.slice(), close: null });
  }

  /** Closes after what was written. */
  end(): void {
    if (this.#isClosed || this.#isEnding) return;
    this.#isEnding = true;
    this.#send({ bytes: null, close: 'closed by peer' });
    this.#network.timeline.after(0, () => this.#close('closed by peer'));
  }

  /** Closes at once; what has not arrived at the other end is lost. No event of this end follows. */
  destroy(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#network.onEndClosed(this);
    this.#onTheWay.length = 0;
    this.#bytesOnTheWay = 0;
    this.#send({ bytes: null, close: 'reset by peer' });
  }

  /** No bytes are told until `resume`; they wait here, and at last the sender's kernel is full. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    while (!this.#isPaused && this.#held.length > 0) this.#take(this.#held.shift()!);
  }

  /** The stream breaks: of what is on its way a part by chance still arrives, then both ends hear of a reset. */
  breakStream(): void {
    for (const end of [this, this.#peer]) {
      if (end === null || end.#isClosed) continue;
      const kept = end.#network.random.between(0, end.#onTheWay.length);
      end.#onTheWay.length = kept;
      end.#network.timeline.after(end.#network.delayMs(end.peerHost, end.host), () => end.#onReset());
    }
  }

  /** @internal */
  vanish(): void {
    this.#isDead = true;
    this.#isClosed = true;
    this.#network.onEndClosed(this);
    this.#onTheWay.length = 0;
  }

  /** @internal What waited for a block to end sets out again. */
  retransmit(): void {
    if (this.#onTheWay.length > 0) this.#planArrival();
  }

  #send(segment: Segment): void {
    this.#onTheWay.push(segment);
    this.#planArrival();
  }

  #planArrival(): void {
    const { timeline } = this.#network;
    const atMs = Math.max(this.#lastArrivalMs, timeline.nowMs + this.#network.delayMs(this.host, this.peerHost));
    this.#lastArrivalMs = atMs;
    timeline.after(atMs - timeline.nowMs, () => this.#arrive());
  }

  /** The oldest segment has arrived, unless it was lost, or is blocked: `retransmit` plans it anew then. */
  #arrive(): void {
    if (this.#isDead || this.#network.isBlocked(this.host, this.peerHost)) return;
    const segment = this.#onTheWay.shift();
    const peer = this.#peer;
    if (segment === undefined || peer === null) return;
    this.#bytesOnTheWay -= segment.bytes?.length ?? 0;
    peer.#receive(segment);
    if (this.#owesDrain && this.queuedBytes === 0 && !this.#isClosed) {
      this.#owesDrain = false;
      this.#events?.onDrain();
    }
    // Segments that a block has held back have no arrival of their own planned any more.
    if (this.#onTheWay.length > 0 && this.#lastArrivalMs <= this.#network.timeline.nowMs) this.#planArrival();
  }

  #receive(segment: Segment): void {
    if (this.#isClosed) return;
    if (this.#early !== null) this.#early.push(segment);
    else if (this.#isPaused || this.#held.length > 0) this.#held.push(segment);
    else this.#take(segment);
  }

  #take(segment: Segment): void {
    if (this.#isClosed) return;
    if (segment.bytes !== null) this.#events?.onBytes(segment.bytes);
    else this.#close(segment.close ?? 'closed by peer');
  }

  #onReset(): void {
    this.#close('reset by peer');
  }

  #close(reason: CloseReason): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#network.onEndClosed(this);
    this.#events?.onClosed(reason);
  }
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
