import { type CallOptions, type Client, type Data, joinPath, type Stat } from '@meerkat/client';
import { checkedName } from '../kernel/child-name.ts';
import { checkLayout, type Layout, makeUuidHex } from '../kernel/layout.ts';
import type { ZnodeOptions } from '../kernel/options.ts';
import type { Presence } from './certainty.ts';
import { PersistentEphemeral } from './persistent-ephemeral.ts';
import { Roster, type RosterEntries, type RosterEntry } from './roster.ts';

/** How members are stored in the tree. The two of kazoo are those of its Party and its ShallowParty. */
export type GroupLayout = Layout | 'kazoo-shallow';

export interface GroupOptions extends ZnodeOptions {
  /**
   * The layout of the member znodes, for groups shared with other libraries:
   *
   *     curator         <path>/<id>                            data
   *     kazoo           <path>/<32 hex digits>__party__        the id, and no data
   *     kazoo-shallow   <path>/<32 hex digits>-<id>            empty
   *
   * Default 'curator'.
   */
  readonly layout?: GroupLayout | undefined;
}

export interface JoinOptions {
  /** The data of the member. Only in Curator's layout. Default: empty. */
  readonly data?: Data | undefined;
  /**
   * The identity of the member across restarts of its process, by which its own stale znode is replaced at once. Must
   * be unique in the group. Default: the id in Curator's layout; none in those of kazoo, where several members may have
   * one id, so that a stale znode stays until its session times out.
   */
  readonly owner?: string | undefined;
}

/** A client in the group. */
export interface Member {
  readonly id: string;
  /** Empty in the layouts of kazoo. */
  readonly data: Uint8Array;
  /** The name of its znode. */
  readonly name: string;
  /** null in the layout 'kazoo-shallow', whose znodes are not read. */
  readonly stat: Stat | null;
}

/** The members at one moment, and the differences from the moment before. */
export interface GroupView {
  /** By the names of their znodes, oldest first where that is known. */
  readonly members: readonly Member[];
  readonly joined: readonly Member[];
  readonly left: readonly Member[];
  /** Members whose data have changed. */
  readonly changed: readonly Member[];
}

/**
 * Group membership: processes join a group, and each is seen by the others as long as its session lives.
 *
 * @example
 * const group = new Group(client, '/groups/workers');
 * await using membership = group.join('worker-1', { data: '10.0.0.1:8080' });
 * for await (const { members, joined, left } of group.observe()) console.log(members.length, joined, left);
 */
export class Group {
  readonly path: string;
  readonly #client: Client;
  readonly #options: GroupOptions;
  readonly #form: MemberForm;

  constructor(client: Client, path: string, options: GroupOptions = {}) {
    this.path = path;
    this.#client = client;
    this.#options = options;
    const { layout = 'curator' } = options;
    checkLayout(layout, GROUP_LAYOUTS);
    this.#form = FORMS[layout];
  }

  /**
   * Joins, and stays a member across lost sessions until the membership is closed. `whenJoined` resolves when the
   * others can see it.
   *
   * @throws RangeError for an id that cannot be, or be part of, a znode name
   */
  join(id: string, options: JoinOptions = {}): Membership {
    const form = this.#form;
    const owner = options.owner ?? (form.hasUniqueIds ? id : undefined);
    const { random } = this.#client.surroundings;
    const name = form.makeName(id, owner === undefined ? makeUuidHex(random) : hashOf(JSON.stringify([owner, id])));
    checkedName(name, 'the id of a member');
    const data = form.makeData(id, options.data ?? '');
    const znode = new PersistentEphemeral(this.#client, joinPath(this.path, name), {
      data,
      owner,
      acl: this.#options.acl,
    });
    return new Membership(id, znode, form.hasOwnData);
  }

  /** The members, as the connected server knows them now. */
  async members(options: CallOptions = {}): Promise<readonly Member[]> {
    const observation = this.observe();
    try {
      return (await observation.ready(options)).members;
    } finally {
      await observation.close();
    }
  }

  /** The current members, and then each change. */
  observe(options: { readonly signal?: AbortSignal | undefined } = {}): GroupObservation {
    return new GroupObservation(this.#client, this.path, this.#form, options.signal);
  }
}

/** The membership of one process in a group. */
export class Membership implements AsyncDisposable {
  readonly id: string;
  readonly #znode: PersistentEphemeral;
  readonly #hasOwnData: boolean;

  /** Created by `Group.join`. */
  constructor(id: string, znode: PersistentEphemeral, hasOwnData: boolean) {
    this.id = id;
    this.#znode = znode;
    this.#hasOwnData = hasOwnData;
  }

  get path(): string {
    return this.#znode.path;
  }

  /** Whether the others see it, as far as can be known. */
  get isMember(): boolean {
    return this.#znode.isPresent;
  }

  /** The current state of the znode, and each change. */
  get presence(): AsyncIterable<Presence> {
    return this.#znode;
  }

  /**
   * Resolves when the others can see it.
   *
   * @throws what has ended it, such as a NoAuthError; TimeoutError, AbortedError: it keeps trying
   */
  async whenJoined(options: CallOptions = {}): Promise<void> {
    await this.#znode.whenPresent(options);
  }

  /** Changes the data of the member. @throws TypeError in the layouts of kazoo, whose members have no data */
  async set(data: Data, options: CallOptions = {}): Promise<void> {
    if (!this.#hasOwnData) {
      throw new TypeError(
        `${this.path}: members in a layout of kazoo have no data of their own; use the layout 'curator'`,
      );
    }
    await this.#znode.set(data, options);
  }

  /**
   * Leaves. Resolves when the znode is gone; without a connection at once, and it is deleted with the next one, or with
   * the session.
   */
  close(): Promise<void> {
    return this.#znode.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** A group's members, kept up to date until a loop over it ends or it is closed. */
export class GroupObservation implements AsyncIterable<GroupView>, AsyncDisposable {
  readonly #roster: Roster;
  readonly #form: MemberForm;

  /** Created by `Group.observe`. */
  constructor(client: Client, path: string, form: MemberForm, signal: AbortSignal | undefined) {
    this.#form = form;
    this.#roster = new Roster(client, path, {
      accepts: (name) => form.isMember(name),
      withData: form.hasData,
      signal,
    });
  }

  /** The members, as last known; null before the first time. */
  get current(): readonly Member[] | null {
    const entries = this.#roster.entries.current;
    return entries === null ? null : this.#membersOf(entries);
  }

  /** Resolves with the first view. */
  async ready(options: CallOptions = {}): Promise<GroupView> {
    const members = this.#membersOf(await this.#roster.ready(options));
    return { members, joined: members, left: [], changed: [] };
  }

  /**
   * The current view, with all members as joined, then one for each change. A slow loop gets changes merged: a member
   * that joined and left meanwhile is not reported.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<GroupView, undefined> {
    let before: ReadonlyMap<string, Member> = new Map();
    for await (const entries of this.#roster.entries) {
      const members = this.#membersOf(entries);
      const after = new Map(members.map((member) => [member.name, member]));
      const view = makeView(before, after, members);
      before = after;
      yield view;
    }
  }

  close(): Promise<void> {
    this.#roster.close();
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #membersOf(entries: RosterEntries): readonly Member[] {
    const members = [...entries.values()].map((entry) => this.#form.read(entry));
    return members.sort((a, b) => compareAges(a, b) || (a.name < b.name ? -1 : 1));
  }
}

function compareAges(a: Member, b: Member): number {
  const [ageA, ageB] = [a.stat?.czxid ?? 0n, b.stat?.czxid ?? 0n];
  return ageA < ageB ? -1 : ageA > ageB ? 1 : 0;
}

function makeView(
  before: ReadonlyMap<string, Member>,
  after: ReadonlyMap<string, Member>,
  members: readonly Member[],
): GroupView {
  // A znode that was recreated is another membership of the same id.
  const isSame = (a: Member | undefined, b: Member): boolean => a !== undefined && a.stat?.czxid === b.stat?.czxid;
  return {
    members,
    joined: members.filter((member) => !isSame(before.get(member.name), member)),
    left: [...before.values()].filter((member) => !isSame(after.get(member.name), member)),
    changed: members.filter((member) => {
      const known = before.get(member.name);
      return isSame(known, member) && known?.stat?.mzxid !== member.stat?.mzxid;
    }),
  };
}

/**
 * 32 hex digits that are the same for the same text, so that a member in a layout of kazoo finds its znode again after
 * a restart (FNV-1a with 128 bits).
 */
function hashOf(text: string): string {
  let hash = 0x6c62272e07bb014262b821756295c58dn;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(128, (hash ^ BigInt(byte)) * 0x1000000000000000000013bn);
  }
  return hash.toString(16).padStart(32, '0');
}

/** How a layout writes and reads a member. */
interface MemberForm {
  /** Whether the znodes of members are read. */
  readonly hasData: boolean;
  /** Whether their data is set by the member, rather than its id. */
  readonly hasOwnData: boolean;
  /** Whether an id belongs to one member only. */
  readonly hasUniqueIds: boolean;
  /** @param hex 32 unique hexadecimal digits */
  makeName(id: string, hex: string): string;
  makeData(id: string, data: Data): Data;
  isMember(name: string): boolean;
  read(entry: RosterEntry): Member;
}

const PARTY = '__party__';
const NO_DATA = new Uint8Array();

const GROUP_LAYOUTS: readonly GroupLayout[] = ['curator', 'kazoo', 'kazoo-shallow'];

const FORMS: Readonly<Record<GroupLayout, MemberForm>> = {
  curator: {
    hasData: true,
    hasOwnData: true,
    hasUniqueIds: true,
    makeName: (id) => id,
    makeData: (_, data) => data,
    isMember: () => true,
    read: ({ name, data, stat }) => ({ id: name, data, name, stat }),
  },
  kazoo: {
    hasData: true,
    hasOwnData: false,
    hasUniqueIds: false,
    makeName: (_, hex) => `${hex}${PARTY}`,
    makeData: (id) => id,
    isMember: (name) => name.includes(PARTY),
    read: ({ name, data, stat }) => ({ id: new TextDecoder().decode(data), data: NO_DATA, name, stat }),
  },
  'kazoo-shallow': {
    hasData: false,
    hasOwnData: false,
    hasUniqueIds: false,
    makeName: (id, hex) => `${hex}-${id}`,
    makeData: () => '',
    // As ShallowParty parses it: everything after the first hyphen, or the whole name without one.
    isMember: () => true,
    read: ({ name, stat }) => ({ id: name.slice(name.indexOf('-') + 1), data: NO_DATA, name, stat }),
  },
};
