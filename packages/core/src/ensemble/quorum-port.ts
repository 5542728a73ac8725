/**
 * The quorum port of a server: where its followers and observers connect while it leads.
 *
 * It is listened on from the start to the end, whatever the role. A server that cannot listen knows so before it stands
 * for leader, and no other program takes the port while this server follows.
 *
 *     looking ── a learner is ahead: it waits here ──┬─► leading: the leader takes it, and those that come later
 *                                                    └─► following: it is closed, as are those that come later
 */

import type { ByteStream, Endpoint, StreamEvents } from '../base/ports.ts';
import { ListenerSet } from '../links/listener-set.ts';
import type { PortListenerPorts } from '../links/port-listener.ts';
import { Strangers } from '../links/strangers.ts';

/** Milliseconds that a learner may be ahead of its leader. Apache's learners go on knocking for as long. */
const WAIT_MS = 500;
/** Learners that wait; of more, some are closed, see `Strangers`. */
const WAITING_MAX = 64;

const LISTENING = {
  who: 'followers',
  consequence: 'this server votes and follows, but does not stand for leader, and hands over if it leads',
};

export type TakeLearner = (stream: ByteStream) => StreamEvents;

export class QuorumPort {
  readonly #ports: PortListenerPorts;
  readonly #listeners: ListenerSet;
  /** The leader; null while this server looks or follows. */
  #leader: TakeLearner | null = null;
  #isLooking = true;
  readonly #waiting = new Strangers<WaitingLearner>();
  #isStopped = false;

  /**
   * @param addresses of this server, as the membership names them
   * @param onChanged `isOpen` or `isSettled` may be another now
   */
  constructor(ports: PortListenerPorts, addresses: readonly Endpoint[], onChanged: () => void) {
    this.#ports = ports;
    const events = { onAccepted: (stream: ByteStream) => this.#accept(stream), onChanged };
    this.#listeners = new ListenerSet(ports, LISTENING, events);
    this.#listeners.set(addresses);
  }

  /** True while learners can connect, at one address at least. */
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

  /** Another membership names other addresses of this server, or none. */
  moveTo(addresses: readonly Endpoint[]): void {
    this.#listeners.set(addresses);
  }

  start(): void {
    this.#listeners.start();
  }

  /** This server looks for a leader: learners wait. */
  hold(): void {
    this.#leader = null;
    this.#isLooking = true;
  }

  /** This server leads: learners are given to the leader. */
  open(leader: TakeLearner): void {
    this.#leader = leader;
    this.#isLooking = false;
    for (const learner of [...this.#waiting]) {
      this.#waiting.delete(learner);
      learner.begin(leader);
    }
  }

  /** This server follows: learners are closed, as they have the wrong leader. */
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

/** What a learner sends waits in the network until there is a leader for it. */
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
