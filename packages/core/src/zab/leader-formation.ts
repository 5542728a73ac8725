/**
 * How a leader establishes its epoch: a quorum reports which epochs it has accepted, is sent LEADERINFO and answers
 * ACKEPOCH.
 *
 *     identified ── the epoch is chosen, and durable here ──► LEADERINFO ──► informed ── ACKEPOCH ──► waiting
 *
 * Learners that connect later take the same steps, one by one.
 */
import {
  Announcement,
  announcedLease,
  counterOf,
  epochOf,
  formatZxid,
  type LearnerInfoPacket,
  makeZxid,
  PacketType,
  QUORUM_PROTOCOL_VERSION,
  ZXID_NONE,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { type Durable, type EpochFileName, onDiskOfLearner } from '../base/durable.ts';
import type { Clock } from '../base/ports.ts';
import type { Electorate } from '../election/electorate.ts';
import { type History, hasAllOf } from './history.ts';
import type { LeaderEpoch } from './leader-epoch.ts';
import type { LeaderEffects } from './leader-host.ts';
import type { LeaderPhases } from './leader-phases.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';
import type { LearnerPeers } from './learner-peers.ts';
import type { LearnerSynchronization } from './learner-synchronization.ts';
import type { Proposals } from './proposals.ts';
import type { ZabOptions } from './zab-options.ts';

/** In ACKEPOCH: the learner had accepted this epoch before. */
const NOT_COUNTED = -1;

export interface LeaderFormationEvents {
  /** The connection is to be closed. */
  onRefused(peer: LearnerPeer, reason: string): void;
  /** This server cannot lead. */
  onUnfit(reason: string): void;
  /** currentEpoch is durable here. */
  onAdopted(): void;
  /** A learner that reconnected holds txns of this epoch. */
  onAcknowledged(): void;
  /** Another epoch is needed. */
  onLaterEpoch(reason: string): void;
}

interface LeaderFormationParts {
  readonly options: ZabOptions;
  readonly clock: Clock;
  readonly electorate: Electorate;
  readonly history: History;
  readonly phases: LeaderPhases;
  readonly epoch: LeaderEpoch;
  readonly peers: LearnerPeers;
  readonly proposals: Proposals;
  readonly synchronization: LearnerSynchronization;
  readonly effects: Pick<LeaderEffects, 'send' | 'adoptEpoch'>;
}

export class LeaderFormation {
  readonly #parts: LeaderFormationParts;
  readonly #events: LeaderFormationEvents;

  constructor(parts: LeaderFormationParts, events: LeaderFormationEvents) {
    this.#parts = parts;
    this.#events = events;
  }

  /** A learner is admitted. Its packet names its id and the epoch that it has accepted. */
  onAdmitted(peer: LearnerPeer, info: LearnerInfoPacket): void {
    const { options, electorate, epoch } = this.#parts;
    const { serverId } = info;
    assert(serverId !== null, 'a learner that is not refused has said which server it is');
    peer.identify(info, serverId, electorate.voters.has(serverId), options.leaseMs);
    peer.expectNothing();
    const acceptedEpoch = epochOf(info.zxid);
    if (epoch.accepted === null) {
      epoch.record(peer, acceptedEpoch);
      this.maybeChooseEpoch();
      return;
    }
    this.#inform(peer, epoch.accepted);
    if (!peer.isVoter || acceptedEpoch <= epoch.number) return;
    const excess = epoch.onLaterPromise(peer, acceptedEpoch);
    if (excess !== null) this.#events.onRefused(peer, excess);
  }

  maybeChooseEpoch(): void {
    const { epoch, peers } = this.#parts;
    if (epoch.number >= 0) return;
    const unfitness = epoch.choose(peers.votersThat(({ state }) => state === PeerState.identified));
    if (unfitness !== null) this.#events.onUnfit(unfitness);
  }

  onEpochDurable(name: EpochFileName, durable: Durable<number>): void {
    const { epoch, phases, peers } = this.#parts;
    const { pendingBump } = epoch;
    if (pendingBump !== null) {
      if (durable === pendingBump.accepted) this.#events.onLaterEpoch(pendingBump.reason);
      return;
    }
    assert(durable === epoch.number, 'the epoch that became durable is the one that was chosen');
    if (name === 'currentEpoch') {
      epoch.adopted = durable;
      this.#events.onAdopted();
      return;
    }
    epoch.accepted = durable;
    phases.enter('epoch');
    for (const peer of peers.values()) if (peer.state === PeerState.identified) this.#inform(peer, durable);
    this.#maybeFinishEpoch();
  }

  #inform(peer: LearnerPeer, accepted: Durable<number>): void {
    const { options, clock, effects } = this.#parts;
    peer.state = PeerState.informed;
    peer.expect(clock.monotonicMs(), options.initLimit * options.tickTimeMs);
    effects.send(peer.link, {
      type: PacketType.leaderInfo,
      zxid: makeZxid(accepted, 0),
      protocolVersion: QUORUM_PROTOCOL_VERSION,
      announces: Announcement.takesHandOver + announcedLease(options.leaseMs),
    });
  }

  onAckEpoch(peer: LearnerPeer, lastZxid: Zxid, currentEpoch: number): void {
    const { epoch, phases, proposals, synchronization } = this.#parts;
    const refusal = this.#findRefusal(peer, lastZxid, currentEpoch);
    if (refusal !== null) {
      this.#events.onRefused(peer, refusal);
      return;
    }
    peer.state = PeerState.waiting;
    peer.expectNothing();
    peer.lastZxid = lastZxid;
    if (peer.isVoter && currentEpoch !== NOT_COUNTED && lastZxid !== ZXID_NONE) epoch.confirm(peer.serverId);
    const isOfThisEpoch = this.#isOfThisEpoch(lastZxid);
    if (isOfThisEpoch && peer.keepsLog) {
      // It lost its connection during this epoch. Its log holds everything up to `lastZxid`, acknowledged or not.
      peer.acked = onDiskOfLearner(lastZxid);
      if (peer.isVoter) proposals.acknowledge(peer.serverId, peer.acked);
    }
    if (phases.current === 'epoch') {
      this.#maybeFinishEpoch();
    } else {
      synchronization.maybeStart(peer);
      if (isOfThisEpoch && peer.keepsLog) this.#events.onAcknowledged();
    }
  }

  #findRefusal(peer: LearnerPeer, lastZxid: Zxid, currentEpoch: number): string | null {
    const { history, phases, proposals } = this.#parts;
    if (peer.state !== PeerState.informed) return `${peer.name} sends an unexpected ACKEPOCH`;
    const isLater = !hasAllOf(history, { currentEpoch, lastZxid });
    // A quorum has adopted this server's history for the epoch: what a learner has beyond it was never committed.
    if (isLater && currentEpoch !== NOT_COUNTED && phases.current !== 'broadcast') {
      return (
        `${peer.name} has a later history than this leader: epoch ${currentEpoch} and ${formatZxid(lastZxid)}, ` +
        `not epoch ${history.currentEpoch} and ${formatZxid(history.lastZxid)}`
      );
    }
    if (this.#isOfThisEpoch(lastZxid) && lastZxid > proposals.lastProposed) {
      return `${peer.name} has ${formatZxid(lastZxid)}, which this leader has not proposed`;
    }
    return null;
  }

  #isOfThisEpoch(zxid: Zxid): boolean {
    return epochOf(zxid) === this.#parts.epoch.number && counterOf(zxid) > 0;
  }

  #maybeFinishEpoch(): void {
    const { epoch, history, phases, peers, proposals, synchronization, effects } = this.#parts;
    if (!epoch.isConfirmed) return;
    phases.enter('synchronization');
    proposals.beginEpoch(epoch.number);
    effects.adoptEpoch(epoch.number, history.lastZxid);
    for (const peer of peers.values()) synchronization.maybeStart(peer);
  }
}
