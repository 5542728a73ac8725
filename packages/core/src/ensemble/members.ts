import { formatMembership, type Member, type Membership } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Endpoint } from '../base/ports.ts';
import { Electorate } from '../election/electorate.ts';
import { makeQuorum, type QuorumShape } from '../election/quorum.ts';
import { onePerPort } from '../links/address-list.ts';

/** The servers of an ensemble: who they are, where they are, and who of them decides. */
export class Members {
  readonly membership: Membership;
  readonly electorate: Electorate;
  /** What this server tells others about the membership; without addresses for TLS, which servers before 3.9 refuse. */
  readonly configText: string;
  readonly #byId: ReadonlyMap<number, Member>;

  constructor(membership: Membership) {
    this.membership = membership;
    this.electorate = new Electorate(makeQuorum(quorumShapeOf(membership)));
    const members = membership.members.map((member) => ({ ...member, secureClient: null }));
    this.configText = formatMembership({ ...membership, members });
    this.#byId = new Map(membership.members.map((member) => [member.serverId, member]));
  }

  isMember(id: number): boolean {
    return this.#byId.has(id);
  }

  isParticipant(id: number): boolean {
    return this.#byId.get(id)?.role === 'participant';
  }

  /** Where a leader takes the connections of its learners: one address at least. */
  quorumEndpointsOf(id: number): readonly Endpoint[] {
    const addresses = this.#byId.get(id)?.addresses ?? [];
    assert(addresses.length > 0, `server ${id} is a member with an address`);
    return addresses.map(({ host, quorumPort }) => ({ host, port: quorumPort }));
  }

  /** Where a server listens for its learners. */
  quorumListenersOf(id: number, listensOnAllIps: boolean): readonly Endpoint[] {
    const endpoints = this.quorumEndpointsOf(id);
    return listensOnAllIps ? onePerPort(endpoints) : endpoints;
  }
}

function quorumShapeOf({ members, hierarchy }: Membership): QuorumShape {
  const voters = members.filter(({ role }) => role === 'participant').map(({ serverId }) => serverId);
  if (hierarchy === null) return { voters };
  const isVoter = new Set(voters);
  const groups = [...hierarchy.groups.values()].map((ids) => ids.filter((id) => isVoter.has(id)));
  const weights = new Map([...hierarchy.weights].filter(([id]) => isVoter.has(id)));
  return { voters, groups: groups.filter((ids) => ids.length > 0), weights };
}
