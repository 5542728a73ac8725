import {
  formatMembership,
  type Member,
  type Membership,
  makeZxid,
  parseMembership,
  ZXID_ZERO,
} from '@meerkat/protocol';
import type { Endpoint } from '../base/ports.ts';
import { Electorate } from '../election/electorate.ts';
import { findQuorumProblem, makeQuorum, type QuorumShape } from '../election/quorum.ts';
import { onePerPort } from '../links/address-list.ts';

/**
 * The servers of an ensemble: their ids, their addresses, and which of them vote.
 *
 *     committed ── a reconfig is proposed ──► committed and proposed ── it is committed ──► the next committed one
 *
 * 1. Versions of the committed membership ascend, and the proposed one is newer.
 * 2. `electorate` is the same object for the lifetime of the server, so all its users see a change at once.
 */
export class Members {
  readonly electorate: Electorate;
  readonly #isReconfigEnabled: boolean;
  #committed: Membership;
  /** The membership last proposed by a leader (`lastSeenQuorumVerifier`); null once it is committed. */
  #proposed: Membership | null = null;
  #byId: ReadonlyMap<number, Member> = new Map();

  constructor(membership: Membership, isReconfigEnabled = false) {
    this.#isReconfigEnabled = isReconfigEnabled;
    this.#committed = membership;
    this.electorate = new Electorate(quorumOf(membership));
    this.#onChanged();
  }

  /** The last committed membership. */
  get membership(): Membership {
    return this.#committed;
  }

  get proposed(): Membership | null {
    return this.#proposed;
  }

  /** The proposed membership if there is one, otherwise the committed one. */
  get newest(): Membership {
    return this.#proposed ?? this.#committed;
  }

  /** The committed membership as sent to other servers. */
  get configText(): string {
    return this.#textOf(this.#committed);
  }

  /** The newest membership as sent to other servers. */
  get newestText(): string {
    return this.#textOf(this.newest);
  }

  /** Servers of the committed membership, followed by those that are only in the proposed one. */
  get all(): Iterable<Member> {
    return this.#byId.values();
  }

  isMember(id: number): boolean {
    return this.#byId.has(id);
  }

  /** True for a participant of the committed membership. */
  isParticipant(id: number): boolean {
    return findMember(this.#committed, id)?.role === 'participant';
  }

  /**
   * True when the committed membership lists it as an observer. A server that is not in it at all follows without a
   * vote.
   */
  isObserver(id: number): boolean {
    return findMember(this.#committed, id)?.role === 'observer';
  }

  /** True when the committed membership has it in any role. */
  isCommittedMember(id: number): boolean {
    return findMember(this.#committed, id) !== null;
  }

  /** True when the leader stays in the newest membership, as a participant with the same address. */
  keepsLeader(id: number): boolean {
    if (this.#proposed === null) return this.isParticipant(id);
    return isLeadable(this.#proposed, id) && hasSameQuorumAddress(this.#committed, this.#proposed, id);
  }

  /** Hosts of all servers of the committed and of the proposed membership. */
  get hosts(): readonly string[] {
    const members = [...this.#committed.members, ...(this.#proposed?.members ?? [])];
    return [...new Set(members.flatMap(({ addresses }) => addresses.map(({ host }) => host)))];
  }

  /**
   * Why a peer's claim to be this server is refused; null if it is not refused. A server that is not a member has no
   * vote, and may present a certificate for any member.
   *
   * @param certifiedHosts see `ByteStream`
   */
  refusalOfClaim(id: number, certifiedHosts: readonly string[] | null | undefined): string | null {
    if (certifiedHosts === null || certifiedHosts === undefined) return null;
    const memberships = this.#proposed === null ? [this.#committed] : [this.#committed, this.#proposed];
    const claimed = memberships.flatMap((membership) => findMember(membership, id)?.addresses ?? []);
    if (claimed.length === 0 || claimed.some(({ host }) => certifiedHosts.includes(host))) return null;
    return `it claims to be server ${id}, and has proved to be ${certifiedHosts.join(', ') || 'no member'}, not ${claimed[0]!.host}`;
  }

  /** Where a leader accepts its learners; empty for a server that is not a member. */
  quorumEndpointsOf(id: number): readonly Endpoint[] {
    const addresses = this.#byId.get(id)?.addresses ?? [];
    return addresses.map(({ host, quorumPort }) => ({ host, port: quorumPort }));
  }

  /** Where a follower listens for observers, at the addresses by which other servers know it; empty if it does not. */
  observerListenersOf(id: number, port: number, listensOnAllIps: boolean): readonly Endpoint[] {
    if (!this.isParticipant(id)) return [];
    const endpoints = this.quorumEndpointsOf(id).map(({ host }) => ({ host, port }));
    return listensOnAllIps ? onePerPort(endpoints) : endpoints;
  }

  /** Where followers may accept observers: each address of each voter except the leader. */
  observerMasters(leader: number, port: number): readonly { readonly serverId: number; readonly at: Endpoint }[] {
    const voters = this.membership.members.filter(
      ({ serverId, role }) => role === 'participant' && serverId !== leader,
    );
    return voters.flatMap(({ serverId, addresses }) => addresses.map(({ host }) => ({ serverId, at: { host, port } })));
  }

  /** Where a server listens for learners; empty for an observer, which never leads. */
  quorumListenersOf(id: number, listensOnAllIps: boolean): readonly Endpoint[] {
    if (this.#byId.get(id)?.role !== 'participant') return [];
    const endpoints = this.quorumEndpointsOf(id);
    return listensOnAllIps ? onePerPort(endpoints) : endpoints;
  }

  /* ---------------------------------------------------------------------------------------------- changes ---- */

  /** A leader has proposed this membership; null: the proposal has been dropped. */
  propose(membership: Membership | null): void {
    this.#proposed = membership === null || membership.version <= this.#committed.version ? null : membership;
    this.#onChanged();
  }

  /**
   * This membership is committed.
   *
   * @returns false when it is not newer than the committed one, and nothing has changed
   */
  commit(membership: Membership): boolean {
    if (membership.version <= this.#committed.version) return false;
    this.#committed = membership;
    if (this.#proposed !== null && this.#proposed.version <= membership.version) this.#proposed = null;
    this.#onChanged();
    return true;
  }

  /** The first leader of an ensemble gives the membership a version, which is committed with its epoch. */
  establish(epoch: number): void {
    if (this.#isReconfigEnabled && this.newest.version === ZXID_ZERO) {
      this.propose({ ...this.#committed, version: makeZxid(epoch, 0) });
    }
  }

  #onChanged(): void {
    const proposed = this.#proposed;
    const newcomers = proposed?.members.filter(({ serverId }) => findMember(this.#committed, serverId) === null) ?? [];
    this.#byId = new Map([...this.#committed.members, ...newcomers].map((member) => [member.serverId, member]));
    this.electorate.change(quorumOf(this.#committed), proposed === null ? null : quorumOf(proposed));
  }

  /**
   * Leaves out TLS addresses unless memberships can change: servers before 3.9 refuse them, and no server needs them
   * then.
   */
  #textOf(membership: Membership): string {
    if (this.#isReconfigEnabled) return formatMembership(membership);
    const members = membership.members.map((member) => ({ ...member, secureClient: null }));
    return formatMembership({ ...membership, members });
  }
}

export function findMember({ members }: Membership, id: number): Member | null {
  return members.find(({ serverId }) => serverId === id) ?? null;
}

/** True when a leader with this id keeps its addresses in the change. */
export function hasSameQuorumAddress(before: Membership, after: Membership, id: number): boolean {
  const endpoints = (membership: Membership): string =>
    JSON.stringify(findMember(membership, id)?.addresses.map(({ host, quorumPort }) => [host, quorumPort]) ?? []);
  return endpoints(before) === endpoints(after);
}

export function quorumOf(membership: Membership): ReturnType<typeof makeQuorum> {
  return makeQuorum(quorumShapeOf(membership));
}

/** Parses a membership that this server can use: one that has quorums. */
export function parseUsableMembership(text: string): Membership | { readonly fault: string } {
  const membership = parseMembership(text);
  if ('fault' in membership) return membership;
  const problem = findQuorumProblem(quorumShapeOf(membership));
  return problem === null ? membership : { fault: problem };
}

/** True when both have the same servers with the same roles, regardless of version. */
export function hasSameContent(a: Membership, b: Membership): boolean {
  return formatMembership({ ...a, version: ZXID_ZERO }) === formatMembership({ ...b, version: ZXID_ZERO });
}

function isLeadable(membership: Membership, id: number): boolean {
  return findMember(membership, id)?.role === 'participant' && quorumOf(membership).weightOf(id) > 0;
}

export function quorumShapeOf({ members, hierarchy }: Membership): QuorumShape {
  const voters = members.filter(({ role }) => role === 'participant').map(({ serverId }) => serverId);
  if (hierarchy === null) return { voters };
  const isVoter = new Set(voters);
  const groups = [...hierarchy.groups.values()].map((ids) => ids.filter((id) => isVoter.has(id)));
  const weights = new Map([...hierarchy.weights].filter(([id]) => isVoter.has(id)));
  return { voters, groups: groups.filter((ids) => ids.length > 0), weights };
}
