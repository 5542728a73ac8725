import { type Membership, OpCode, parseMembership, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { MembershipStore } from '../base/ports.ts';
import { Database } from '../tree/database.ts';
import { SILENT_EVENTS } from '../tree/tree-events.ts';
import { MembershipKeeper } from './membership-keeper.ts';

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

function keeperOf(membership: Membership, store: MembershipStore | null = null): MembershipKeeper {
  const parts = { serverId: 1, membership, isReconfigEnabled: true, store, trace: QUIET, wallMs: () => 0 };
  return new MembershipKeeper(parts);
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
    const written: string[] = [];
    const dones: (() => void)[] = [];
    const keeper = keeperOf(ZEROTH, {
      keep(committed, proposed, done) {
        written.push([committed, proposed].flatMap((one) => (one === null ? [] : one.version.toString(16))).join(' '));
        dones.push(() => done(null));
      },
    });
    keeper.onProposed(FIRST.text);
    act(keeper);
    expect(written).toEqual(['100000000 100000001']);
    dones.shift()?.();
    expect(written.slice(1)).toEqual([last]);
    dones.shift()?.();
    expect(written.length).toBe(2);
  });
});

function apply(database: Database, data: Uint8Array, zxid: Zxid): void {
  const header = { sessionId: 1n, cxid: 1, zxid, time: 1, type: OpCode.reconfig };
  const txn = { type: OpCode.reconfig, path: '/zookeeper/config', data, version: -1 } as const;
  database.apply(header, txn, SILENT_EVENTS);
}
