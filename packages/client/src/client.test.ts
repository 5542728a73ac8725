import { TestServer } from '@meerkat/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Client } from './client.ts';
import { connect } from './connect.ts';
import { BadArgumentsError } from './errors.ts';

let server: TestServer;
let client: Client;
beforeAll(async () => {
  server = await TestServer.start({ extendedTypesEnabled: true });
  client = await connect(server.connectString);
  await client.create('/a', 'x');
});
afterAll(async () => {
  await client.close();
  await server.dispose();
});

/** Values that a caller without a compiler may pass. */
const ODD: readonly unknown[] = [undefined, null, 0, Number.NaN, 1.5, true, 'odd', '', [], {}, () => {}, 7n];

describe('invalid arguments', () => {
  const calls: Readonly<Record<string, (odd: never) => Promise<unknown>>> = {
    'the path of get': (odd) => client.get(odd),
    'the path of exists': (odd) => client.exists(odd, { watch: true }),
    'the path of create': (odd) => client.create(odd),
    'the path of a sequential create': (odd) => client.create(odd, '', { sequential: true }),
    'the data of create': (odd) => client.create('/a', odd),
    'the data of set': (odd) => client.set('/none', odd),
    'the mode of create': (odd) => client.create('/a', '', { mode: odd }),
    'the ACL of create': (odd) => client.create('/a', '', { acl: odd }),
    'an entry of the ACL of create': (odd) => client.create('/a', '', { acl: [odd] }),
    'the perms of an ACL': (odd) => client.create('/a', '', { acl: [{ perms: odd, scheme: 'world', id: 'anyone' }] }),
    'the scheme of an ACL': (odd) => client.setAcl('/none', [{ perms: 31, scheme: odd, id: 'anyone' }]),
    'the id of an ACL': (odd) => client.setAcl('/none', [{ perms: 31, scheme: 'digest', id: odd }]),
    'the time to live of create': (odd) => client.create('/a', '', { ttlMs: odd }),
    'the version of set': (odd) => client.set('/none', '', { version: odd }),
    'the version of delete': (odd) => client.delete('/none', { version: odd }),
    'the version of setAcl': (odd) => client.setAcl('/none', [], { version: odd }),
    'the prefix of ephemerals': (odd) => client.ephemerals(odd),
    'the path of sync': (odd) => client.sync(odd),
    'the kind of checkWatches': (odd) => client.checkWatches('/a', odd),
    'the kind of removeWatches': (odd) => client.removeWatches('/a', odd),
    'the members of reconfig': (odd) => client.reconfig({ members: odd }),
    'the version of reconfig': (odd) => client.reconfig({ leaving: [1], fromVersion: odd }),
    'the parts of a transaction': (odd) => client.transaction().create('/a', odd, odd).set('/a', odd).commit(),
    'the path in a transaction': (odd) => client.transaction().check(odd).commit(),
    'the path of a multi-read': (odd) => client.multiRead().get(odd).run(),
    'the path of a watch': (odd) => client.watch(odd).ready,
    'the path of an observation': (odd) => client.observe(odd).ready,
    'the path of ensurePath': (odd) => client.ensurePath(odd),
    'the path of deleteRecursive': (odd) => client.deleteRecursive(typeof odd === 'string' ? ('/none' as never) : odd),
    'the consistency of a read': (odd) => client.get('/a', { read: odd }),
    'the time of a call': (odd) => client.get('/a', { timeoutMs: odd }),
  };

  test.each(Object.entries(calls))(
    '%s: never thrown, never sent as something else, and the client continues',
    async (_, call) => {
      const { state } = client;
      for (const odd of ODD) {
        let made: Promise<unknown>;
        try {
          made = call(odd as never);
        } catch (error) {
          throw new Error(`${String(odd)} is thrown, not rejected`, { cause: error });
        }
        const error = await made.then(
          () => null,
          (reason: unknown) => reason,
        );
        if (error !== null) expect(error).toBeInstanceOf(Error);
        // The stream of requests is intact: this one is understood.
        expect((await client.get('/a')).stat.version).toBe(0);
      }
      expect(client.state).toBe(state);
    },
  );

  test('a timeout that is not a number is refused, not ignored', async () => {
    const call = { timeoutMs: Number.NaN };
    const { state } = client;
    const calls = [
      client.get('/a', call),
      client.get('/a', { ...call, read: 'linearizable' }),
      client.set('/a', '', call),
      client.transaction().set('/a', '').commit(call),
      client.ensurePath('/a', call),
      client.whenConnected(call),
    ];
    for (const made of calls)
      await expect(made).rejects.toThrow(new RangeError('timeoutMs is a number of milliseconds, not NaN'));
    expect([client.state, (await client.get('/a')).stat.version]).toEqual([state, 0]);
  });

  test.each([
    ['no list', 'rw'],
    ['an empty entry', [null]],
    ['permissions in letters', [{ perms: 'rw', scheme: 'world', id: 'anyone' }]],
    ['no scheme', [{ perms: 31, id: 'anyone' }]],
    ['no id', [{ perms: 31, scheme: 'world' }]],
  ])('an ACL with %s is refused before it is sent', async (_, acl) => {
    await expect(client.create('/b', '', { acl: acl as never })).rejects.toBeInstanceOf(BadArgumentsError);
    await expect(client.setAcl('/a', acl as never)).rejects.toBeInstanceOf(BadArgumentsError);
    const transaction = client.transaction().create('/b', '', { acl: acl as never });
    await expect(transaction.commit()).rejects.toBeInstanceOf(BadArgumentsError);
  });

  test('of addAuth are refused without ending the client', async () => {
    for (const odd of ODD) {
      if (typeof odd === 'string') continue;
      await expect(client.addAuth(odd as never, 'a:b')).rejects.toBeInstanceOf(BadArgumentsError);
      if (odd === null) continue;
      await expect(client.addAuth('digest', odd as never)).rejects.toBeInstanceOf(BadArgumentsError);
    }
    expect(client.state).toBe('connected');
    expect((await client.get('/a')).stat.version).toBe(0);
  });
});
