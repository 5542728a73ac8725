import type { Member, Membership } from '@meerkat/protocol';

/** The voters and quorums of one membership (QuorumMaj, QuorumHierarchical). */
export class ApacheQuorum {
  readonly voters: ReadonlySet<number>;
  readonly #membership: Membership;

  constructor(membership: Membership) {
    this.#membership = membership;
    this.voters = new Set(membership.members.filter(isVoter).map((member) => member.serverId));
  }

  /** A server of weight 0 cannot be voted for. */
  weightOf(serverId: number): number {
    const { hierarchy } = this.#membership;
    return hierarchy === null ? 1 : (hierarchy.weights.get(serverId) ?? 0);
  }

  /** `containsQuorum`; servers that do not vote are ignored. */
  isReachedBy(servers: Iterable<number>): boolean {
    const agreed = new Set([...servers].filter((id) => this.voters.has(id)));
    const { hierarchy } = this.#membership;
    if (hierarchy === null) return agreed.size > Math.floor(this.voters.size / 2);
    const sum = (ids: readonly number[]) => ids.reduce((total, id) => total + this.weightOf(id), 0);
    const groups = [...hierarchy.groups.values()].filter((ids) => sum(ids) > 0);
    const won = groups.filter((ids) => sum(ids.filter((id) => agreed.has(id))) > Math.floor(sum(ids) / 2));
    return won.length > Math.floor(groups.length / 2);
  }
}

function isVoter(member: Member): boolean {
  return member.role === 'participant';
}
