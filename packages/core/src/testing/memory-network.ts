import type {
  ByteStream,
  Clock,
  ConnectEvents,
  Endpoint,
  ListenEvents,
  Network,
  PeerAddress,
  Random,
  StreamEvents,
} from '../base/ports.ts';

/** A seeded pseudo-random generator (xorshift). */
export class TestRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed ^ 0x9e3779b9) >>> 0 || 1;
    for (let i = 0; i < 8; i++) this.uint32();
  }

  uint32(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x >>> 0;
    return this.#state;
  }

  /** 0 … count − 1 */
  below(count: number): number {
    return Math.floor((this.uint32() / 2 ** 32) * count);
  }
}

export interface MemoryNetworkOptions {
  /** Maximum time in milliseconds until bytes arrive. */
  readonly delayMaxMs: number;
  /** Largest piece in which bytes arrive; every piece has a random length up to it. */
  readonly chunkBytesMax: number;
  /** Bytes in flight above which more are queued at the sender. */
  readonly windowBytes: number;
}

const DEFAULTS: MemoryNetworkOptions = { delayMaxMs: 5, chunkBytesMax: 100, windowBytes: 64 * 1024 };

interface Happening {
  readonly atMs: number;
  readonly number: number;
  readonly happen: () => void;
}

/**
 * Hosts and streams between them, in virtual time: the port `Network` for tests of code that uses streams.
 *
 * Everything happens in `step`, so a run with the same seed is the same run. Queued bytes are read when they are sent:
 * a caller that overwrites them too early is detected.
 */
export class MemoryNetwork {
  nowMs = 1_000_000;
  readonly random: TestRandom;
  readonly options: MemoryNetworkOptions;
  readonly clock: Clock = { monotonicMs: () => this.nowMs, wallMs: () => this.nowMs };
  readonly streams: Set<MemoryStream> = new Set();
  /** Endpoints where listening fails for now, as `host:port`. */
  readonly unlistenable: Set<string> = new Set();
  /** Pairs of hosts, as `source>target`, between which everything is silently lost. */
  readonly blackHoles: Set<string> = new Set();
  /** Endpoints, as `host:port`, that have no room for accepted streams. */
  readonly crowded: Set<string> = new Set();
  /** Every attempt to connect, as `source>host:port`. */
  readonly dials: string[] = [];
  readonly #listeners = new Map<string, { readonly host: string; readonly events: ListenEvents }>();
  #happenings: Happening[] = [];
  #count = 0;

  constructor(seed: number, options: Partial<MemoryNetworkOptions> = {}) {
    this.random = new TestRandom(seed);
    this.options = { ...DEFAULTS, ...options };
  }

  /** The port of one host. */
  portOf(host: string): Network {
    return {
      listen: (at, events) => this.#listen(host, at, events),
      connect: (to, events) => this.#connect(host, to, events),
    };
  }

  get nextEventMs(): number {
    return this.#happenings.reduce((least, { atMs }) => Math.min(least, atMs), Number.POSITIVE_INFINITY);
  }

  /** Runs the next event. @returns false when nothing is in flight */
  step(): boolean {
    let next: Happening | undefined;
    for (const one of this.#happenings) {
      if (next === undefined || one.atMs < next.atMs || (one.atMs === next.atMs && one.number < next.number))
        next = one;
    }
    if (next === undefined) return false;
    this.#happenings = this.#happenings.filter((one) => one !== next);
    this.nowMs = Math.max(this.nowMs, next.atMs);
    next.happen();
    return true;
  }

  /** Runs all events, including those that result from them. */
  settle(): void {
    while (this.step());
  }

  later(happen: () => void, delayMs: number = this.random.below(this.options.delayMaxMs + 1)): void {
    this.#happenings.push({ atMs: this.nowMs + delayMs, number: this.#count++, happen });
  }

  /** Two connected ends; their events are delivered once `events` are set. */
  makePair(source: string, target: Endpoint): readonly [MemoryStream, MemoryStream] {
    const here = new MemoryStream(this, source, addressOf(target.host, target.port));
    const there = new MemoryStream(this, target.host, addressOf(source, 40_000 + this.#count++));
    here.join(there);
    there.join(here);
    this.streams.add(here).add(there);
    return [here, there];
  }

  /** Breaks the streams between the hosts; both ends are notified. */
  breakStreams(a: string, b: string): void {
    for (const stream of [...this.streams]) {
      const { host } = stream.remote;
      if ((stream.host === a && host === b) || (stream.host === b && host === a)) stream.reset();
    }
  }

  /** The host crashes: it receives no more events; unless `isSilent`, its peers see their streams reset. */
  crash(host: string, isSilent = false): void {
    for (const [place, listener] of this.#listeners) if (listener.host === host) this.#listeners.delete(place);
    for (const stream of [...this.streams]) if (stream.host === host) stream.vanish(isSilent);
  }

  isSwallowed(source: string, target: string): boolean {
    return this.blackHoles.has(`${source}>${target}`);
  }

  #listen(host: string, at: Endpoint, events: ListenEvents): { close(): void } {
    const place = `${at.host}:${at.port}`;
    const listener = { host, events };
    let isClosed = false;
    this.later(() => {
      if (isClosed) return;
      if (this.unlistenable.has(place) || this.#listeners.has(place)) {
        events.onListenFailed('EADDRINUSE');
        return;
      }
      this.#listeners.set(place, listener);
      events.onListening();
    }, 0);
    return {
      close: () => {
        isClosed = true;
        if (this.#listeners.get(place) === listener) this.#listeners.delete(place);
      },
    };
  }

  #connect(source: string, to: Endpoint, events: ConnectEvents): { cancel(): void } {
    const place = `${to.host}:${to.port}`;
    this.dials.push(`${source}>${place}`);
    let isCancelled = false;
    this.later(() => {
      if (isCancelled || this.isSwallowed(source, to.host) || this.isSwallowed(to.host, source)) return;
      const listener = this.#listeners.get(place);
      if (listener === undefined) {
        this.later(() => {
          if (!isCancelled) events.onConnectFailed('refused');
        });
        return;
      }
      const [here, there] = this.makePair(source, to);
      there.isCrowding = this.crowded.has(place);
      there.open(listener.events.onAccepted(there));
      this.later(() => {
        if (isCancelled) here.destroy();
        else if (here.isClosed) events.onConnectFailed('reset');
        else here.open(events.onConnected(here));
      });
    });
    return {
      cancel: () => {
        isCancelled = true;
      },
    };
  }
}

/** One end of a stream. */
export class MemoryStream implements ByteStream {
  readonly host: string;
  readonly remote: PeerAddress;
  isClosed = false;
  isCrowding = false;
  readonly #network: MemoryNetwork;
  #peer: MemoryStream | null = null;
  #events: StreamEvents | null = null;
  /** Bytes written that have not arrived, oldest first. */
  #outgoing: Uint8Array[] = [];
  #outgoingBytes = 0;
  #isDrainOwed = false;
  #isMoving = false;
  #isEnding = false;
  #isPaused = false;
  #room: (() => Uint8Array) | null = null;

  constructor(network: MemoryNetwork, host: string, remote: PeerAddress) {
    this.#network = network;
    this.host = host;
    this.remote = remote;
  }

  get queuedBytes(): number {
    return this.isClosed ? 0 : Math.max(0, this.#outgoingBytes - this.#network.options.windowBytes);
  }

  join(peer: MemoryStream): void {
    this.#peer = peer;
  }

  open(events: StreamEvents): void {
    this.#events = events;
    if (this.isClosed) this.#deliverClosed('reset by peer');
    else this.#peer?.move();
  }

  write(bytes: Uint8Array): void {
    if (this.isClosed || this.#isEnding) return;
    this.#outgoingBytes += bytes.length;
    if (this.queuedBytes > 0) this.#isDrainOwed = true;
    this.#outgoing.push(this.queuedBytes > 0 ? bytes : bytes.slice());
    this.move();
  }

  end(): void {
    this.#isEnding = true;
    this.move();
  }

  destroy(): void {
    this.reset();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#peer?.move();
  }

  readInto(room: () => Uint8Array): void {
    this.#room = room;
  }

  #deliverBytes(events: StreamEvents, piece: Uint8Array): void {
    if (this.#room === null) {
      events.onBytes(piece);
      return;
    }
    for (let at = 0; at < piece.length; ) {
      const room = this.#room();
      const chunk = room.subarray(0, piece.length - at);
      chunk.set(piece.subarray(at, at + chunk.length));
      at += chunk.length;
      events.onBytes(chunk);
    }
  }

  /** Breaks the stream; both ends are notified. */
  reset(): void {
    if (this.isClosed) return;
    const peer = this.#peer;
    this.#close('closed by this server');
    peer?.breakOff('reset by peer');
  }

  /** The host of this end has crashed. */
  vanish(isSilent: boolean): void {
    const peer = this.#peer;
    this.#events = null;
    this.isClosed = true;
    this.#network.streams.delete(this);
    if (!isSilent) peer?.breakOff('reset by peer');
  }

  breakOff(reason: string): void {
    this.#network.later(() => this.#close(reason));
  }

  /** Delivers one piece, and then the next. */
  move(): void {
    if (this.#isMoving || this.isClosed || (this.#outgoing.length === 0 && !this.#isEnding)) return;
    this.#isMoving = true;
    this.#network.later(() => {
      this.#isMoving = false;
      const peer = this.#peer;
      if (this.isClosed || peer === null || this.#network.isSwallowed(this.host, peer.host)) return;
      if (peer.isClosed) {
        this.#close('reset by peer');
        return;
      }
      if (peer.#events === null || peer.#isPaused) return;
      const piece = this.#takePiece();
      if (piece === null) {
        peer.#close('closed by peer');
        this.#close('closed by this server');
        return;
      }
      peer.#deliverBytes(peer.#events, piece);
      this.#maybeDrain();
      this.move();
    });
  }

  #takePiece(): Uint8Array | null {
    const first = this.#outgoing[0];
    if (first === undefined) return null;
    const { random, options } = this.#network;
    const length = Math.min(first.length, 1 + random.below(options.chunkBytesMax));
    const piece = first.slice(0, length);
    this.#outgoingBytes -= length;
    if (length === first.length) this.#outgoing.shift();
    else this.#outgoing[0] = first.subarray(length);
    return piece;
  }

  #maybeDrain(): void {
    if (!this.#isDrainOwed || this.queuedBytes > 0) return;
    this.#isDrainOwed = false;
    this.#network.later(() => {
      if (this.isClosed) return;
      if (this.queuedBytes > 0) {
        // More was written meanwhile: not everything has been sent.
        this.#isDrainOwed = true;
        return;
      }
      // Copied: after onDrain the writer may reuse its memory.
      this.#outgoing = this.#outgoing.map((bytes) => bytes.slice());
      this.#events?.onDrain();
    }, 0);
  }

  #close(reason: string): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#outgoing = [];
    this.#network.streams.delete(this);
    if (this.#events !== null) this.#network.later(() => this.#deliverClosed(reason), 0);
  }

  #deliverClosed(reason: string): void {
    const events = this.#events;
    this.#events = null;
    events?.onClosed(reason);
  }
}

function addressOf(host: string, port: number): PeerAddress {
  return { ip: new Uint8Array([10, 0, 0, 1]), host, port };
}
