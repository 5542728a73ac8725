/**
 * Which ensemble this server is a member of, and which of its members it is: put together from the lines `server.N`,
 * `group.N` and `weight.N`, from the keys about ensembles, and from the file `myid`.
 */
import type { EnsembleOptions } from '@meerkat/core';
import {
  findMembershipFault,
  type HostPort,
  type Member,
  type Membership,
  parseMember,
  parseMembership,
  parseZxid,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import { findListDamage, LIST_EXPECTED } from '../membership/list-checksum.ts';
import { describeUnreadable } from '../unreadable-file.ts';
import type { Draft } from './draft.ts';
import { type Property, parseProperties, placeOfProperty } from './properties.ts';

/** Where messages about the configuration go. */
export interface Findings {
  fault(place: Place, found: string, expected: string): void;
  warn(place: Place, what: string): void;
}

/** A line of a file, or with line null the file. */
export interface Place {
  readonly file: string;
  readonly line: number | null;
  readonly key: string | null;
}

export interface EnsembleSource {
  readonly file: string;
  /** The lines of zoo.cfg that count, by key. */
  readonly lines: ReadonlyMap<string, Property>;
  readonly draft: Draft;
  /** Absolute. */
  readonly dataDirectory: string;
  readonly dataLogDirectory: string;
  /** Absolute path of the file that a key names. */
  resolvePath(path: string): string;
  /** The text of a file; throws Node's error when it cannot be read. */
  readFile(path: string): string;
}

/** What the list of members makes of a server. */
export interface Membered {
  /** Null: the list has one member, and this server is on its own. */
  readonly ensemble: { readonly serverId: number; readonly options: EnsembleOptions } | null;
  /** Where the list says that clients connect to this server; null when it says nothing. */
  readonly client: HostPort | null;
  /** The same of clients that speak TLS. */
  readonly secureClient: HostPort | null;
}

/** Reads the members. Null when no member is listed, or after a reported fault. */
export function readEnsemble(source: EnsembleSource, findings: Findings): Membered | null {
  return new EnsembleReader(source, findings).read();
}

/** A line of the list, with its file. */
interface MemberLine extends Property {
  readonly file: string;
}

const MEMBER_KEY = /^(server|group|weight)\.(.*)$/;
/** The id of a server becomes the top byte of session ids. */
const SERVER_ID_MAX = 255;

class EnsembleReader {
  readonly #source: EnsembleSource;
  readonly #findings: Findings;
  #hasFault = false;

  constructor(source: EnsembleSource, findings: Findings) {
    this.#source = source;
    this.#findings = {
      fault: (place, found, expected) => {
        this.#hasFault = true;
        findings.fault(place, found, expected);
      },
      warn: (place, what) => findings.warn(place, what),
    };
  }

  read(): Membered | null {
    const { lines, version } = this.#readLines();
    if (lines.length === 0) {
      this.#checkThatMembersAreListed();
      return null;
    }
    const membership = this.#readMembership(lines, version);
    if (membership === null) return null;
    const { members } = membership;
    const voters = members.filter(({ role }) => role === 'participant').length;
    const [only] = members;
    if (members.length === 1 && voters === 1 && only !== undefined && this.#source.draft.standaloneEnabled) {
      return this.#hasFault ? null : { ensemble: null, client: only.client, secureClient: only.secureClient };
    }
    const { standaloneEnabled, multiAddressEnabled } = this.#source.draft;
    const rules = { isStandaloneEnabled: standaloneEnabled, isMultiAddressEnabled: multiAddressEnabled };
    const fault = findMembershipFault(membership, rules);
    if (fault !== null) {
      this.#findings.fault(placeOf(lines[0]!), fault, 'members that can form an ensemble');
      return null;
    }
    this.#checkAddresses(members, lines);
    this.#warnOfVoters(membership, voters, lines);
    this.#refuseOracle(voters);
    const self = this.#findSelf(members, lines);
    const limits = this.#readLimits();
    if (self !== null) this.#comparePeerType(self);
    if (self === null || limits === null || this.#hasFault) return null;
    const { ensemble, reachabilityCheckEnabled } = this.#source.draft;
    const addressTimeoutMs = reachabilityCheckEnabled ? ensemble.addressTimeoutMs : ensemble.electionConnectTimeoutMs;
    const options = { ...ensemble, ...limits, addressTimeoutMs, membership, membershipRules: rules };
    const { client, secureClient } = self;
    return { ensemble: { serverId: self.serverId, options }, client, secureClient };
  }

  /* ------------------------------------------------------------------------------------- the list of members ---- */

  /** The lines of the list, from zoo.cfg or the file that it names. */
  #readLines(): { readonly lines: readonly MemberLine[]; readonly version: Zxid } {
    const { file, draft } = this.#source;
    const own = [...this.#source.lines.values()]
      .map((property) => ({ ...property, key: withoutPrefix(property.key), file }))
      .filter(({ key }) => MEMBER_KEY.test(key));
    const { dynamicConfigFile } = draft;
    if (dynamicConfigFile === null) return { lines: own, version: ZXID_ZERO };
    for (const line of own) {
      this.#findings.fault(
        placeOf(line),
        line.value,
        `it in ${dynamicConfigFile}: dynamicConfigFile lists the members`,
      );
    }
    return this.#readDynamicFile(dynamicConfigFile);
  }

  #readDynamicFile(path: string): { readonly lines: readonly MemberLine[]; readonly version: Zxid } {
    const nothing = { lines: [], version: ZXID_ZERO };
    let text: string;
    try {
      text = this.#source.readFile(this.#source.resolvePath(path));
    } catch (error) {
      const found = describeReadError(path, error);
      this.#findings.fault(this.#placeOfKey('dynamicConfigFile'), found, LIST_EXPECTED);
      return nothing;
    }
    // Apache's servers put the version into the name: zoo.cfg.dynamic.100000000
    const version = parseZxid(/\.([0-9a-f]{1,16})$/.exec(path)?.[1] ?? '') ?? ZXID_ZERO;
    const damage = findListDamage(text, version);
    if (damage !== null) {
      this.#findings.fault({ file: path, line: 1, key: null }, damage.found, damage.expected);
      return nothing;
    }
    const { properties, faults } = parseProperties(text);
    for (const { line, found, expected } of faults) {
      this.#findings.fault({ file: path, line, key: null }, found, expected);
    }
    const lines: MemberLine[] = properties.map((property) => ({ ...property, file: path }));
    for (const line of lines) {
      if (!MEMBER_KEY.test(line.key)) {
        this.#findings.fault(placeOf(line), line.value, 'only server.N, group.N and weight.N in a file of members');
      }
    }
    if (lines.length === 0) {
      this.#findings.fault({ file: path, line: null, key: null }, 'no member', LIST_EXPECTED);
    }
    return { lines: lines.filter(({ key }) => MEMBER_KEY.test(key)), version };
  }

  #readMembership(lines: readonly MemberLine[], version: Zxid): Membership | null {
    for (const line of lines) {
      const [, kind, number = ''] = MEMBER_KEY.exec(line.key) ?? [];
      const isNumber = /^\d{1,9}$/.test(number);
      if (kind !== 'server') {
        if (!isNumber) this.#findings.fault(placeOf(line), line.key, `${kind}. and a number`);
        continue;
      }
      if (!isNumber || Number(number) > SERVER_ID_MAX) {
        const expected = `server. and a number from 0 to ${SERVER_ID_MAX}, the id of the server`;
        this.#findings.fault(placeOf(line), line.key, expected);
        continue;
      }
      const member = parseMember(Number(number), line.value);
      if ('fault' in member)
        this.#findings.fault(placeOf(line), line.value, `${MEMBER_FORM}: ${reasonOf(member.fault)}`);
    }
    if (this.#hasFault) return null;
    const membership = parseMembership(lines.map(({ key, value }) => `${key}=${value}`).join('\n'));
    if ('fault' in membership) {
      const line = lines.find(({ key }) => !key.startsWith('server.')) ?? lines[0]!;
      this.#findings.fault(placeOf(line), membership.fault, 'groups and weights that fit the list of servers');
      return null;
    }
    return { ...membership, version };
  }

  #checkThatMembersAreListed(): void {
    const { draft } = this.#source;
    if (draft.standaloneEnabled && draft.peerType !== 'observer') return;
    if (draft.dynamicConfigFile !== null) return;
    const key = draft.standaloneEnabled ? 'peerType' : 'standaloneEnabled';
    const expected = 'a list of members as well, with lines such as server.1=host:2888:3888';
    this.#findings.fault(this.#placeOfKey(key), this.#source.lines.get(key)?.value ?? '', expected);
  }

  /** Every address belongs to one purpose of one server. */
  #checkAddresses(members: readonly Member[], lines: readonly MemberLine[]): void {
    const owners = new Map<string, string>();
    for (const { serverId, addresses, client } of members) {
      const claims: (readonly [host: string, port: number, purpose: string])[] = [];
      for (const { host, quorumPort, electionPort } of addresses) {
        claims.push([host, quorumPort, 'quorum port'], [host, electionPort, 'election port']);
        if (client !== null && client.port !== 0) claims.push([host, client.port, 'client port']);
      }
      for (const [host, port, purpose] of claims) {
        const address = `${host.toLowerCase()}:${port}`;
        const owner = owners.get(address);
        if (owner === undefined) {
          owners.set(address, `the ${purpose} of server.${serverId}`);
          continue;
        }
        const expected = `an address of its own: ${address} is ${owner} already, and the ${purpose} of server.${serverId}`;
        const line = lines.find(({ key }) => isKeyOfServer(key, serverId)) ?? lines[0]!;
        this.#findings.fault(placeOf(line), line.value, expected);
      }
    }
  }

  #warnOfVoters({ hierarchy }: Membership, voters: number, lines: readonly MemberLine[]): void {
    if (hierarchy !== null) {
      const hasSay = [...hierarchy.weights.values()].some((weight) => weight > 0);
      const line = lines.find(({ key }) => key.startsWith('weight.')) ?? lines[0]!;
      if (!hasSay)
        this.#findings.fault(placeOf(line), 'weights that are all 0', 'a voter that counts: there would be no quorum');
      return;
    }
    if (voters % 2 !== 0) return;
    const line = lines.filter(({ key }) => key.startsWith('server.')).at(-1) ?? lines[0]!;
    const failures = voters / 2 - 1;
    const tolerated =
      failures === 0
        ? 'none of them may fail, and one server alone would be as safe'
        : `no more of them may fail than of ${voters - 1}, which is ${failures}`;
    this.#findings.warn(
      placeOf(line),
      `makes ${voters} voters, an even number: a quorum is ${voters / 2 + 1}, so ${tolerated}. An odd number is better`,
    );
  }

  /* ---------------------------------------------------------------------------------------------- this server ---- */

  /** The member that this server is, by the file `myid` in its data directory. */
  #findSelf(members: readonly Member[], lines: readonly MemberLine[]): Member | null {
    const { dataDirectory, dataLogDirectory } = this.#source;
    if (this.#source.draft.dataDirectory === null) return null;
    const path = `${dataDirectory}/myid`;
    const place: Place = { file: path, line: null, key: null };
    const ids = members.map(({ serverId }) => serverId);
    let text: string;
    try {
      text = this.#source.readFile(path).trim();
    } catch (error) {
      const expected = `the id of this server, one of ${ids.join(', ')}: for server.${ids[0]}, write "${ids[0]}" into it`;
      this.#findings.fault(place, describeReadError(path, error), expected);
      return null;
    }
    const id = /^\d{1,9}$/.test(text) ? Number(text) : null;
    if (id === null) {
      this.#findings.fault(place, text, `a number and nothing else: the id of this server, one of ${ids.join(', ')}`);
      return null;
    }
    const self = members.find(({ serverId }) => serverId === id);
    if (self === undefined) {
      const list = lines[0]!.file;
      const expected = `an id that ${list} lists: one of ${ids.join(', ')}. Is this the data directory of another server, or is server.${id} missing from the list?`;
      this.#findings.fault(place, text, expected);
      return null;
    }
    if (dataLogDirectory !== dataDirectory) this.#checkLogDirectory(id, `${dataLogDirectory}/myid`);
    return self;
  }

  /** A log directory that says whose it is must not be another server's. */
  #checkLogDirectory(id: number, path: string): void {
    let text: string;
    try {
      text = this.#source.readFile(path).trim();
    } catch {
      return;
    }
    if (text === String(id)) return;
    const expected = `${id}, as in dataDir: dataLogDir belongs to another server`;
    this.#findings.fault({ file: path, line: null, key: null }, text, expected);
  }

  /** Whom the file lets lead alone has acknowledged what the other one, let lead alone later, does not have. */
  #refuseOracle(voters: number): void {
    const { oraclePath } = this.#source.draft;
    if (oraclePath === null || voters !== 2) return;
    const expected =
      'no such line with two participants: a server that leads without the other loses what was acknowledged when that one leads alone. Add a third participant, which may be small, or make one of the two an observer';
    this.#findings.fault(this.#placeOfKey('oraclePath'), oraclePath, expected);
  }

  #comparePeerType({ serverId, role }: Member): void {
    const { peerType } = this.#source.draft;
    if (peerType === null || peerType === role) return;
    this.#findings.warn(
      this.#placeOfKey('peerType'),
      `is ${peerType}, but server.${serverId} is listed as ${role}: the list counts`,
    );
  }

  #readLimits(): { readonly initLimit: number; readonly syncLimit: number } | null {
    const { initLimit, syncLimit } = this.#source.draft;
    this.#requireLimit('initLimit', initLimit, 10);
    this.#requireLimit('syncLimit', syncLimit, 5);
    return initLimit === null || syncLimit === null ? null : { initLimit, syncLimit };
  }

  #requireLimit(key: string, value: number | null, example: number): void {
    const line = this.#source.lines.get(key);
    // An invalid line was reported already.
    if (value === null ? line !== undefined : value > 0) return;
    const expected = `a line such as ${key}=${example}: an ensemble needs it`;
    this.#findings.fault(this.#placeOfKey(key), line === undefined ? 'no such line' : line.value, expected);
  }

  #placeOfKey(key: string): Place {
    return { ...placeOfProperty(this.#source.lines.get(key), this.#source.file), key };
  }
}

const MEMBER_FORM =
  'host:quorumPort:electionPort[|host:quorumPort:electionPort…][:participant|:observer][;[address:]clientPort]';

function placeOf({ file, line, key }: MemberLine): Place {
  return { file, line, key };
}

function isKeyOfServer(key: string, serverId: number): boolean {
  return key.startsWith('server.') && Number(key.slice('server.'.length)) === serverId;
}

function withoutPrefix(key: string): string {
  return key.startsWith('zookeeper.') ? key.slice('zookeeper.'.length) : key;
}

/** What is wrong with a member, without the line itself, which the message shows anyway. */
function reasonOf(fault: string): string {
  return fault.slice(fault.lastIndexOf(': ') + 2);
}

function describeReadError(path: string, error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' ? `no file ${path}` : `${path}: ${describeUnreadable(path, error)}`;
}
