import type { Zxid } from '@meerkat/protocol';
import type { Electorate } from '../election/electorate.ts';
import type { LeaderEffects, LeaderMembership } from './leader-host.ts';
import type { LearnerPeers } from './learner-peers.ts';

/** The membership change that a leader has proposed but not committed; at most one at a time. */
export class MembershipProposal {
  readonly #serverId: number;
  readonly #electorate: Electorate;
  readonly #membership: LeaderMembership;
  readonly #peers: LearnerPeers;
  readonly #effects: Pick<LeaderEffects, 'membershipProposed' | 'membershipCommitted'>;
  #zxid: Zxid | null = null;

  constructor(
    serverId: number,
    electorate: Electorate,
    membership: LeaderMembership,
    peers: LearnerPeers,
    effects: Pick<LeaderEffects, 'membershipProposed' | 'membershipCommitted'>,
  ) {
    this.#serverId = serverId;
    this.#electorate = electorate;
    this.#membership = membership;
    this.#peers = peers;
    this.#effects = effects;
  }

  /** It is about to be proposed: the electorate is that of both memberships when this returns. */
  begin(zxid: Zxid, data: Uint8Array | null): void {
    this.#effects.membershipProposed(zxid, data);
    this.#zxid = zxid;
  }

  /** Its zxid if it is committed with everything up to `committed`; null otherwise. */
  findCommitted(committed: Zxid): Zxid | null {
    return this.#zxid !== null && committed >= this.#zxid ? this.#zxid : null;
  }

  /** It is committed: the electorate is that of the new membership when this returns. */
  end(zxid: Zxid): void {
    this.#zxid = null;
    this.#effects.membershipCommitted(zxid);
  }

  /** Chooses the leader of the new membership: this server if it may, else a voter of it that holds everything. */
  designateLeader(zxid: Zxid): number {
    if (this.#membership.keepsLeader) return this.#serverId;
    const { lastSeen } = this.#electorate;
    const holders = this.#peers.followers.filter(
      (peer) => peer.acked >= zxid && (lastSeen?.weightOf(peer.serverId) ?? 0) > 0,
    );
    const best = holders.toSorted((a, b) => b.acked - a.acked || b.serverId - a.serverId)[0];
    return best?.serverId ?? this.#serverId;
  }
}
