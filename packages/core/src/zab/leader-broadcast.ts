/** Proposals of an established leader, their acknowledgements, and the resulting commits. */
import {
  counterOf,
  epochOf,
  MAX_COUNTER,
  nextZxid,
  OpCode,
  type Txn,
  type TxnHeader,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { type Durable, onDiskOfLearner } from '../base/durable.ts';
import type { Clock } from '../base/ports.ts';
import type { Electorate } from '../election/electorate.ts';
import type { HandOver } from './hand-over.ts';
import type { LeadConfirmation } from './lead-confirmation.ts';
import type { LeaderEffects, LeaderMembership } from './leader-host.ts';
import type { LeaderPhases } from './leader-phases.ts';
import type { LearnerFeed } from './learner-feed.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';
import type { LearnerPeers } from './learner-peers.ts';
import type { LearnerSynchronization } from './learner-synchronization.ts';
import { MembershipProposal } from './membership-proposal.ts';
import type { Proposals } from './proposals.ts';
import type { ZabOptions } from './zab-options.ts';

/** Why a leader that is not in the new membership hands over. */
export const REPLACED = 'another server leads the new membership';

interface LeaderBroadcastParts {
  readonly options: ZabOptions;
  readonly clock: Clock;
  readonly phases: LeaderPhases;
  readonly electorate: Electorate;
  readonly membership: LeaderMembership;
  readonly peers: LearnerPeers;
  readonly proposals: Proposals;
  readonly feed: LearnerFeed;
  readonly synchronization: LearnerSynchronization;
  readonly confirmation: LeadConfirmation;
  readonly handOver: HandOver;
  readonly effects: LeaderEffects;
}

export class LeaderBroadcast {
  readonly #options: ZabOptions;
  readonly #clock: Clock;
  readonly #phases: LeaderPhases;
  readonly #electorate: Electorate;
  readonly #membership: LeaderMembership;
  readonly #peers: LearnerPeers;
  readonly #proposals: Proposals;
  readonly #feed: LearnerFeed;
  readonly #synchronization: LearnerSynchronization;
  readonly #confirmation: LeadConfirmation;
  readonly #handOver: HandOver;
  readonly #effects: LeaderEffects;
  readonly #change: MembershipProposal;

  constructor(parts: LeaderBroadcastParts) {
    const { options, electorate, membership, peers, effects } = parts;
    this.#options = options;
    this.#clock = parts.clock;
    this.#phases = parts.phases;
    this.#electorate = electorate;
    this.#membership = membership;
    this.#peers = peers;
    this.#proposals = parts.proposals;
    this.#feed = parts.feed;
    this.#synchronization = parts.synchronization;
    this.#confirmation = parts.confirmation;
    this.#handOver = parts.handOver;
    this.#effects = effects;
    this.#change = new MembershipProposal(options.serverId, electorate, membership, peers, effects);
  }

  propose(header: TxnHeader, txn: Txn, treeDigest: bigint | null): number {
    const { zxid } = header;
    assert(this.#phases.current === 'broadcast', 'a leader proposes once its epoch is established');
    assert(zxid === nextZxid(this.#proposals.lastProposed), 'a proposal takes the next zxid');
    assert(counterOf(zxid) < MAX_COUNTER, 'an epoch ends before its counter does');
    const isReconfig = txn.type === OpCode.reconfig;
    if (isReconfig) {
      this.#change.begin(zxid, txn.data);
      this.onElectorateChanged();
    }
    const payload = this.#proposals.propose(header, txn, treeDigest);
    assert(payload.length <= this.#options.txnBytesMax, 'a txn is proposed that every learner takes');
    this.#effects.append(zxid, payload);
    this.#feed.propose(zxid, payload);
    if (counterOf(zxid) >= this.#options.epochTxnsMax) {
      this.#handOver.begin(`epoch ${epochOf(zxid)} has had its ${this.#options.epochTxnsMax} txns`);
    }
    // It is the last proposal of this leader, so that its successor has everything that is committed.
    if (isReconfig && !this.#membership.keepsLeader) this.#handOver.begin(REPLACED);
    return payload.length;
  }

  /** A learner is told to serve: UPTODATE. */
  welcome(peer: LearnerPeer): void {
    const { syncLimit, tickTimeMs } = this.#options;
    const nowMs = this.#clock.monotonicMs();
    peer.state = PeerState.serving;
    this.#confirmation.onServing(peer);
    peer.expect(nowMs, syncLimit * tickTimeMs);
    this.#feed.welcome(peer);
    this.#confirmation.onServed(peer, nowMs);
  }

  /** A learner has acknowledged NEWLEADER in an established epoch: it serves, and the txns that it holds count. */
  onSynchronized(peer: LearnerPeer): void {
    this.welcome(peer);
    if (peer.isVoter) this.#proposals.acknowledge(peer.serverId, peer.acked);
    this.advance();
  }

  /** The set of voters has changed: the txns that new voters hold count. */
  onElectorateChanged(): void {
    this.#confirmation.onElectorateChanged();
    for (const peer of this.#peers.values()) {
      if (peer.state === PeerState.connected) continue;
      peer.isVoter = !peer.isObserver && this.#electorate.voters.has(peer.serverId);
      if (!peer.isVoter) continue;
      // An announced learner's ACKs count together with its ACK of NEWLEADER; in other states it holds `acked` already.
      if (peer.state !== PeerState.announced) this.#proposals.acknowledge(peer.serverId, peer.acked);
      this.#confirmation.onVoter(peer);
    }
  }

  onLogSynced(durable: Durable<Zxid>): void {
    if (this.#phases.current !== 'broadcast') return;
    this.#effects.acknowledged(null, durable);
    this.#proposals.onLogSynced(durable);
    this.advance();
  }

  onAck(peer: LearnerPeer, zxid: Zxid): void {
    // An ACK of another epoch, of a txn that was not sent, or a repeated one is ignored: 3.8.0 acknowledges txns of the
    // history too. One that comes before the ACK of NEWLEADER counts with it (ZOOKEEPER-4685).
    const isNews = zxid > peer.acked && this.#proposals.isOutstandingOrCommitted(zxid);
    if (peer.state < PeerState.announced || !isNews) return;
    peer.acked = onDiskOfLearner(zxid);
    this.#effects.acknowledged(peer.link, peer.acked);
    if (peer.state !== PeerState.serving) return;
    if (peer.isVoter && zxid > this.#proposals.committed) {
      this.#proposals.acknowledge(peer.serverId, peer.acked);
      this.advance();
    } else {
      this.#handOver.maybeFinish();
    }
  }

  /** Commits, applies and answers what a new acknowledgement, log sync or confirmation allows. */
  advance(): void {
    while (this.#commitMore());
    const watermark = this.#proposals.apply();
    if (watermark !== null) this.#effects.committed(watermark);
    this.#confirmation.answerSyncs();
    this.#handOver.maybeFinish();
  }

  /** Another quorum decides after a change of the membership, so later txns are counted again. */
  #commitMore(): boolean {
    const before = this.#proposals.committed;
    if (!this.#proposals.commit()) return false;
    const change = this.#change.findCommitted(this.#proposals.committed);
    if (change !== null) this.#feed.activate(change, this.#change.designateLeader(change));
    this.#feed.commit(before);
    if (change !== null) {
      this.#change.end(change);
      this.onElectorateChanged();
    }
    // Only now: their NEWLEADER names the membership that is in force.
    for (const peer of this.#peers.values()) this.#synchronization.maybeStart(peer);
    return change !== null;
  }
}
