import type { PeerCertificate } from '@meerkat/core';
import { DEFAULT_LINK, type LinkQuality } from './link-quality.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { StreamTap, StreamValve } from './stream-tap.ts';
import type { Timeline } from './timeline.ts';
import { type EndEvents, VirtualEnd } from './virtual-end.ts';

export { type CloseReason, type EndEvents, VirtualEnd } from './virtual-end.ts';

/** Why a connection failed; reported after a while, as in a real network. */
export type ConnectFailure = 'refused' | 'unreachable';

export interface ConnectEvents extends EndEvents {
  onOpen(): void;
  onFailed(failure: ConnectFailure): void;
}

interface VirtualListener {
  readonly accept: (end: VirtualEnd) => void;
  readonly onLost: () => void;
}

/**
 * A network of named hosts with streams of bytes between them, first in, first out, until they break.
 *
 *     write ─► segments, each with its moment of arrival ─► the other end
 *                   │ blocked (partition, host without power): waits, as a kernel retransmits
 *                   └ broken (`breakStream`): a prefix still arrives, the rest is lost, both ends are reset
 *
 * A direction between two hosts, and a port of a host, can be blocked separately. A stream may outlive a block: a program
 * that does not want to wait needs its own timeout. A reset is never retransmitted: when it meets a block, the other end
 * does not learn of it before it writes something.
 */
export class VirtualNetwork {
  readonly timeline: Timeline;
  readonly random: SeededRandom;
  readonly #quality: LinkQuality;
  readonly #listeners: Map<string, VirtualListener> = new Map();
  /** Open, or closed with something still on its way. */
  readonly #ends: Set<VirtualEnd> = new Set();
  /** `source>target`, and `host:port` in both directions. */
  readonly #blocked: Set<string> = new Set();
  /** `host` or `host:port`: connection requests are lost, open streams stay. */
  readonly #blackHoles: Set<string> = new Set();
  readonly #slow: Map<string, LinkQuality> = new Map();
  readonly #downHosts: Set<string> = new Set();
  readonly #ipOfHost: Map<string, Uint8Array> = new Map();
  #nextPort = PORT_MIN;
  #nextConnection = 1;
  /** null: streams are not observed. */
  tap: StreamTap | null = null;
  /** null: everything is sent. A valve that drops a part of a stream must break the stream before it lets more pass. */
  valve: StreamValve | null = null;

  /** Of a stream to a port: bytes that the kernels of both sides buffer before the sender's reports that it is full. */
  windowBytesOf: (servicePort: number) => number = () => WINDOW_BYTES;
  /** How often a sender's kernel was full. */
  backedUpCount = 0;

  constructor(timeline: Timeline, random: SeededRandom, quality: LinkQuality = DEFAULT_LINK) {
    this.timeline = timeline;
    this.random = random;
    this.#quality = quality;
  }

  /** @internal */
  onBackedUp(): void {
    this.backedUpCount++;
  }

  /** Ends that are open, of both sides. */
  get openEnds(): readonly VirtualEnd[] {
    return [...this.#ends].filter((end) => !end.isClosed);
  }

  /** Every host has an address of its own, 10.0.x.y. */
  ipOf(host: string): Uint8Array {
    let ip = this.#ipOfHost.get(host);
    if (ip === undefined) {
      const number = this.#ipOfHost.size + 1;
      ip = new Uint8Array([10, 0, number >> 8, number & 0xff]);
      this.#ipOfHost.set(host, ip);
    }
    return ip;
  }

  isListening(host: string, port: number): boolean {
    return this.#listeners.has(`${host}:${port}`);
  }

  /**
   * Takes connections at `host:port`.
   *
   * @param accept calls `end.listen` now or later; what arrives before that waits
   * @param onLost called by `closeListener`
   * @throws Error when the port is in use
   */
  listen(host: string, port: number, accept: VirtualListener['accept'], onLost: () => void = () => {}): () => void {
    const place = `${host}:${port}`;
    if (this.#listeners.has(place)) throw new Error(`${place} is already in use`);
    const listener = { accept, onLost };
    this.#listeners.set(place, listener);
    return () => {
      if (this.#listeners.get(place) === listener) this.#listeners.delete(place);
    };
  }

  /** Removes and notifies the listener of a port; connections stay. */
  closeListener(host: string, port: number): void {
    const place = `${host}:${port}`;
    const listener = this.#listeners.get(place);
    this.#listeners.delete(place);
    listener?.onLost();
  }

  /**
   * Opens a stream.
   *
   * @param certificate shown to the other end
   * @returns this side's end, usable once `onOpen` was called
   */
  connect(
    source: string,
    host: string,
    port: number,
    events: ConnectEvents,
    certificate: PeerCertificate | null = null,
  ): VirtualEnd {
    const connection = this.#nextConnection++;
    const here = new VirtualEnd(this, connection, source, this.#takePort(), host, port);
    const there = new VirtualEnd(this, connection, host, port, source, port);
    there.peerCertificate = certificate;
    here.join(there);
    there.join(here);
    const giveUpMs = this.timeline.nowMs + CONNECT_TIMEOUT_MS;
    const fail = (failure: ConnectFailure): void => {
      if (here.isClosed) return;
      here.forget();
      events.onFailed(failure);
    };
    // The connection request and its reply each take a while.
    const isOver = (): boolean => here.isClosed;
    this.#travel(here, RETRY_MS, giveUpMs, isOver, fail, () => {
      const listener = this.#listeners.get(`${host}:${port}`);
      if (listener === undefined) {
        this.#travel(there, RETRY_MS, giveUpMs, isOver, fail, () => fail('refused'));
        return;
      }
      this.#ends.add(there);
      this.tap?.onOpen(connection, source, host, port);
      listener.accept(there);
      this.#travel(there, RETRY_MS, giveUpMs, isOver, fail, () => {
        this.#ends.add(here);
        events.onOpen();
        here.listen(events);
      });
    });
    return here;
  }

  /** Blocks one direction between two hosts until `unblock`. */
  block(source: string, target: string): void {
    this.#blocked.add(`${source}>${target}`);
  }

  unblock(source: string, target: string): void {
    if (this.#blocked.delete(`${source}>${target}`)) this.#retransmit();
  }

  /** Blocks a port, in both directions and for all hosts, until `unblockPort`. */
  blockPort(host: string, port: number): void {
    this.#blocked.add(`${host}:${port}`);
  }

  unblockPort(host: string, port: number): void {
    if (this.#blocked.delete(`${host}:${port}`)) this.#retransmit();
  }

  /** Cuts the hosts of one group off from all others, both ways. */
  partition(group: readonly string[], others: readonly string[]): void {
    for (const a of group) {
      for (const b of others) {
        this.block(a, b);
        this.block(b, a);
      }
    }
  }

  /** Loses connection requests to a host, or to one of its ports; open streams stay. */
  dropConnects(host: string, port: number | null = null): void {
    this.#blackHoles.add(port === null ? host : `${host}:${port}`);
  }

  takeConnects(host: string, port: number | null = null): void {
    this.#blackHoles.delete(port === null ? host : `${host}:${port}`);
  }

  /** Ends all blocks, black holes and slow links. */
  heal(): void {
    this.#slow.clear();
    this.#blackHoles.clear();
    this.#blocked.clear();
    this.#retransmit();
  }

  slowDown(source: string, target: string, quality: LinkQuality): void {
    this.#slow.set(`${source}>${target}`, quality);
  }

  speedUp(source: string, target: string): void {
    this.#slow.delete(`${source}>${target}`);
  }

  isBlocked(source: string, target: string): boolean {
    return (this.#blocked.size > 0 && this.#blocked.has(`${source}>${target}`)) || this.#downHosts.has(target);
  }

  /** A host loses power: its ends die without notifying their peers, and everything sent to it is lost. */
  dropHost(host: string): void {
    this.#downHosts.add(host);
    this.#closeListeners(host);
    for (const end of [...this.#ends]) if (end.host === host) end.vanish();
  }

  /** A host has power again: it resets streams that it does not know when they deliver something. */
  restoreHost(host: string): void {
    if (this.#downHosts.delete(host)) this.#retransmit();
  }

  /** The process on a host has ended; its kernel closes or resets its streams. */
  closeHost(host: string): void {
    this.#closeListeners(host);
    for (const end of [...this.#ends]) if (end.host === host) end.destroy();
  }

  /** The process on a host is paused: its kernel keeps receiving, as far as it has room. */
  freezeHost(host: string): void {
    for (const end of this.#ends) if (end.host === host) end.freeze();
  }

  thawHost(host: string): void {
    for (const end of this.#ends) if (end.host === host) end.thaw();
  }

  /** @internal For `VirtualEnd`. */
  isEndBlocked(end: VirtualEnd): boolean {
    if (this.isBlocked(end.host, end.peerHost)) return true;
    if (this.#blocked.size === 0) return false;
    return this.#blocked.has(`${end.serviceHost}:${end.servicePort}`);
  }

  /** @internal For `VirtualEnd`. */
  qualityOf(source: string, target: string): LinkQuality {
    if (this.#slow.size === 0) return this.#quality;
    return this.#slow.get(`${source}>${target}`) ?? this.#quality;
  }

  /** @internal For `VirtualEnd`: it is closed, and nothing of it is on its way. */
  onEndOver(end: VirtualEnd): void {
    if (this.#ends.delete(end) && end.isPeerOver) this.tap?.onClose(end.connection);
  }

  /** @internal For `VirtualEnd`. */
  delayMs(source: string, target: string): number {
    const { delayMinMs, delayMaxMs } = this.qualityOf(source, target);
    return delayMinMs + this.random.fraction() * (delayMaxMs - delayMinMs);
  }

  #takePort(): number {
    this.#nextPort = this.#nextPort === PORT_MAX ? PORT_MIN : this.#nextPort + 1;
    return this.#nextPort;
  }

  #retransmit(): void {
    for (const end of [...this.#ends]) end.retransmit();
  }

  #closeListeners(host: string): void {
    for (const place of [...this.#listeners.keys()]) if (place.startsWith(`${host}:`)) this.#listeners.delete(place);
  }

  /** Sends a packet of the connection handshake, retransmitted with growing pauses. */
  #travel(
    from: VirtualEnd,
    retryMs: number,
    giveUpMs: number,
    isOver: () => boolean,
    fail: (failure: ConnectFailure) => void,
    arrive: () => void,
  ): void {
    const { timeline } = this;
    timeline.plan(this.delayMs(from.host, from.peerHost), () => {
      if (isOver()) return;
      const isLost =
        this.isEndBlocked(from) ||
        (this.#blackHoles.size > 0 &&
          (this.#blackHoles.has(from.serviceHost) || this.#blackHoles.has(`${from.serviceHost}:${from.servicePort}`)));
      if (!isLost) arrive();
      else if (timeline.nowMs + retryMs > giveUpMs) fail('unreachable');
      else
        timeline.plan(retryMs, () =>
          this.#travel(from, Math.min(retryMs * 2, RETRY_MAX_MS), giveUpMs, isOver, fail, arrive),
        );
    });
  }
}

/** Ports of the connecting side. */
const PORT_MIN = 40_000;
const PORT_MAX = 65_535;
/** First and longest pause between retransmissions; short, as simulated networks are small. */
const RETRY_MS = 100;
const RETRY_MAX_MS = 1600;
/** Milliseconds after which a kernel stops trying to connect. */
const CONNECT_TIMEOUT_MS = 60_000;

/** Bytes that the kernels of both sides of a stream buffer as a rule. */
export const WINDOW_BYTES: number = 256 * 1024;
