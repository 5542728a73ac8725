import type { Clock } from '../base/ports.ts';
import { type CatchUp, type CatchUpStep, describeDeadEnd } from './catch-up.ts';
import type { HistoryEntry } from './history.ts';
import type { LearnerFeed } from './learner-feed.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';
import type { Proposals } from './proposals.ts';

/** Takes learners from ACKEPOCH to NEWLEADER by sending the history that they lack in batches. */
export class LearnerSynchronization {
  readonly #clock: Clock;
  readonly #initMs: number;
  readonly #proposals: Proposals;
  readonly #catchUp: CatchUp;
  readonly #feed: LearnerFeed;
  readonly #close: (peer: LearnerPeer, reason: string) => void;

  /** @param initMs how long a learner may be silent meanwhile */
  constructor(
    clock: Clock,
    initMs: number,
    proposals: Proposals,
    catchUp: CatchUp,
    feed: LearnerFeed,
    close: (peer: LearnerPeer, reason: string) => void,
  ) {
    this.#clock = clock;
    this.#initMs = initMs;
    this.#proposals = proposals;
    this.#catchUp = catchUp;
    this.#feed = feed;
    this.#close = close;
  }

  /** Starts a waiting learner unless its last txn is still outstanding: that one may yet be committed. */
  maybeStart(peer: LearnerPeer): void {
    if (peer.state !== PeerState.waiting) return;
    const { committed } = this.#proposals;
    const isOutstanding = this.#proposals.isOutstandingOrCommitted(peer.lastZxid) && peer.lastZxid > committed;
    if (isOutstanding && peer.keepsLog) return;
    peer.expect(this.#clock.monotonicMs(), this.#initMs);
    this.#onCaughtUp(peer, this.#catchUp.start(peer));
  }

  onHistoryRead(peer: LearnerPeer, entries: readonly HistoryEntry[]): void {
    if (peer.state !== PeerState.reading) return;
    peer.expect(this.#clock.monotonicMs(), this.#initMs);
    this.#onCaughtUp(peer, this.#catchUp.onHistoryRead(peer, entries));
  }

  onRoom(peer: LearnerPeer): void {
    if (peer.state !== PeerState.streaming) return;
    peer.expect(this.#clock.monotonicMs(), this.#initMs);
    this.#onCaughtUp(peer, this.#catchUp.onRoom(peer));
  }

  #onCaughtUp(peer: LearnerPeer, step: CatchUpStep): void {
    if (step === 'complete') this.#announce(peer);
    else if (step === 'dead end') this.#close(peer, describeDeadEnd(peer));
  }

  /** The whole history has been sent: NEWLEADER and the broadcast follow. */
  #announce(peer: LearnerPeer): void {
    const nowMs = this.#clock.monotonicMs();
    peer.state = PeerState.announced;
    peer.expect(nowMs, this.#initMs);
    peer.pings.ask(nowMs, 0, true);
    this.#feed.announce(peer);
  }
}
