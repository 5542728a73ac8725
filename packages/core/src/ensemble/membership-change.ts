/**
 * Computes the membership that results from a reconfig (PrepRequestProcessor), independent of leaders and learners.
 *
 * - incremental: `leaving` are removed first, then `joining` are added, or replace the member with the same id;
 * - bulk: `newMembers` is the whole list, including groups and weights, if any.
 */
import {
  findMembershipFault,
  formatMembership,
  type Member,
  type Membership,
  type MembershipFault,
  type MembershipRules,
  parseMember,
  parseMembership,
  type ReconfigRequest,
  type Zxid,
} from '@meerkat/protocol';
import { findQuorumProblem } from '../election/quorum.ts';
import { quorumShapeOf } from './members.ts';

/** Maximum characters of a membership. Every election notification carries it, in a frame of at most 512 KiB. */
const TEXT_MAX = 128 * 1024;
/** Maximum voters of the old and new membership together that a leader can count. */
const VOTERS_MAX = 53;

export function planMembership(
  current: Membership,
  request: ReconfigRequest,
  rules: MembershipRules,
  version: Zxid,
): Membership | MembershipFault {
  const planned = request.newMembers === null ? planIncrement(current, request) : parseBulk(request.newMembers);
  if ('fault' in planned) return planned;
  const membership: Membership = { ...planned, version };
  const fault = findMembershipFault(membership, rules) ?? findQuorumProblem(quorumShapeOf(membership));
  if (fault !== null) return { fault };
  const { length } = formatMembership(membership);
  if (length > TEXT_MAX) return { fault: `the list has ${length} characters, and elections allow at most ${TEXT_MAX}` };
  const voters = votersOf(membership);
  if (rules.isStandaloneEnabled && voters.length < 2) {
    return { fault: 'there must be 2 participants at least while standaloneEnabled is true' };
  }
  const together = new Set([...voters, ...votersOf(current)]).size;
  return together <= VOTERS_MAX
    ? membership
    : { fault: `there are ${together} participants before and after together` };
}

function planIncrement(
  current: Membership,
  { joiningServers, leavingServers }: ReconfigRequest,
): Membership | MembershipFault {
  if (current.hierarchy !== null) return { fault: 'an ensemble with groups is changed by giving the whole list' };
  const members = new Map(current.members.map((member) => [member.serverId, member]));
  for (const text of listOf(leavingServers)) {
    const id = parseId(text);
    if (id === null) return { fault: `"${text}" is not a server id` };
    members.delete(id);
  }
  for (const text of listOf(joiningServers)) {
    const member = parseJoining(text);
    if ('fault' in member) return member;
    const clash = findClash(member, members.values());
    if (clash !== null) return { fault: `server.${member.serverId} has ${clash}` };
    members.set(member.serverId, member);
  }
  const sorted = [...members.values()].sort((a, b) => a.serverId - b.serverId);
  return { version: current.version, members: sorted, hierarchy: null };
}

function parseBulk(text: string): Membership | MembershipFault {
  const membership = parseMembership(text.replaceAll(',', '\n'));
  if ('fault' in membership) return membership;
  const seen: Member[] = [];
  for (const member of membership.members) {
    const clash = findClash(member, seen);
    if (clash !== null) return { fault: `server.${member.serverId} has ${clash}` };
    seen.push(member);
  }
  return membership;
}

function listOf(text: string | null): readonly string[] {
  return (text ?? '').split(',').filter((part) => part.trim() !== '');
}

function parseId(text: string): number | null {
  const trimmed = text.trim();
  return /^\d{1,9}$/.test(trimmed) ? Number(trimmed) : null;
}

function parseJoining(text: string): Member | MembershipFault {
  const [, idText = '', value = ''] = /^\s*server\.(\d{1,9})\s*=\s*(\S+)\s*$/.exec(text) ?? [];
  const id = parseId(idText);
  if (id === null) {
    return { fault: `"${text}" is not server.N=host:quorumPort:electionPort[:role];[host:]clientPort` };
  }
  const member = parseMember(id, value);
  if ('fault' in member || member.client !== null || member.secureClient !== null) return member;
  return { fault: `server.${id}=${value}: there is no client port: each server has three ports` };
}

/** Addresses that mean a different machine on each server, and so never clash. */
const LOCAL_HOST = /^(localhost|127\..*|::1|0:0:0:0:0:0:0:1|0\.0\.0\.0|::|0:0:0:0:0:0:0:0)$/i;

/** Describes an address that a server shares with another one; null if there is none. */
function findClash(member: Member, others: Iterable<Member>): string | null {
  const own = new Set(portsOf(member));
  for (const other of others) {
    if (other.serverId === member.serverId) continue;
    const shared = portsOf(other).find((address) => own.has(address));
    if (shared !== undefined) return `the address ${shared} of server.${other.serverId}`;
  }
  return null;
}

function portsOf({ addresses, client }: Member): readonly string[] {
  const all: string[] = [];
  const add = (host: string, port: number): void => {
    if (!LOCAL_HOST.test(host)) all.push(`${host.toLowerCase()}:${port}`);
  };
  for (const { host, quorumPort, electionPort } of addresses) {
    add(host, quorumPort);
    add(host, electionPort);
  }
  if (client !== null) add(client.host, client.port);
  return all;
}

function votersOf({ members }: Membership): readonly number[] {
  return members.filter(({ role }) => role === 'participant').map(({ serverId }) => serverId);
}
