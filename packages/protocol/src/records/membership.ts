/**
 * The membership of an ensemble as text: the data of `/zookeeper/config`, of notifications and of NEWLEADER, and with
 * keys of no other kind beside them, the file of the dynamic configuration (QuorumPeerConfig, QuorumMaj,
 * QuorumHierarchical).
 *
 *     server.<id>=<address>[|<address>…][;[<client>][;<secure client>]]
 *     address  := host ":" quorumPort ":" electionPort [":participant" | ":observer"]
 *     client   := [host ":"] port
 *     group.<number>=<id>[:<id>…]
 *     weight.<id>=<weight>
 *     version=<zxid of the reconfig in hexadecimal>
 */
import { textBytes } from '../jute/text-bytes.ts';
import { formatZxid, parseZxid, ZXID_ZERO, type Zxid } from '../zxid.ts';
import { ELECTION_FRAME_BYTES_MAX } from './election.ts';
import {
  formatHost,
  formatHostPort,
  type HostPort,
  isHost,
  parsePort,
  splitHostAndPorts,
  splitText,
} from './host-port.ts';

export type ServerRole = 'participant' | 'observer';

export interface MemberAddress {
  readonly host: string;
  readonly quorumPort: number;
  readonly electionPort: number;
}

export interface Member {
  readonly serverId: number;
  readonly role: ServerRole;
  /** At least one; ordered by host. */
  readonly addresses: readonly MemberAddress[];
  /** Where clients connect; null when the static part of the configuration names it. */
  readonly client: HostPort | null;
  /** Where clients connect by TLS; servers before 3.9 refuse a text that has one. */
  readonly secureClient: HostPort | null;
}

/** Groups and weights of a hierarchical quorum. */
export interface Hierarchy {
  /** Server ids by the number of their group; every participant is in exactly one. */
  readonly groups: ReadonlyMap<number, readonly number[]>;
  /** Of every participant, 1 by default, and of other servers to which the text assigns one. */
  readonly weights: ReadonlyMap<number, number>;
}

export interface Membership {
  /** zxid of the change that established it; 0 when none has. */
  readonly version: Zxid;
  /** Ordered by server id. */
  readonly members: readonly Member[];
  /** null: a quorum is a majority of the participants. */
  readonly hierarchy: Hierarchy | null;
}

/** What is wrong with a text, human-readable. */
export interface MembershipFault {
  readonly fault: string;
}

/** Requirements of the configuration of this server on every membership. */
export interface MembershipRules {
  /** A server may be alone, `standaloneEnabled`. */
  readonly isStandaloneEnabled: boolean;
  /** A server may have several addresses, `multiAddress.enabled`. */
  readonly isMultiAddressEnabled: boolean;
}

/** The text, its lines in canonical order regardless of the order of the members; no newline at its end. */
export function formatMembership(membership: Membership): string {
  const lines = membership.members.toSorted(byServerId).map((member) => formatMember(member));
  if (membership.hierarchy !== null) {
    const { groups, weights } = membership.hierarchy;
    for (const [group, servers] of [...groups].sort(byKey)) lines.push(`group.${group}=${servers.join(':')}`);
    for (const [server, weight] of [...weights].sort(byKey)) lines.push(`weight.${server}=${weight}`);
  }
  lines.push(`version=${formatZxid(membership.version)}`);
  return lines.join('\n');
}

/** One line of the text. */
export function formatMember(member: Member): string {
  return `server.${member.serverId}=${formatMemberValue(member)}`;
}

/**
 * Reads the text as Apache's servers do, but for escapes and line continuations, which no server writes, for ids and
 * weights below 0, for hosts that are empty or have blanks, and for a server that is named twice: those are faults.
 */
export function parseMembership(text: string): Membership | MembershipFault {
  const members = new Map<number, Member>();
  const groups = new Map<number, readonly number[]>();
  const weights = new Map<number, number>();
  let version = ZXID_ZERO;
  if (text.includes('\\')) return { fault: 'there is a backslash, which begins an escape or a line continuation' };
  for (const line of text.split(/\r\n|\r|\n/)) {
    const property = parseProperty(line);
    if (property === null) continue;
    const { key, value } = property;
    const dot = key.indexOf('.');
    const kind = dot < 0 ? key : key.slice(0, dot);
    const number = parseNumber(key.slice(dot + 1));
    if (key === 'version') {
      const zxid = parseZxid(value);
      if (zxid === null) return { fault: `version "${value}" is no zxid in hexadecimal` };
      version = zxid;
    } else if ((kind !== 'server' && kind !== 'group' && kind !== 'weight') || dot < 0 || number === null) {
      return { fault: `"${line.trim()}" is neither server.N, group.N, weight.N nor version` };
    } else if (kind === 'server') {
      const member = parseMember(number, value);
      if ('fault' in member) return member;
      if (members.has(number)) return { fault: `server.${number} is there twice` };
      members.set(number, member);
    } else if (kind === 'group') {
      const servers = splitText(value, ':').map(parseNumber);
      if (servers.length === 0 || servers.includes(null)) return { fault: `${key}=${value} is no list of server ids` };
      if (groups.has(number)) return { fault: `group.${number} is there twice` };
      groups.set(number, servers as number[]);
    } else {
      const weight = parseNumber(value);
      if (weight === null) return { fault: `${key}=${value} is no weight: a number from 0 on` };
      weights.set(number, weight);
    }
  }
  const sorted = [...members.values()].sort(byServerId);
  if (groups.size + weights.size === 0) return { version, members: sorted, hierarchy: null };
  const hierarchy = makeHierarchy(sorted, groups, weights);
  return 'fault' in hierarchy ? hierarchy : { version, members: sorted, hierarchy };
}

/** Reads the value of `server.<id>=`. */
export function parseMember(serverId: number, value: string): Member | MembershipFault {
  const fault = (what: string): MembershipFault => ({ fault: `server.${serverId}=${value}: ${what}` });
  const [servers = '', clientText = '', secureText = '', ...rest] = splitText(value, ';');
  if (rest.length > 0) return fault('there is more than a client address and a secure client address');
  const addresses: MemberAddress[] = [];
  let role: ServerRole | null = null;
  for (const text of splitText(servers, '|')) {
    const parts = splitHostAndPorts(text) ?? [];
    if (parts.length < 3 || parts.length > 4) return fault(`"${text}" is not host:quorumPort:electionPort[:role]`);
    const host = parts[0]!;
    const quorumPort = parsePort(parts[1]!);
    const electionPort = parsePort(parts[2]!);
    if (!isHost(host)) return fault(`"${text}" has no host, or blanks in it`);
    if (quorumPort === null || electionPort === null) return fault(`"${text}" has a port that is not from 0 to 65535`);
    if (quorumPort === electionPort) return fault('quorum port and election port must differ');
    if (parts.length === 4) {
      const ownRole = parseRole(parts[3]!);
      if (ownRole === null) return fault(`"${parts[3]}" is neither participant nor observer`);
      if (role !== null && role !== ownRole) return fault('its addresses name different roles');
      role = ownRole;
    }
    addresses.push({ host, quorumPort, electionPort });
  }
  if (addresses.length === 0) return fault('there is no address');
  const client = parseClient(clientText);
  const secureClient = parseClient(secureText);
  if (client === undefined) return fault(`"${clientText}" is not [host:]port`);
  if (secureClient === undefined) return fault(`"${secureText}" is not [host:]port`);
  addresses.sort(byAddress);
  return { serverId, role: role ?? 'participant', addresses, client, secureClient };
}

/**
 * Why this server must not follow the membership; null when it may.
 *
 * Apache's server stops reading its election port when it receives a membership that breaks these rules, so such a
 * membership must never be sent either.
 */
export function findMembershipFault(membership: Membership, rules: MembershipRules): string | null {
  const voters = membership.members.filter((member) => member.role === 'participant').length;
  const observers = membership.members.length - voters;
  if (voters === 0 && !rules.isStandaloneEnabled) return 'there is no participant';
  if (voters === 0 && observers > 0) return 'there are observers but no participant';
  if (voters === 1 && observers > 0 && rules.isStandaloneEnabled) {
    return 'there are observers of a single participant while standaloneEnabled is true';
  }
  const several = membership.members.find((member) => member.addresses.length > 1);
  if (several !== undefined && !rules.isMultiAddressEnabled) {
    return `server.${several.serverId} has several addresses while multiAddress.enabled is false`;
  }
  const bytes = textBytes(formatMembership(membership));
  if (bytes > MEMBERSHIP_BYTES_MAX) return `the list takes ${bytes} bytes, and servers send ${MEMBERSHIP_BYTES_MAX}`;
  return null;
}

/** Every election notification carries the text behind some 60 bytes of its own, and its total length is limited. */
const MEMBERSHIP_BYTES_MAX = ELECTION_FRAME_BYTES_MAX - 100;

/** Whether they have the same version, or the same servers, addresses, roles and weights. */
export function isSameMembership(a: Membership, b: Membership): boolean {
  if (a.version === b.version) return true;
  return formatMembership({ ...a, version: ZXID_ZERO }) === formatMembership({ ...b, version: ZXID_ZERO });
}

const ANY_HOST = '0.0.0.0';

function formatMemberValue(member: Member): string {
  const addresses = member.addresses
    .toSorted(byAddress)
    .map((address) => `${formatHost(address.host)}:${address.quorumPort}:${address.electionPort}`);
  const client = member.client === null ? '' : formatHostPort(member.client);
  const secure = member.secureClient === null ? '' : `;${formatHostPort(member.secureClient)}`;
  return `${addresses.join('|')}:${member.role}${client === '' && secure === '' ? '' : `;${client}`}${secure}`;
}

/** Key and value of a line of Java properties; null for a comment or an empty line. */
function parseProperty(line: string): { key: string; value: string } | null {
  if (/^[ \t\f]*([#!]|$)/.test(line)) return null;
  const [, key = '', value = ''] = /^[ \t\f]*([^ \t\f=:]*)[ \t\f]*[=:]?[ \t\f]*(.*)$/s.exec(line) ?? [];
  return { key, value };
}

function parseNumber(text: string): number | null {
  if (!/^\+?\d{1,16}$/.test(text)) return null;
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : null;
}

function parseRole(text: string): ServerRole | null {
  const role = text.trim().toLowerCase();
  return role === 'participant' || role === 'observer' ? role : null;
}

/** null for no address, undefined for an invalid one. */
function parseClient(text: string): HostPort | null | undefined {
  if (text === '') return null;
  const parts = splitHostAndPorts(text);
  if (parts === null || parts.length === 0 || parts.length > 2) return undefined;
  const port = parsePort(parts[parts.length - 1]!);
  const host = parts.length === 2 ? parts[0]! : ANY_HOST;
  return port === null || !isHost(host) ? undefined : { host, port };
}

/** A group may list an observer or a non-member, but Apache's servers fail if it has no weight. */
function makeHierarchy(
  members: readonly Member[],
  groups: ReadonlyMap<number, readonly number[]>,
  weights: ReadonlyMap<number, number>,
): Hierarchy | MembershipFault {
  const voters = new Set<number>();
  for (const member of members) if (member.role === 'participant') voters.add(member.serverId);
  const grouped = new Set<number>();
  for (const [group, servers] of groups) {
    for (const server of servers) {
      if (grouped.has(server)) return { fault: `server ${server} is in several groups` };
      grouped.add(server);
      if (!voters.has(server) && !weights.has(server)) {
        return { fault: `group.${group} has server ${server}, which is no participant and has no weight` };
      }
    }
  }
  const all = new Map<number, number>();
  for (const voter of voters) {
    if (!grouped.has(voter)) return { fault: `server ${voter} is in no group` };
    all.set(voter, 1);
  }
  for (const [server, weight] of weights) all.set(server, weight);
  return { groups, weights: all };
}

function byServerId(a: Member, b: Member): number {
  return a.serverId - b.serverId;
}

function byKey(a: readonly [number, unknown], b: readonly [number, unknown]): number {
  return a[0] - b[0];
}

/** By host in code units, as Apache's servers compare. */
function byAddress(a: MemberAddress, b: MemberAddress): number {
  if (a.host !== b.host) return a.host < b.host ? -1 : 1;
  return a.quorumPort - b.quorumPort || a.electionPort - b.electionPort;
}
