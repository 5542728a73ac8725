import type { Clock } from '../base/ports.ts';
import type { Electorate } from '../election/electorate.ts';
import { CatchUp } from './catch-up.ts';
import { HandOver } from './hand-over.ts';
import type { History } from './history.ts';
import { LeadConfirmation } from './lead-confirmation.ts';
import { LeaderBroadcast } from './leader-broadcast.ts';
import { LeaderEpoch } from './leader-epoch.ts';
import { LeaderFormation } from './leader-formation.ts';
import type { LeaderEffects, LeaderMembership, PeerVotes } from './leader-host.ts';
import { LeaderPhases } from './leader-phases.ts';
import { LearnerAdmission } from './learner-admission.ts';
import { LearnerFeed } from './learner-feed.ts';
import type { LearnerPeer } from './learner-peer.ts';
import { LearnerPeers } from './learner-peers.ts';
import { LearnerSynchronization } from './learner-synchronization.ts';
import { Proposals } from './proposals.ts';
import type { ZabOptions } from './zab-options.ts';

export interface LeaderParts {
  readonly options: ZabOptions;
  readonly clock: Clock;
  readonly electorate: Electorate;
  readonly membership: LeaderMembership;
  /** This server's own. */
  readonly history: History;
  readonly peerVotes: PeerVotes;
  readonly effects: LeaderEffects;
  /** See `CatchUp`. */
  readonly needSnapshot?: Set<number> | undefined;
}

/** Requests of a leader's parts to the leader. */
export interface LeaderPartEvents {
  close(peer: LearnerPeer, reason: string): void;
  /** currentEpoch is durable here: the epoch is established if a quorum is synchronized. */
  maybeEstablish(): void;
  handOver(reason: string): void;
  stepDown(reason: string): void;
}

/** The parts of a leader, connected to each other. */
export interface LeaderAssembly {
  readonly phases: LeaderPhases;
  readonly epoch: LeaderEpoch;
  readonly peers: LearnerPeers;
  readonly admission: LearnerAdmission;
  readonly proposals: Proposals;
  readonly feed: LearnerFeed;
  readonly synchronization: LearnerSynchronization;
  readonly formation: LeaderFormation;
  readonly confirmation: LeadConfirmation;
  readonly handOver: HandOver;
  readonly broadcast: LeaderBroadcast;
}

export function assembleLeader(parts: LeaderParts, events: LeaderPartEvents): LeaderAssembly {
  const { options, clock, electorate, membership, history, peerVotes, effects, needSnapshot = new Set() } = parts;
  const { serverId, tickTimeMs } = options;
  const initMs = options.initLimit * tickTimeMs;
  const close = (peer: LearnerPeer, reason: string): void => events.close(peer, reason);
  const stepDown = (reason: string): void => events.stepDown(reason);

  const phases = new LeaderPhases(clock, initMs);
  const epoch = new LeaderEpoch(options, phases, electorate, history, peerVotes, effects);
  const peers = new LearnerPeers();
  const proposals = new Proposals(serverId, electorate, history, options.commitLogCount);
  const feed = new LearnerFeed(peers, proposals, effects, membership);
  const catchUp = new CatchUp(proposals, effects, options.txnBytesMax, needSnapshot);
  const synchronization = new LearnerSynchronization(clock, initMs, proposals, catchUp, feed, close);
  const confirmation = new LeadConfirmation(options, clock, electorate, peers, proposals, feed, effects);
  const handOver = new HandOver(clock, tickTimeMs, electorate, peers, proposals, effects, stepDown);
  const shared = { options, clock, electorate, effects, phases, peers, proposals, synchronization };
  const broadcast = new LeaderBroadcast({ ...shared, membership, feed, confirmation, handOver });
  const formation = new LeaderFormation(
    { ...shared, history, epoch },
    {
      onRefused: close,
      onUnfit: stepDown,
      onAdopted: () => events.maybeEstablish(),
      onAcknowledged: () => broadcast.advance(),
      onLaterEpoch: (reason) => events.handOver(reason),
    },
  );
  const admission = new LearnerAdmission(peers, serverId, membership, tickTimeMs, {
    isOver: () => phases.current === 'over',
    onAdmitted: (peer, info) => formation.onAdmitted(peer, info),
    onRefused: close,
  });
  return {
    phases,
    epoch,
    peers,
    admission,
    proposals,
    feed,
    synchronization,
    formation,
    confirmation,
    handOver,
    broadcast,
  };
}
