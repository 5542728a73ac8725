import { type Acl, acl, type Client, NoAuthError, NoNodeError, Perm } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import type { ClusterSession } from './cluster-session.ts';
import type { PastState } from './options.ts';
import { readHistory } from './past.ts';

const OPEN = [acl.world(Perm.all)];
const ANN = [acl.digest('ann', 'pw')];
const BOB = [acl.digest('bob', 'pw')];

/** A session at a service where `/z` has that ACL, or does not exist (null). */
function sessionAt(aclNow: readonly Acl[] | null, mayRead: boolean, states: readonly PastState[]): ClusterSession {
  const refuseUnless = async <T>(is: boolean, answer: T): Promise<T> => {
    if (aclNow === null) throw new NoNodeError({ operation: 'get', path: '/z' });
    if (!is) throw new NoAuthError({ operation: 'get', path: '/z' });
    return answer;
  };
  const client = {
    // As in servers: a session with ADMIN permission gets the ACL, too.
    getAcl: () => refuseUnless(mayRead || aclNow === BOB, { acl: aclNow }),
    get: () => refuseUnless(mayRead, { data: null }),
  } as unknown as Client;
  const cluster = {
    name: 'service',
    connection: {},
    servers: [],
    hasOwnLogin: false,
    history: async () => ({ states, isCut: false }),
  };
  return { cluster, client, call: { timeoutMs: 1000 } } as unknown as ClusterSession;
}

function stateWith(aclThen: readonly Acl[]): PastState {
  const state = { data: Buffer.from('hidden'), acl: aclThen };
  return { zxid: '0x1', atMs: 1, session: '0x5', client: null, change: 'created', version: 0, state };
}

async function shown(aclNow: readonly Acl[] | null, mayRead: boolean, aclThen: readonly Acl[]): Promise<string | null> {
  const { entries } = await readHistory(sessionAt(aclNow, mayRead, [stateWith(aclThen)]), '/z');
  expect(entries[0]?.isWithheld).toBe(entries[0]?.data === null);
  return entries[0]?.data === null ? null : 'hidden';
}

describe('a value of the past', () => {
  test('is shown when anyone could read it then and the session may read it now', async () => {
    expect(await shown(OPEN, true, OPEN)).toBe('hidden');
    expect(await shown(ANN, true, OPEN)).toBe('hidden');
  });

  test('is shown when its ACL is unchanged, and the session may read it now', async () => {
    expect(await shown(ANN, true, ANN)).toBe('hidden');
  });

  test('is withheld when its ACL was different, and not open', async () => {
    expect(await shown(OPEN, true, ANN)).toBe(null);
    expect(await shown(BOB, true, ANN)).toBe(null);
  });

  test('depends only on the ACL of that time for a deleted znode', async () => {
    expect(await shown(null, false, OPEN)).toBe('hidden');
    expect(await shown(null, false, ANN)).toBe(null);
  });

  test.each([
    ['nothing', ANN],
    ['its ACL alone', BOB],
  ])('is not told to who may now read %s, although it was open then: not even who wrote it', async (_what, aclNow) => {
    for (const aclThen of [OPEN, aclNow]) {
      await expect(readHistory(sessionAt(aclNow, false, [stateWith(aclThen)]), '/z')).rejects.toMatchObject({
        status: 403,
        code: 'NOAUTH',
      });
    }
  });
});
