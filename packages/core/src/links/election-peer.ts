import type { ElectionHello, ElectionNotification } from '@meerkat/protocol';
import type { Clock, Endpoint, Network, Random, StreamEvents } from '../ports.ts';
import { ElectionStream, type ElectionStreamOwner } from './election-stream.ts';

/** What a peer's connections need of the links around them. */
export interface ElectionPeerHost {
  readonly network: Network;
  readonly clock: Clock;
  readonly random: Random;
  readonly serverId: number;
  /** Where this server can be dialled, as its configuration names it. */
  readonly ownAddresses: readonly Endpoint[];
  /** Milliseconds after which a dial that has neither succeeded nor failed is given up. */
  readonly connectTimeoutMs: number;
  onPeerConnected(id: number): void;
  onPeerUnreachable(id: number): void;
  onNotification(from: number, notification: ElectionNotification): void;
}

const NEVER = Number.POSITIVE_INFINITY;
/** Pause before the second attempt, in milliseconds; doubles up to the maximum. */
const PAUSE_MIN_MS = 200;
const PAUSE_MAX_MS = 5000;
/** Milliseconds that the server that has the right to dial is given to do so. */
const DIAL_BACK_MS = 1000;
/** Age of a connection, in milliseconds, from which on it was no failed attempt when it breaks. */
const STABLE_MS = 5000;
/**
 * Age of a connection of ours below which a call for one is taken for a call that has crossed it. To replace it would
 * let both servers replace each other's connections for as long as each is slow to hear of it.
 */
const CROSSING_MS = 1000;

/**
 * The one connection to another server of the ensemble, and the attempts to have it.
 *
 * The server of the higher id dials. The lower one calls for that: it dials too, says who it is and closes, and then
 * waits to be dialled.
 *
 *     higher:  dial ──► hello ──► link                     lower:  dial ──► hello ──► closed ──► wait for the dial back
 *               ▲ └─ fails: pause ─┐                                ▲                               │        │
 *               └──────────────────┘ ◄─ breaks                      └──────── it did not come ──────┘       link
 *
 * Only the newest notification is kept for a peer, sent or not; a new connection begins with it, since the old one may
 * have lost it (ZOOKEEPER-880, 822, 481).
 */
export class ElectionPeer implements ElectionStreamOwner {
  readonly id: number;
  readonly #host: ElectionPeerHost;
  /** Where the configuration says that it is. */
  readonly #configured: readonly Endpoint[];
  /** Where it has said that it is. */
  #announced: readonly Endpoint[] = [];
  /** A connection is wanted for as long as there is none. */
  #isWanted = false;
  #link: ElectionStream | null = null;
  #linkSinceMs = 0;
  #dial: { cancel(): void } | null = null;
  #dialSinceMs = 0;
  #dialled: Endpoint | null = null;
  /** The stream that said hello to a server of a higher id, until that has dialled. */
  #call: ElectionStream | null = null;
  #retryAtMs = NEVER;
  /** Attempts in a row that came to nothing: which address is next, and how long to wait. */
  #failures = 0;
  #lastWord: ElectionNotification | null = null;
  #owesWord = false;
  #isStopped = false;

  constructor(id: number, configured: readonly Endpoint[], host: ElectionPeerHost) {
    this.id = id;
    this.#configured = configured;
    this.#host = host;
  }

  get isConnected(): boolean {
    return this.#link !== null;
  }

  /** True when nothing stands and nothing is under way. */
  get isIdle(): boolean {
    return this.#link === null && this.#dial === null && this.#call === null && this.#retryAtMs === NEVER;
  }

  get nextDeadlineMs(): number {
    const dialUntilMs = this.#dial === null ? NEVER : this.#dialSinceMs + this.#host.connectTimeoutMs;
    return Math.min(dialUntilMs, this.#retryAtMs);
  }

  /** Connects now, and again whenever the connection breaks, for ever. */
  connect(): void {
    this.#isWanted = true;
    if (this.#link !== null || this.#dial !== null || this.#call !== null) return;
    this.#failures = 0;
    this.#connect();
  }

  send(notification: ElectionNotification): void {
    this.#lastWord = notification;
    this.#owesWord = true;
    if (this.isIdle) this.#connect();
    this.#maybeSendWord();
  }

  /** The peer, of a higher id, has dialled. */
  adopt(stream: ElectionStream): void {
    stream.owner = this;
    this.#establish(stream);
  }

  /** The peer, of a lower id, has no connection and wants to be dialled. */
  dialBack(addresses: readonly Endpoint[]): void {
    this.#announced = addresses;
    const nowMs = this.#host.clock.monotonicMs();
    if (this.#link !== null && nowMs < this.#linkSinceMs + CROSSING_MS) return;
    this.#link?.close();
    this.#link = null;
    this.#failures = 0;
    if (this.#dial !== null) {
      const isSame = isSameEndpoint(this.#dialled, this.#nextTarget());
      // One that was begun when the peer could not be reached would be heard of late.
      if (isSame && nowMs < this.#dialSinceMs + CROSSING_MS) return;
      this.#dial.cancel();
      this.#dial = null;
    }
    this.#connect();
  }

  onTick(): void {
    const nowMs = this.#host.clock.monotonicMs();
    if (this.#dial !== null && nowMs >= this.#dialSinceMs + this.#host.connectTimeoutMs) {
      this.#dial.cancel();
      this.#onDialFailed();
    } else if (nowMs >= this.#retryAtMs) {
      this.#retry();
    }
  }

  /** Closes everything; nothing is told any more. */
  stop(): void {
    this.#isStopped = true;
    this.#abandonAttempt();
    this.#link?.close();
    this.#link = null;
  }

  /* ---------------------------------------------------------------------------------------- dialling ---- */

  #connect(): void {
    this.#abandonAttempt();
    const target = this.#nextTarget();
    if (target === null || this.#isStopped) return;
    this.#dialSinceMs = this.#host.clock.monotonicMs();
    this.#dialled = target;
    this.#dial = this.#host.network.connect(target, {
      onConnected: (stream) => this.#onDialled(new ElectionStream(stream, false, this)),
      onConnectFailed: () => this.#onDialFailed(),
    });
  }

  /** What it has announced comes first; when that fails, all its addresses in turn. */
  #nextTarget(): Endpoint | null {
    const targets = [...this.#announced, ...this.#configured];
    return targets[this.#failures % Math.max(targets.length, 1)] ?? null;
  }

  #abandonAttempt(): void {
    this.#dial?.cancel();
    this.#dial = null;
    this.#call?.close();
    this.#call = null;
    this.#retryAtMs = NEVER;
  }

  #onDialled(stream: ElectionStream): StreamEvents {
    this.#dial = null;
    const { serverId, ownAddresses } = this.#host;
    stream.sendHello(serverId, ownAddresses);
    if (this.id < serverId) {
      this.#establish(stream);
    } else {
      stream.end();
      this.#call = stream;
      this.#retryAtMs = this.#host.clock.monotonicMs() + Math.max(this.#pauseMs(), DIAL_BACK_MS);
    }
    return stream;
  }

  #onDialFailed(): void {
    this.#dial = null;
    this.#failures++;
    this.#planRetry(0);
    this.#host.onPeerUnreachable(this.id);
  }

  #retry(): void {
    if (this.#call === null) {
      this.#connect();
      return;
    }
    // It was called, and has not dialled.
    this.#failures++;
    if (this.#isHopeless) this.#abandonAttempt();
    else this.#connect();
    this.#host.onPeerUnreachable(this.id);
  }

  /** One that nobody needs is tried at each of its addresses, and then no more. */
  get #isHopeless(): boolean {
    return !this.#isWanted && this.#failures >= this.#announced.length + this.#configured.length;
  }

  #planRetry(pauseMinMs: number): void {
    if (this.#isHopeless) return;
    this.#retryAtMs = this.#host.clock.monotonicMs() + Math.max(this.#pauseMs(), pauseMinMs);
  }

  /** Grows with each failure; a random half of it keeps servers that failed together apart. */
  #pauseMs(): number {
    const pauseMs = Math.min(PAUSE_MIN_MS * 2 ** Math.max(this.#failures - 1, 0), PAUSE_MAX_MS);
    return (pauseMs * (1 + this.#host.random.uint32() / 2 ** 32)) / 2;
  }

  /* --------------------------------------------------------------------------------------------- link ---- */

  #establish(stream: ElectionStream): void {
    this.#abandonAttempt();
    this.#link?.close();
    this.#link = stream;
    this.#linkSinceMs = this.#host.clock.monotonicMs();
    this.#owesWord = this.#lastWord !== null;
    // A later word may be given now; only when there is none, the old one is said again.
    this.#host.onPeerConnected(this.id);
    this.#maybeSendWord();
  }

  #maybeSendWord(): void {
    if (!this.#owesWord || this.#lastWord === null || this.#link === null || !this.#link.hasRoom) return;
    this.#owesWord = false;
    this.#link.send(this.#lastWord);
  }

  onHello(_stream: ElectionStream, _hello: ElectionHello): void {}

  onNotification(stream: ElectionStream, notification: ElectionNotification): void {
    if (stream === this.#link) this.#host.onNotification(this.id, notification);
  }

  onRoom(stream: ElectionStream): void {
    if (stream === this.#link) this.#maybeSendWord();
  }

  onStreamClosed(stream: ElectionStream, _reason: string): void {
    if (stream !== this.#link) return;
    this.#link = null;
    const ageMs = this.#host.clock.monotonicMs() - this.#linkSinceMs;
    this.#failures = ageMs < STABLE_MS ? this.#failures + 1 : 0;
    this.#planRetry(this.id < this.#host.serverId ? 0 : DIAL_BACK_MS);
    this.#host.onPeerUnreachable(this.id);
  }
}

function isSameEndpoint(a: Endpoint | null, b: Endpoint | null): boolean {
  return a?.host === b?.host && a?.port === b?.port;
}
