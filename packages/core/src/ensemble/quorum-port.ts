/**
 * The quorum port of a server: where its followers and observers connect while it leads.
 *
 * It listens for the lifetime of the server, in every role. So a server that cannot listen knows this before it becomes
 * a candidate, and no other program takes the port while this server follows.
 *
 *     looking ── a learner is early: it waits here ──┬─► leading: the leader takes it, and all later ones
 *                                                    └─► following: it is closed, as are all later ones
 */

import type { ByteStream, Endpoint, StreamEvents } from '../base/ports.ts';
import { ListenerSet } from '../links/listener-set.ts';
import type { PortListenerPorts } from '../links/port-listener.ts';
import { UnidentifiedConnections } from '../links/unidentified-connections.ts';

/** Milliseconds that a learner may be ahead of its leader. Apache learners keep retrying for as long. */
const WAIT_MS = 500;
/** Maximum waiting learners; beyond that some are closed, see `UnidentifiedConnections`. */
const WAITING_MAX = 64;

const LISTENING = {
  who: 'followers',
  consequence: 'this server votes and follows, but does not stand for leader, and hands over if it leads',
};

export type TakeLearner = (stream: ByteStream) => StreamEvents;

export class QuorumPort {
  readonly #ports: PortListenerPorts;
  readonly #listeners: ListenerSet;
  /** The leader; null while this server is looking or following. */
  #leader: TakeLearner | null = null;
  #isLooking = true;
  readonly #waiting = new UnidentifiedConnections<WaitingLearner>();
  #isStopped = false;

  /**
   * @param addresses this server's addresses in the membership
   * @param onChanged called when `isOpen` or `isSettled` may have changed
   */
  constructor(ports: PortListenerPorts, addresses: readonly Endpoint[], onChanged: () => void) {
    this.#ports = ports;
    const events = { onAccepted: (stream: ByteStream) => this.#accept(stream), onChanged };
    this.#listeners = new ListenerSet(ports, LISTENING, events);
    this.#listeners.set(addresses);
  }

  /** True while learners can connect at one address or more. */
  get isOpen(): boolean {
    return this.#listeners.isOpen;
  }

  /** True once it is open, or has failed to open at every address. */
  get isSettled(): boolean {
    return this.#listeners.isSettled;
  }

  /** Milliseconds of the monotonic clock; Infinity when nothing is due. */
  get nextDeadlineMs(): number {
    const atMs = this.#listeners.nextDeadlineMs;
    for (const learner of this.#waiting) return Math.min(atMs, learner.untilMs);
    return atMs;
  }

  /** The membership now has other addresses for this server, or none. */
  moveTo(addresses: readonly Endpoint[]): void {
    this.#listeners.set(addresses);
  }

  start(): void {
    this.#listeners.start();
  }

  /** This server is looking: learners wait. */
  hold(): void {
    this.#leader = null;
    this.#isLooking = true;
  }

  /** This server leads: learners are passed to the leader. */
  open(leader: TakeLearner): void {
    this.#leader = leader;
    this.#isLooking = false;
    for (const learner of [...this.#waiting]) {
      this.#waiting.delete(learner);
      learner.begin(leader);
    }
  }

  /** This server follows: learners are closed, because they have the wrong leader. */
  close(): void {
    this.#leader = null;
    this.#isLooking = false;
    this.#closeWaiting();
  }

  onTick(): void {
    this.#listeners.onTick();
    const nowMs = this.#ports.clock.monotonicMs();
    for (const learner of this.#waiting) {
      if (nowMs < learner.untilMs) break;
      this.#drop(learner);
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#listeners.stop();
    this.#closeWaiting();
  }

  #accept(stream: ByteStream): StreamEvents {
    if (this.#leader !== null) return this.#leader(stream);
    const learner = new WaitingLearner(stream, this.#ports.clock.monotonicMs() + WAIT_MS, () =>
      this.#waiting.delete(learner),
    );
    if (!this.#isLooking || this.#isStopped) {
      stream.destroy();
      return learner;
    }
    const isTooMuch = this.#waiting.size >= WAITING_MAX || stream.isCrowding === true;
    const shed = isTooMuch ? this.#waiting.choose() : null;
    if (shed !== null) this.#drop(shed);
    this.#waiting.add(learner, stream.remote);
    stream.pause();
    return learner;
  }

  #closeWaiting(): void {
    for (const learner of [...this.#waiting]) this.#drop(learner);
  }

  #drop(learner: WaitingLearner): void {
    this.#waiting.delete(learner);
    learner.stream.destroy();
  }
}

/** What a waiting learner sends stays in the network until there is a leader for it. */
class WaitingLearner implements StreamEvents {
  readonly stream: ByteStream;
  readonly untilMs: number;
  readonly #onGone: () => void;
  #owner: StreamEvents | null = null;

  constructor(stream: ByteStream, untilMs: number, onGone: () => void) {
    this.stream = stream;
    this.untilMs = untilMs;
    this.#onGone = onGone;
  }

  begin(leader: TakeLearner): void {
    this.#owner = leader(this.stream);
    this.stream.resume();
  }

  onBytes(chunk: Uint8Array): void {
    this.#owner?.onBytes(chunk);
  }

  onDrain(): void {
    this.#owner?.onDrain();
  }

  onClosed(reason: string): void {
    this.#onGone();
    this.#owner?.onClosed(reason);
  }
}
