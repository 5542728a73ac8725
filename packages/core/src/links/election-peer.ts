import { type ElectionHello, type ElectionNotification, ElectionProbe } from '@meerkat/protocol';
import type { Clock, Endpoint, Network, Random, StreamEvents } from '../base/ports.ts';
import { AddressList, isSameEndpoint } from './address-list.ts';
import { ElectionStream, type ElectionStreamOwner } from './election-stream.ts';
import { OpenQuestion } from './open-question.ts';
import { Strangers } from './strangers.ts';

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
  /** The same, while there is another address to try. */
  readonly addressTimeoutMs: number;
  onPeerConnected(id: number): void;
  onPeerUnreachable(id: number): void;
  /** The connection that stood has broken. */
  onPeerLost(id: number, reason: string): void;
  /** Closes a connection of somebody else, with a word in the log. */
  refuse(stream: ElectionStream, reason: string): void;
  onNotification(from: number, notification: ElectionNotification): void;
}

/** An attempt to connect that has neither succeeded nor failed. */
interface Dial {
  readonly target: Endpoint;
  readonly sinceMs: number;
  readonly attempt: { cancel(): void };
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
/** Milliseconds that a connection has for a sign of life when another one would take its place. */
const TEST_MS = 1000;
/** Connections that would; of more, some are refused, see `Strangers`. */
const RIVALS_MAX = 8;

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
 * Whoever connects under the id of a peer that is connected may be that peer, if it has lost its connection without this
 * end's knowledge, or a stranger. The standing connection wins unless it is dead:
 *
 *     hello ──► waits ──┬─ the standing connection says something, or answers a probe ──► refused
 *                       └─ it is closed, or says nothing for a second ──────────────────► link
 *
 * Servers of ours answer probes at once. A server of Apache's does not, and may have nothing to say while it has a leader:
 * a stranger can take its place then, for as long as that matters to nobody. Once it speaks again, its own wins.
 *
 * Only the newest notification is kept for a peer, sent or not; a new connection begins with it, since the old one may
 * have lost it (ZOOKEEPER-880, 822, 481).
 */
export class ElectionPeer implements ElectionStreamOwner {
  readonly id: number;
  readonly #host: ElectionPeerHost;
  readonly #addresses: AddressList;
  #configured: readonly Endpoint[];
  /** A connection is wanted for as long as there is none. */
  #isWanted = false;
  #link: ElectionStream | null = null;
  #linkSinceMs = 0;
  #dial: Dial | null = null;
  /** The stream that said hello to a server of a higher id, until that has dialled. */
  #call: ElectionStream | null = null;
  #retryAtMs = NEVER;
  /** Attempts in a row that came to nothing: which address is next, and how long to wait. */
  #failures = 0;
  readonly #question = new OpenQuestion();
  #lastWord: ElectionNotification | null = null;
  #owesWord = false;
  /** Connections under this id that wait for the standing one to fail its test. */
  readonly #rivals = new Strangers<ElectionStream>();
  /** When the standing connection has said nothing for too long although a rival waits; NEVER while it is not tested. */
  #testUntilMs = NEVER;
  /** The peer, of a lower id, has called for another connection. */
  #isCalledFor = false;
  /** It is a server of ours. */
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

  /** True when nothing stands and nothing is under way. */
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
   * When a server with several addresses has kept silent for too long over a standing connection although it was asked for
   * its vote. The network may have lost the way to one of them without a word; the others are tried then, one at a time.
   */
  get #silentMs(): number {
    const isTrying = this.#dial !== null || this.#call !== null;
    return this.#hasSeveralAddresses && this.#link !== null && !isTrying ? this.#question.overdueMs : NEVER;
  }

  get #hasSeveralAddresses(): boolean {
    return this.#addresses.all.length > 1;
  }

  /** The configuration names other addresses now. A connection that stands stays. */
  configure(addresses: readonly Endpoint[]): void {
    if (isSameList(addresses, this.#configured)) return;
    this.#configured = addresses;
    this.#addresses.configure(addresses);
    if (this.#link !== null || this.isIdle) return;
    // What is under way is at an address that may be nobody's any more.
    this.#failures = 0;
    this.#connect();
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
    this.#question.onSent(notification, this.#nowMs());
    if (this.isIdle) this.#connect();
    this.#maybeSendWord();
  }

  /** The peer, of a higher id, has dialled. */
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

  /** It was asked for its vote over the link, and has said nothing for long enough. */
  get #isSuspect(): boolean {
    return this.#nowMs() >= this.#question.askedMs + TEST_MS;
  }

  /** The peer, of a lower id, has no connection and wants to be dialled. */
  dialBack(addresses: readonly Endpoint[]): void {
    this.#addresses.announce(addresses);
    const nowMs = this.#nowMs();
    if (this.#link !== null && nowMs < this.#linkSinceMs + CROSSING_MS) return;
    if (this.#link !== null && this.#answersProbes && !this.#isSuspect) {
      this.#isCalledFor = true;
      this.#test();
    } else {
      this.#dialAnew();
    }
  }

  #dialAnew(): void {
    const nowMs = this.#nowMs();
    this.#link?.close();
    this.#link = null;
    // Another of its addresses is tried soon, and it may be the first one that cannot be reached.
    if (this.#dial !== null && this.#hasSeveralAddresses) return;
    this.#failures = 0;
    if (this.#dial !== null) {
      const isSame = isSameEndpoint(this.#dial.target, this.#nextTarget());
      // One that was begun when the peer could not be reached would be heard of late.
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
      // The link stays until there is another one: it may be the peer that is slow.
      this.#failures = this.#question.onTried(nowMs);
      this.#connect();
    }
  }

  /** Closes everything; nothing is told any more. */
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

  /** The standing connection is dead, or gone. @returns false when nobody waits for its place */
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
    if (wasCalledFor) this.#dialAnew();
    return wasCalledFor;
  }

  #endTest(reason: string): void {
    this.#testUntilMs = NEVER;
    this.#isCalledFor = false;
    for (const rival of this.#rivals) this.#refuse(rival, reason);
  }

  #refuse(rival: ElectionStream, reason: string): void {
    this.#rivals.delete(rival);
    this.#host.refuse(rival, `it says that it is server ${this.id}, and ${reason}`);
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
      // The peer tries the addresses of this server in turn.
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
    // It was called, and has not dialled.
    this.#failures++;
    if (this.#isHopeless) this.#abandonAttempt();
    else this.#connect();
    if (this.#link === null) this.#host.onPeerUnreachable(this.id);
  }

  /** One that nobody needs, or that is connected all the same, is tried at each of its addresses, and then no more. */
  get #isHopeless(): boolean {
    const isNeeded = this.#isWanted && this.#link === null;
    return !isNeeded && this.#failures >= this.#addresses.all.length;
  }

  /** True when the last attempt that failed was at the last of the addresses. */
  get #hasTriedAll(): boolean {
    return this.#failures % Math.max(this.#addresses.all.length, 1) === 0;
  }

  /** The other addresses are tried at once. */
  #planRetry(pauseMinMs: number): void {
    if (this.#isHopeless) return;
    const pauseMs = this.#hasTriedAll ? this.#pauseMs() : 0;
    this.#retryAtMs = this.#nowMs() + Math.max(pauseMs, pauseMinMs);
  }

  /** Grows each time that all addresses have failed; a random half of it keeps servers that failed together apart. */
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
    this.#owesWord = this.#lastWord !== null;
    // A later word may be given now; only when there is none, the old one is said again.
    this.#host.onPeerConnected(this.id);
    this.#maybeSendWord();
    stream.release();
  }

  #maybeSendWord(): void {
    if (!this.#owesWord || this.#lastWord === null || this.#link === null || !this.#link.hasRoom) return;
    this.#owesWord = false;
    this.#link.send(this.#lastWord);
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
    // Another one may be on its way already.
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
