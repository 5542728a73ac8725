import type { Membership } from '@meerkat/protocol';
import type { EnsembleView, LearnerView, ProposalSizesView } from '../base/server-view.ts';
import type { ElectionLinks } from '../links/election-links.ts';
import { Leading } from './leading.ts';
import { Learning } from './learning.ts';
import type { MembershipKeeper } from './membership-keeper.ts';
import type { Role } from './role.ts';

/** The administrative view of an ensemble, as seen by one of its servers. */
export class PeerView implements EnsembleView {
  readonly #serverId: number;
  readonly #memberships: MembershipKeeper;
  readonly #links: ElectionLinks;
  readonly #findRole: () => Role | null;

  /** @param findRole returns null while the server is looking */
  constructor(serverId: number, memberships: MembershipKeeper, links: ElectionLinks, findRole: () => Role | null) {
    this.#serverId = serverId;
    this.#memberships = memberships;
    this.#links = links;
    this.#findRole = findRole;
  }

  get membership(): Membership {
    return this.#memberships.members.membership;
  }

  hosts(): readonly string[] {
    return this.#memberships.members.hosts;
  }

  get role(): EnsembleView['role'] {
    const role = this.#findRole();
    if (role === null) return 'looking';
    if (role instanceof Leading) return 'leading';
    return this.#memberships.members.isObserver(this.#serverId) ? 'observing' : 'following';
  }

  get leader(): number | null {
    return this.#findRole()?.leader ?? null;
  }

  get observerMaster(): number | null {
    const role = this.#findRole();
    return this.role === 'observing' && role instanceof Learning ? role.observerMaster : null;
  }

  get feedsObservers(): boolean {
    const role = this.#findRole();
    return role instanceof Learning && role.feedsObservers;
  }

  get connectedServers(): readonly number[] {
    return this.#links.connectedServers;
  }

  learners(): readonly LearnerView[] {
    return this.#findRole()?.learners() ?? [];
  }

  get pendingSyncs(): number {
    const role = this.#findRole();
    return role instanceof Leading ? role.pendingSyncs : 0;
  }

  get rememberedTxns(): number {
    return this.#findRole()?.rememberedTxns ?? 0;
  }

  get proposalSizes(): ProposalSizesView | null {
    const role = this.#findRole();
    return role instanceof Leading ? role.proposalSizes : null;
  }
}
