import { type ElectionHello, type ElectionNotification, ElectionProbe } from '@meerkat/protocol';
import type { Clock, Endpoint, Network, Random, StreamEvents } from '../base/ports.ts';
import { AddressList, isSameEndpoint } from './address-list.ts';
import { ElectionStream, type ElectionStreamOwner } from './election-stream.ts';
import { PendingVoteRequest } from './pending-vote-request.ts';
import { UnidentifiedConnections } from './unidentified-connections.ts';

/** What a peer's connections need from the links around them. */
export interface ElectionPeerHost {
  readonly network: Network;
  readonly clock: Clock;
  readonly random: Random;
  readonly serverId: number;
  /** Where this server can be dialled, according to its configuration. */
  readonly ownAddresses: readonly Endpoint[];
  /** Timeout of a dial, in milliseconds. */
  readonly connectTimeoutMs: number;
  /** Timeout of a dial while there is another address to try. */
  readonly addressTimeoutMs: number;
  onPeerConnected(id: number): void;
  onPeerUnreachable(id: number): void;
  /** The established connection has broken. */
  onPeerLost(id: number, reason: string): void;
  /** Closes a connection that is not the peer's, and logs the reason. */
  refuse(stream: ElectionStream, reason: string): void;
  onNotification(from: number, notification: ElectionNotification): void;
}

/** A dial in progress. */
interface Dial {
  readonly target: Endpoint;
  readonly sinceMs: number;
  readonly attempt: { cancel(): void };
}

const NEVER = Number.POSITIVE_INFINITY;
/** Pause before the second attempt, in milliseconds; doubles up to the maximum. */
const PAUSE_MIN_MS = 200;
const PAUSE_MAX_MS = 5000;
/** Milliseconds that the server with the higher id has to dial back. */
const DIAL_BACK_MS = 1000;
/** Age of a connection, in milliseconds, from which its loss does not count as a failed attempt. */
const STABLE_MS = 5000;
/**
 * Age of a connection of ours, in milliseconds, below which a request to dial back is assumed to have crossed it.
 * Replacing it would let both servers replace each other's connections for as long as each is slow to notice.
 */
const CROSSING_MS = 1000;
/** Milliseconds that a connection has to show that it is alive when another one would replace it. */
const TEST_MS = 1000;
/** Maximum connections waiting to replace it; beyond that some are refused, see `UnidentifiedConnections`. */
const RIVALS_MAX = 8;

/**
 * The connection to another server of the ensemble, and the attempts to establish it.
 *
 * The server with the higher id dials. The other one asks it to: it dials, sends its hello, closes, and waits to be
 * dialled back.
 *
 *     higher:  dial ──► hello ──► link                     lower:  dial ──► hello ──► closed ──► wait for the dial back
 *               ▲ └─ fails: pause ─┐                                ▲                               │        │
 *               └──────────────────┘ ◄─ breaks                      └──────── it did not come ──────┘       link
 *
 * A server that connects under the id of a connected peer may be that peer, if its connection has broken unnoticed by
 * this end, or a stranger. The established connection wins unless it is dead:
 *
 *     hello ──► waits ──┬─ the current connection sends something, or answers a probe ────► refused
 *                       └─ it is closed, or silent for a second ──────────────────────────► link
 *
 * Meerkat servers answer probes at once. Apache servers do not, and may be silent while they have a leader: then a
 * stranger can replace the connection, which does no harm as long as the peer is silent. When the peer speaks again, it
 * replaces the stranger's.
 *
 * Only the newest notification is kept for a peer, sent or not; a new connection starts with it, because the old one
 * may have lost it (ZOOKEEPER-880, 822, 481).
 */
export class ElectionPeer implements ElectionStreamOwner {
  readonly id: number;
  readonly #host: ElectionPeerHost;
  readonly #addresses: AddressList;
  #configured: readonly Endpoint[];
  /** Reconnect whenever there is no connection. */
  #isWanted = false;
  #link: ElectionStream | null = null;
  #linkSinceMs = 0;
  #dial: Dial | null = null;
  /** The stream over which this server has asked a server with a higher id to dial back, until it does. */
  #call: ElectionStream | null = null;
  #retryAtMs = NEVER;
  /** Consecutive failed attempts: determines the next address and how long to wait. */
  #failures = 0;
  readonly #question = new PendingVoteRequest();
  #lastNotification: ElectionNotification | null = null;
  #mustNotify = false;
  /** Connections under this id that wait for the established one to fail its test. */
  readonly #rivals = new UnidentifiedConnections<ElectionStream>();
  /** When the established connection fails its test, unless it shows that it is alive; NEVER while it is not tested. */
  #testUntilMs = NEVER;
  /** The peer, which has a lower id, has asked to be dialled back. */
  #isCalledFor = false;
  /** The peer is a Meerkat server. */
  #answersProbes = false;
  #isStopped = false;

  constructor(id: number, configured: readonly Endpoint[], host: ElectionPeerHost) {
    this.id = id;
    this.#addresses = new AddressList(configured);
    this.#configured = configured;
    this.#host = host;
  }

  get isConnected(): boolean {
    return this.#link !== null;
  }

  /** True when there is no connection and no attempt. */
  get isIdle(): boolean {
    return this.#link === null && this.#dial === null && this.#call === null && this.#retryAtMs === NEVER;
  }

  get nextDeadlineMs(): number {
    return Math.min(this.#dialUntilMs, this.#retryAtMs, this.#silentMs, this.#testUntilMs);
  }

  get #dialUntilMs(): number {
    if (this.#dial === null) return NEVER;
    const { connectTimeoutMs, addressTimeoutMs } = this.#host;
    return this.#dial.sinceMs + (this.#hasSeveralAddresses ? addressTimeoutMs : connectTimeoutMs);
  }

  /**
   * When a peer with several addresses has been silent for too long on an established connection although it was asked
   * for its vote. The network may drop packets to one of its addresses without an error, so the others are tried, one
   * at a time.
   */
  get #silentMs(): number {
    const isTrying = this.#dial !== null || this.#call !== null;
    return this.#hasSeveralAddresses && this.#link !== null && !isTrying ? this.#question.overdueMs : NEVER;
  }

  get #hasSeveralAddresses(): boolean {
    return this.#addresses.all.length > 1;
  }

  /** The configured addresses have changed. An established connection stays. */
  configure(addresses: readonly Endpoint[]): void {
    if (isSameList(addresses, this.#configured)) return;
    this.#configured = addresses;
    this.#addresses.configure(addresses);
    if (this.#link !== null || this.isIdle) return;
    // The attempt in progress may be to an old address.
    this.#failures = 0;
    this.#connect();
  }

  /** Connects now, and reconnects whenever the connection breaks. */
  connect(): void {
    this.#isWanted = true;
    if (this.#link !== null || this.#dial !== null || this.#call !== null) return;
    this.#failures = 0;
    this.#connect();
  }

  send(notification: ElectionNotification): void {
    this.#lastNotification = notification;
    this.#mustNotify = true;
    this.#question.onSent(notification, this.#nowMs());
    if (this.isIdle) this.#connect();
    this.#maybeSendWord();
  }

  /** The peer, which has a higher id, has dialled. */
  adopt(stream: ElectionStream): void {
    stream.owner = this;
    if (this.#link === null || this.#isSuspect) {
      this.#establish(stream);
      return;
    }
    stream.hold();
    if (this.#rivals.size >= RIVALS_MAX) this.#refuse(this.#rivals.choose()!, `${RIVALS_MAX} others claim the same`);
    this.#rivals.add(stream, stream.remote);
    this.#test();
  }

  /** It was asked for its vote over the link, and has been silent for long enough. */
  get #isSuspect(): boolean {
    return this.#nowMs() >= this.#question.askedMs + TEST_MS;
  }

  /** The peer, which has a lower id, has no connection and asks to be dialled back. */
  dialBack(addresses: readonly Endpoint[]): void {
    this.#addresses.announce(addresses);
    const nowMs = this.#nowMs();
    if (this.#link !== null && nowMs < this.#linkSinceMs + CROSSING_MS) return;
    if (this.#link !== null && this.#answersProbes && !this.#isSuspect) {
      this.#isCalledFor = true;
      this.#test();
    } else {
      this.#redial();
    }
  }

  #redial(): void {
    const nowMs = this.#nowMs();
    this.#link?.close();
    this.#link = null;
    // Another of its addresses is tried soon, and the first one may be unreachable.
    if (this.#dial !== null && this.#hasSeveralAddresses) return;
    this.#failures = 0;
    if (this.#dial !== null) {
      const isSame = isSameEndpoint(this.#dial.target, this.#nextTarget());
      // A dial that was started while the peer was unreachable may take long to complete.
      if (isSame && nowMs < this.#dial.sinceMs + CROSSING_MS) return;
      this.#dial.attempt.cancel();
      this.#dial = null;
    }
    this.#connect();
  }

  onTick(): void {
    const nowMs = this.#nowMs();
    if (nowMs >= this.#testUntilMs) this.#onTestFailed();
    if (nowMs >= this.#dialUntilMs) {
      this.#dial?.attempt.cancel();
      this.#onDialFailed();
    } else if (nowMs >= this.#retryAtMs) {
      this.#retry();
    } else if (nowMs >= this.#silentMs) {
      // The link stays until it is replaced: the peer itself may be slow.
      this.#failures = this.#question.onTried(nowMs);
      this.#connect();
    }
  }

  /** Closes everything; no events follow. */
  stop(): void {
    this.#isStopped = true;
    this.#abandonAttempt();
    this.#link?.close();
    this.#link = null;
    for (const rival of this.#rivals) rival.close();
    this.#testUntilMs = NEVER;
  }

  /* ------------------------------------------------------------------------------------------ rivals ---- */

  #test(): void {
    if (this.#testUntilMs !== NEVER) return;
    this.#testUntilMs = this.#nowMs() + TEST_MS;
    if (this.#answersProbes) this.#link?.sendProbe(ElectionProbe.asks);
  }

  /**
   * The established connection is dead or gone.
   *
   * @returns false when no connection waits to replace it
   */
  #onTestFailed(): boolean {
    const wasCalledFor = this.#isCalledFor;
    this.#testUntilMs = NEVER;
    this.#isCalledFor = false;
    for (const rival of this.#rivals) {
      this.#rivals.delete(rival);
      this.#establish(rival);
      if (this.#rivals.size > 0) this.#test();
      return true;
    }
    if (wasCalledFor) this.#redial();
    return wasCalledFor;
  }

  #endTest(reason: string): void {
    this.#testUntilMs = NEVER;
    this.#isCalledFor = false;
    for (const rival of this.#rivals) this.#refuse(rival, reason);
  }

  #refuse(rival: ElectionStream, reason: string): void {
    this.#rivals.delete(rival);
    this.#host.refuse(rival, `it claims to be server ${this.id}, and ${reason}`);
  }

  #onSignOfLife(): void {
    this.#question.onAnswered();
    if (this.#testUntilMs !== NEVER) this.#endTest('that one is connected already, and that connection is alive');
  }

  /* ---------------------------------------------------------------------------------------- dialling ---- */

  #connect(): void {
    this.#abandonAttempt();
    const target = this.#nextTarget();
    if (target === null || this.#isStopped) return;
    const sinceMs = this.#nowMs();
    const attempt = this.#host.network.connect(target, {
      onConnected: (stream) => {
        this.#addresses.onAnswered(target);
        return this.#onDialled(new ElectionStream(stream, null, this));
      },
      onConnectFailed: () => this.#onDialFailed(),
    });
    this.#dial = { target, sinceMs, attempt };
  }

  #nextTarget(): Endpoint | null {
    return this.#addresses.at(this.#failures);
  }

  #nowMs(): number {
    return this.#host.clock.monotonicMs();
  }

  #abandonAttempt(): void {
    this.#dial?.attempt.cancel();
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
      // The peer tries this server's addresses in turn.
      const dialBackMs = DIAL_BACK_MS + (ownAddresses.length - 1) * this.#host.addressTimeoutMs;
      this.#retryAtMs = this.#nowMs() + Math.max(this.#pauseMs(), dialBackMs);
    }
    return stream;
  }

  #onDialFailed(): void {
    this.#dial = null;
    this.#failures++;
    this.#planRetry(0);
    if (this.#link === null && this.#hasTriedAll) this.#host.onPeerUnreachable(this.id);
  }

  #retry(): void {
    if (this.#call === null) {
      this.#connect();
      return;
    }
    // It was asked to dial back, and has not.
    this.#failures++;
    if (this.#isHopeless) this.#abandonAttempt();
    else this.#connect();
    if (this.#link === null) this.#host.onPeerUnreachable(this.id);
  }

  /** An unneeded peer, or one that is connected anyway, is tried once at each of its addresses. */
  get #isHopeless(): boolean {
    const isNeeded = this.#isWanted && this.#link === null;
    return !isNeeded && this.#failures >= this.#addresses.all.length;
  }

  /** True when the last failed attempt was at the last of its addresses. */
  get #hasTriedAll(): boolean {
    return this.#failures % Math.max(this.#addresses.all.length, 1) === 0;
  }

  /** The next address is tried without a pause. */
  #planRetry(pauseMinMs: number): void {
    if (this.#isHopeless) return;
    const pauseMs = this.#hasTriedAll ? this.#pauseMs() : 0;
    this.#retryAtMs = this.#nowMs() + Math.max(pauseMs, pauseMinMs);
  }

  /**
   * Grows each time all addresses have failed; half of it is random, so that servers that failed together spread out.
   */
  #pauseMs(): number {
    const rounds = Math.floor(this.#failures / Math.max(this.#addresses.all.length, 1));
    const pauseMs = Math.min(PAUSE_MIN_MS * 2 ** Math.max(rounds - 1, 0), PAUSE_MAX_MS);
    return (pauseMs * (1 + this.#host.random.uint32() / 2 ** 32)) / 2;
  }

  /* --------------------------------------------------------------------------------------------- link ---- */

  #establish(stream: ElectionStream): void {
    this.#abandonAttempt();
    this.#link?.close();
    this.#link = stream;
    this.#linkSinceMs = this.#nowMs();
    this.#question.onLinked();
    this.#mustNotify = this.#lastNotification !== null;
    // `onPeerConnected` may send a newer notification; only otherwise is the old one resent.
    this.#host.onPeerConnected(this.id);
    this.#maybeSendWord();
    stream.release();
  }

  #maybeSendWord(): void {
    if (!this.#mustNotify || this.#lastNotification === null || this.#link === null || !this.#link.hasRoom) return;
    this.#mustNotify = false;
    this.#link.send(this.#lastNotification);
  }

  onHello(_stream: ElectionStream, _hello: ElectionHello): void {}

  onNotification(stream: ElectionStream, notification: ElectionNotification): void {
    if (stream !== this.#link) return;
    if (notification.announces !== 0) this.#answersProbes = true;
    this.#onSignOfLife();
    this.#host.onNotification(this.id, notification);
  }

  onProbe(stream: ElectionStream, probe: ElectionProbe): void {
    if (stream !== this.#link) return;
    if (probe === ElectionProbe.answers) this.#onSignOfLife();
    else if (stream.hasRoom) stream.sendProbe(ElectionProbe.answers);
  }

  onRoom(stream: ElectionStream): void {
    if (stream === this.#link) this.#maybeSendWord();
  }

  onStreamClosed(stream: ElectionStream, reason: string): void {
    this.#rivals.delete(stream);
    if (stream !== this.#link) return;
    this.#link = null;
    this.#host.onPeerLost(this.id, reason);
    if (this.#onTestFailed()) return;
    // Another connection may be in progress.
    if (this.isIdle) {
      const ageMs = this.#nowMs() - this.#linkSinceMs;
      this.#failures = ageMs < STABLE_MS ? this.#failures + 1 : 0;
      this.#planRetry(this.id < this.#host.serverId ? 0 : DIAL_BACK_MS);
    }
    this.#host.onPeerUnreachable(this.id);
  }
}

function isSameList(a: readonly Endpoint[], b: readonly Endpoint[]): boolean {
  return a.length === b.length && a.every((address, i) => isSameEndpoint(address, b[i] ?? null));
}
