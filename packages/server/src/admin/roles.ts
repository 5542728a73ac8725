import type { EnsembleView, ServerView } from '@meerkat/core';
import { formatMembership, type Member, type Membership } from '@meerkat/protocol';

/** ZooKeeper's words for the roles: what `Mode:` and `zk_server_state` say, and the beginning of `zk_peer_state`. */
const ROLES: Readonly<Record<EnsembleView['role'], { readonly mode: string; readonly peerState: string }>> = {
  looking: { mode: 'leaderelection', peerState: 'looking' },
  leading: { mode: 'leader', peerState: 'leading' },
  following: { mode: 'follower', peerState: 'following' },
  observing: { mode: 'observer', peerState: 'observing' },
};

/** What the server is at the moment: `standalone`, `leader`, `follower`, `observer`, `read-only`. */
export function modeOf({ ensemble, isReadOnly }: ServerView): string {
  if (isReadOnly) return 'read-only';
  return ensemble === null ? 'standalone' : ROLES[ensemble.role].mode;
}

/** `leading - broadcast` and the like, as of a server that serves. */
export function peerStateOf({ role }: EnsembleView): string {
  return `${ROLES[role].peerState} - broadcast`;
}

/** How many of its learners a leader counts as what. */
export interface LearnerCounts {
  readonly all: number;
  readonly syncedFollowers: number;
  readonly syncedNonVotingFollowers: number;
  readonly syncedObservers: number;
}

export function countLearners(ensemble: EnsembleView): LearnerCounts {
  const all = ensemble.learners();
  const synced = all.filter(({ isSynchronized }) => isSynchronized);
  const followers = synced.filter(({ isObserver }) => !isObserver);
  return {
    all: all.length,
    // Both of the voting and of the others, as in ZooKeeper.
    syncedFollowers: followers.length,
    syncedNonVotingFollowers: followers.filter(({ isVoter }) => !isVoter).length,
    syncedObservers: synced.length - followers.length,
  };
}

export function countVoters({ members }: Membership): number {
  return members.filter(({ role }) => role === 'participant').length;
}

/** What `conf` has in an ensemble beyond the lines of a server on its own; it ends without a newline, as Apache's. */
export function formatEnsembleConfiguration(
  { membership }: EnsembleView,
  serverId: number,
  limits: { readonly initLimit: number; readonly syncLimit: number },
): string {
  const self = membership.members.find((member) => member.serverId === serverId);
  const ports = (portOf: (address: Member['addresses'][number]) => number): string =>
    (self?.addresses ?? []).map(portOf).join('|');
  return `initLimit=${limits.initLimit}
syncLimit=${limits.syncLimit}
electionAlg=3
electionPort=${ports((address) => address.electionPort)}
quorumPort=${ports((address) => address.quorumPort)}
peerType=${self?.role === 'observer' ? 1 : 0}
membership: 
${formatMembership(membership)}`;
}
