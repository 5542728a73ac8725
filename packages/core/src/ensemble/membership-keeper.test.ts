import { type Membership, OpCode, parseMembership, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { MembershipStore, TraceEvent } from '../base/ports.ts';
import { Database } from '../tree/database.ts';
import { SILENT_EVENTS } from '../tree/tree-events.ts';
import { MembershipKeeper, type MembershipKeeperParts } from './membership-keeper.ts';

const QUIET = { emit() {} };

/** Successive memberships, each the result of one change. */
const [ZEROTH, FIRST, SECOND] = [membershipOf([1, 2, 3], 0), membershipOf([1, 4], 1), membershipOf([1, 4, 5], 2)];

function textOf(ids: readonly number[], counter: number): string {
  return [...ids.map((id) => `server.${id}=h${id}:1:2;3`), `version=10000000${counter}`].join('\n');
}

function membershipOf(ids: readonly number[], counter: number): Membership & { readonly text: Uint8Array } {
  const text = textOf(ids, counter);
  return { ...(parseMembership(text) as Membership), text: new TextEncoder().encode(text) };
}

/** As configured before any server of the ensemble has led. */
const UNVERSIONED: Membership = { ...ZEROTH, version: ZXID_ZERO };

function keeperOf(membership: Membership, parts: Partial<MembershipKeeperParts> = {}): MembershipKeeper {
  const defaults = { serverId: 1, isReconfigEnabled: true, store: null, trace: QUIET, wallMs: () => 0 };
  return new MembershipKeeper({ ...defaults, membership, ...parts });
}

/** A keeper, and the messages that it traces. */
function tracedKeeper(
  membership: Membership,
  parts: Partial<MembershipKeeperParts> = {},
): { keeper: MembershipKeeper; messages: string[] } {
  const messages: string[] = [];
  const emit = (event: TraceEvent): void => {
    if (event.kind === 'notice' || event.kind === 'warning') messages.push(event.message);
  };
  return { keeper: keeperOf(membership, { ...parts, trace: { emit } }), messages };
}

/** Records versions, the committed one and the proposed one, and completes each write when the test says so. */
class RecordingStore implements MembershipStore {
  readonly written: string[] = [];
  readonly #dones: ((error: Error | null) => void)[] = [];

  keep(committed: Membership, proposed: Membership | null, done: (error: Error | null) => void): void {
    const versions = [committed, proposed].flatMap((one) => (one === null ? [] : one.version.toString(16)));
    this.written.push(versions.join(' '));
    this.#dones.push(done);
  }

  complete(error: Error | null = null): void {
    this.#dones.shift()?.(error);
  }
}

describe('a change that NEWLEADER of an Apache leader names before it is committed', () => {
  test.each([
    { committed: ZEROTH, inForce: ZEROTH },
    { committed: FIRST, inForce: FIRST },
  ])('is in force at UPTODATE if it is committed; last commit $committed.version', ({ committed, inForce }) => {
    const keeper = keeperOf(ZEROTH);
    keeper.onAnnounced(textOf([1, 4], 1), null);
    keeper.onUpToDate(committed.version);
    expect(keeper.version).toBe(inForce.version);
    expect(keeper.members.proposed?.version ?? FIRST.version).toBe(FIRST.version);
  });
});

describe('two changes of the membership', () => {
  test('of which the first is committed after the second is proposed take effect one after the other', () => {
    const keeper = keeperOf(ZEROTH);
    for (const { text } of [FIRST, SECOND]) keeper.onProposed(text);
    expect([keeper.version, keeper.members.proposed?.version]).toEqual([ZEROTH.version, SECOND.version]);
    keeper.onCommitted(FIRST.version);
    expect([keeper.version, keeper.members.proposed?.version]).toEqual([FIRST.version, SECOND.version]);
    keeper.onCommitted(SECOND.version);
    expect([keeper.version, keeper.members.proposed]).toEqual([SECOND.version, null]);
  });

  test('that the log has and the files do not: the first is committed, or there would not be the second', () => {
    const database = new Database({ extendedTypesEnabled: true, digestEnabled: true }, QUIET);
    for (const { text, version } of [FIRST, SECOND]) apply(database, text, version);
    const keeper = keeperOf(ZEROTH);
    keeper.onRecovered(database);
    expect([keeper.version, keeper.members.proposed?.version]).toEqual([FIRST.version, SECOND.version]);
    // Servers that are only in the oldest membership no longer count.
    expect([keeper.members.electorate.isQuorum([1, 2, 3]), keeper.members.electorate.isQuorum([1, 4])]).toEqual([
      false,
      true,
    ]);
  });
});

describe('the files', () => {
  test.each<[string, (keeper: MembershipKeeper) => void, string]>([
    ['is committed', (keeper) => keeper.onCommitted(FIRST.version), '100000001'],
    ['is followed by another proposal', (keeper) => keeper.onProposed(SECOND.text), '100000000 100000002'],
  ])('are written again when what is being written %s meanwhile', (_what, act, last) => {
    const store = new RecordingStore();
    const keeper = keeperOf(ZEROTH, { store });
    keeper.onProposed(FIRST.text);
    act(keeper);
    expect(store.written).toEqual(['100000000 100000001']);
    store.complete();
    expect(store.written.slice(1)).toEqual([last]);
    store.complete();
    expect(store.written.length).toBe(2);
  });

  test('are written for the first versioned membership, from its proposal on', () => {
    const store = new RecordingStore();
    const keeper = keeperOf(UNVERSIONED, { store });
    keeper.onAnnounced(textOf([1, 2, 3], 0), null);
    expect(store.written).toEqual(['0 100000000']);
    store.complete();
    keeper.onUpToDate(ZXID_ZERO);
    expect(store.written.slice(1)).toEqual(['100000000']);
  });

  test('that cannot be written are reported, and written again with the next change', () => {
    const store = new RecordingStore();
    const { keeper, messages } = tracedKeeper(ZEROTH, { store });
    keeper.onProposed(FIRST.text);
    expect(messages).toEqual([]);
    store.complete(new Error('no space'));
    expect(messages).toEqual([expect.stringMatching(/^cannot keep the membership of version 100000000: no space\./)]);
    keeper.onCommitted(FIRST.version);
    expect(store.written.slice(1)).toEqual(['100000001']);
  });

  test('are written although the write before them failed', () => {
    const store = new RecordingStore();
    const keeper = keeperOf(ZEROTH, { store });
    keeper.onProposed(FIRST.text);
    keeper.onCommitted(FIRST.version);
    store.complete(new Error('no space'));
    expect(store.written).toEqual(['100000000 100000001', '100000001']);
    store.complete();
    expect(store.written).toHaveLength(2);
  });

  test('of a server that is about to join stay as they are until it is a member; a removed server writes its last ones', () => {
    const store = new RecordingStore();
    const keeper = keeperOf(UNVERSIONED, { store, serverId: 5 });
    keeper.commit(ZEROTH);
    keeper.commit(FIRST);
    expect(store.written).toEqual([]);
    for (const membership of [SECOND, membershipOf([1, 4], 3), membershipOf([1, 2, 4], 4)]) {
      keeper.commit(membership);
      store.complete();
    }
    expect(store.written).toEqual(['100000002', '100000003']);
  });
});

describe('a membership that cannot be used', () => {
  const UNUSABLE = ['', 'nonsense', 'server.1=h1:1:2:observer;3\nversion=100000001'];

  test.each([null, ...UNUSABLE])('in a proposed change is ignored with a warning: %j', (text) => {
    const { keeper, messages } = tracedKeeper(ZEROTH);
    keeper.onProposed(FIRST.text);
    keeper.onProposed(text === null ? null : new TextEncoder().encode(text));
    expect(messages).toEqual([
      expect.stringMatching(/^a change of the membership names a membership that cannot be used: ./),
    ]);
    expect(keeper.members.proposed?.version).toBe(FIRST.version);
    keeper.onCommitted(SECOND.version);
    expect(keeper.version).toBe(ZEROTH.version);
  });

  test.each(UNUSABLE)('in NEWLEADER is ignored with a warning: %j', (text) => {
    const { keeper, messages } = tracedKeeper(ZEROTH);
    keeper.onAnnounced(text, null);
    keeper.onUpToDate(SECOND.version);
    expect(messages).toEqual([expect.stringMatching(/^NEWLEADER names a membership that cannot be used: ./)]);
    expect([keeper.version, keeper.members.proposed]).toEqual([ZEROTH.version, null]);
  });

  test.each(UNUSABLE)('in the recovered tree is ignored: %j', (text) => {
    const database = new Database({ extendedTypesEnabled: true, digestEnabled: true }, QUIET);
    apply(database, new TextEncoder().encode(text), FIRST.version);
    const keeper = keeperOf(ZEROTH);
    keeper.onRecovered(database);
    expect([keeper.version, keeper.members.proposed]).toEqual([ZEROTH.version, null]);
  });
});

describe('a membership that comes into force', () => {
  test('is reported with its servers and their roles, unless only its version is new', () => {
    const { keeper, messages } = tracedKeeper(UNVERSIONED);
    keeper.commit(ZEROTH);
    expect(messages).toEqual([]);
    keeper.commit(FIRST);
    expect(messages).toEqual(['membership 100000001 is in force: servers 1 (participant), 4 (participant)']);
    keeper.commit({ ...FIRST, version: SECOND.version });
    expect(messages).toHaveLength(1);
  });

  test.each([
    [1, ZEROTH, 'no longer'],
    [1, UNVERSIONED, 'not yet'],
    [5, ZEROTH, 'not yet'],
  ])('without this server is reported as a warning; server %i', (serverId, before, since) => {
    const { keeper, messages } = tracedKeeper(before, { serverId });
    keeper.commit(membershipOf([2, 3, 4], 1));
    expect(messages.slice(1)).toEqual([
      expect.stringContaining(
        `this server, ${serverId}, is ${since} a member of the ensemble, by membership 100000001`,
      ),
    ]);
  });

  test('is that of the first leader, which gives the configured one a version', () => {
    const keeper = keeperOf(UNVERSIONED);
    let changes = 0;
    keeper.onChanged = () => changes++;
    keeper.onEpochChosen(5);
    expect([keeper.version, keeper.members.proposed?.version, changes]).toEqual([0, 0x500000000, 1]);
    keeper.onEstablished();
    expect([keeper.version, keeper.members.proposed, changes]).toEqual([0x500000000, null, 2]);
    // A later leader keeps the version.
    keeper.onEpochChosen(6);
    keeper.onEstablished();
    expect([keeper.version, changes]).toEqual([0x500000000, 2]);
  });
});

test('a membership named by NEWLEADER replaces a proposed one, except for a later change that is still pending', () => {
  const announce = (pending: Zxid | null): Zxid | undefined => {
    const keeper = keeperOf(ZEROTH);
    keeper.onProposed(SECOND.text);
    keeper.onAnnounced(textOf([1, 4], 1), pending);
    return keeper.members.proposed?.version;
  };
  expect(announce(SECOND.version)).toBe(SECOND.version);
  expect(announce(null)).toBe(FIRST.version);
  expect(announce(FIRST.version)).toBe(FIRST.version);
  // The pending change is not the one that is known here.
  expect(announce(membershipOf([1], 3).version)).toBe(FIRST.version);
});

test('a membership is written and reported when it is proposed, not when it is proposed again', () => {
  const store = new RecordingStore();
  const traced: TraceEvent[] = [];
  const keeper = keeperOf(ZEROTH, { store, trace: { emit: (event) => void traced.push(event) } });
  let changes = 0;
  keeper.onChanged = () => changes++;
  for (let i = 0; i < 2; i++) {
    keeper.onProposed(FIRST.text);
    store.complete();
  }
  expect([store.written, changes]).toEqual([['100000000 100000001'], 1]);
  const versions = { committed: { version: ZEROTH.version }, proposed: { version: FIRST.version } };
  expect(traced).toMatchObject([{ kind: 'membership-changed', ...versions }]);
});

test('/zookeeper/config shows the committed membership, and is written only when it shows another one', () => {
  const database = new Database({ extendedTypesEnabled: true, digestEnabled: true }, QUIET);
  let wallMs = 1000;
  const keeper = keeperOf(ZEROTH, { wallMs: () => wallMs++ });
  const shown = (): unknown => {
    keeper.show(database);
    const { tree } = database;
    const z = tree.znodes.find('/zookeeper/config');
    return [new TextDecoder().decode(tree.dataOf(z) ?? undefined), tree.mzxidOf(z), wallMs];
  };
  keeper.onProposed(FIRST.text);
  const first = [keeper.committedText, ZEROTH.version, 1001];
  expect([shown(), shown()]).toEqual([first, first]);
  keeper.onCommitted(FIRST.version);
  const second = [keeper.committedText, FIRST.version, 1002];
  expect([shown(), shown()]).toEqual([second, second]);
  expect(keeper.committedText).toContain('server.4=h4:1:2:participant;');
});

test('without reconfigEnabled the configured membership stays in force', () => {
  const keeper = keeperOf(ZEROTH, { isReconfigEnabled: false });
  const database = new Database({ extendedTypesEnabled: true, digestEnabled: true }, QUIET);
  apply(database, FIRST.text, FIRST.version);
  keeper.onRecovered(database);
  keeper.onProposed(FIRST.text);
  keeper.onCommitted(FIRST.version);
  keeper.onAnnounced(textOf([1, 4], 1), null);
  keeper.onUpToDate(FIRST.version);
  keeper.onEpochChosen(2);
  keeper.onEstablished();
  keeper.commit(FIRST);
  expect([keeper.version, keeper.members.proposed]).toEqual([ZEROTH.version, null]);
});

function apply(database: Database, data: Uint8Array, zxid: Zxid): void {
  const header = { sessionId: 1n, cxid: 1, zxid, time: 1, type: OpCode.reconfig };
  const txn = { type: OpCode.reconfig, path: '/zookeeper/config', data, version: -1 } as const;
  database.apply(header, txn, SILENT_EVENTS);
}
