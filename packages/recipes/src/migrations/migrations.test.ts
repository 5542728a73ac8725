import {
  type CallOptions,
  ClosedError,
  NodeExistsError,
  SessionLostError,
  TransactionError,
  text,
} from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { Semaphore } from '../locks/semaphore.ts';
import { aroundCommits, lostCommit } from '../testing/commits.ts';
import { runSolo } from '../testing/fleet.ts';
import type { Migration } from './migration-digest.ts';
import { MigrationMismatchError, Migrations } from './migrations.ts';

const FIRST: Migration = [
  { kind: 'create', path: '/shop', data: 'v1' },
  { kind: 'create', path: '/shop/items' },
];
const SECOND: Migration = [
  { kind: 'set', path: '/shop', data: 'v2' },
  { kind: 'delete', path: '/shop/items' },
];

describe('migrations', () => {
  test('are applied in order and once, and recorded as Curator does', () =>
    runSolo(1, async (fleet) => {
      const client = await fleet.connectAs('app');
      const migrations = new Migrations(client);
      expect(await migrations.apply('shop', [FIRST])).toEqual({ total: 1, applied: 1 });
      expect((await client.get('/shop', { codec: text })).data).toBe('v1');
      expect(await migrations.apply('shop', [FIRST, SECOND])).toEqual({ total: 2, applied: 1 });
      expect((await client.get('/shop', { codec: text })).data).toBe('v2');
      expect(await migrations.apply('shop', [FIRST, SECOND])).toEqual({ total: 2, applied: 0 });
      expect(await migrations.appliedCount('shop')).toBe(2);
      const { children } = await client.children('/migrations/meta/shop');
      expect(children.toSorted()).toEqual(['meta-0000000000', 'meta-0000000001']);
      await client.close();
    }));

  test('are refused when an applied migration has been changed, or is missing', () =>
    runSolo(2, async (fleet) => {
      const client = await fleet.connectAs('app');
      const migrations = new Migrations(client);
      await migrations.apply('shop', [FIRST, SECOND]);
      const changed: Migration = [{ kind: 'create', path: '/shop', data: 'another' }];
      await expect(migrations.apply('shop', [changed, SECOND, []])).rejects.toThrow(MigrationMismatchError);
      await expect(migrations.apply('shop', [FIRST])).rejects.toThrow(/2 have been applied, and there are only 1/);
      expect(await migrations.appliedCount('shop')).toBe(2);
      await client.close();
    }));

  test('are refused under a name that would collide with the notes of another set', () =>
    runSolo(2, async (fleet) => {
      const client = await fleet.connectAs('app');
      const migrations = new Migrations(client);
      for (const id of ['shop/items', '']) {
        await expect(migrations.apply(id, [FIRST])).rejects.toMatchObject({ code: 'BADARGUMENTS' });
        await expect(migrations.appliedCount(id)).rejects.toMatchObject({ code: 'BADARGUMENTS' });
      }
      expect(await migrations.apply('shop', [FIRST])).toEqual({ total: 1, applied: 1 });
      await client.close();
    }));

  test('leave nothing of one that fails, keep those before it, and can continue when it is fixed', () =>
    runSolo(3, async (fleet) => {
      const client = await fleet.connectAs('app');
      const migrations = new Migrations(client);
      const wrong: Migration = [
        { kind: 'create', path: '/a' },
        { kind: 'create', path: '/shop' },
      ];
      const error: unknown = await migrations.apply('shop', [FIRST, wrong]).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(TransactionError);
      expect(error).toMatchObject({ index: 1, cause: expect.any(NodeExistsError) });
      expect(await client.exists('/a')).toBeNull();
      expect(await client.exists('/shop/items')).not.toBeNull();
      expect(await migrations.apply('shop', [FIRST, [{ kind: 'create', path: '/a' }]])).toEqual({
        total: 2,
        applied: 1,
      });
      await client.close();
    }));

  test('are applied once when many processes start at once', () =>
    runSolo(4, async (fleet) => {
      const clients = await Promise.all(['a', 'b', 'c', 'd'].map((host) => fleet.connectAs(host)));
      const count: Migration[] = Array.from({ length: 5 }, () => [
        { kind: 'create', path: '/counted-', sequential: true },
      ]);
      const reports = await Promise.all(clients.map((client) => new Migrations(client).apply('c', count)));
      expect(reports.reduce((sum, { applied }) => sum + applied, 0)).toBe(5);
      const { children } = await clients[0]!.children('/');
      expect(children.filter((name) => name.startsWith('counted-'))).toHaveLength(5);
      await Promise.all(clients.map((client) => client.close()));
    }));

  test('may have been applied when the client is closed in the middle', () =>
    runSolo(5, async (fleet) => {
      const client = await fleet.connectAs('app');
      const set: Migration[] = Array.from({ length: 1000 }, (_, i) => [{ kind: 'create', path: `/m${i}` }]);
      const applying = new Migrations(client).apply('long', set);
      const end = expect(applying).rejects.toMatchObject({ code: 'CLOSED', outcome: 'unknown' });
      while ((await client.exists('/m3')) === null) await client.sync();
      await client.close();
      await end;
    }));

  test("respect the caller's timeout when there is no connection", () =>
    runSolo(6, async (fleet) => {
      const client = await fleet.connectAs('app', { sessionTimeoutMs: 20_000 });
      const set: Migration[] = Array.from({ length: 1000 }, (_, i) => [{ kind: 'create', path: `/m${i}` }]);
      const applying = new Migrations(client).apply('long', set, { timeoutMs: 3000 });
      const end = expect(applying).rejects.toMatchObject({ code: 'TIMEOUT' });
      while ((await client.exists('/m3')) === null) await client.sync();
      const [server] = fleet.ensemble.servers;
      server!.crash();
      await end;
      expect(fleet.world.nowMs).toBeLessThan(10_000);
      server!.start();
      await client.close();
    }));

  test('have certainly not been applied when the client ends while it gets the lock', () =>
    runSolo(6, async (fleet) => {
      const client = await fleet.connectAs('app');
      client.createProtected = (path: string) =>
        Promise.reject(new ClosedError({ operation: 'createProtected', path, outcome: 'unknown' }));
      const applying = new Migrations(client).apply('shop', [FIRST]);
      await expect(applying).rejects.toMatchObject({ code: 'CLOSED', outcome: 'not-applied' });
      await client.close();
    }));

  test('have certainly not been applied when their caller cancels while another client holds the lock', () =>
    runSolo(6, async (fleet) => {
      const [client, other] = await Promise.all([fleet.connectAs('app'), fleet.connectAs('other')]);
      const lease = await new Semaphore(other, '/migrations/locks/shop', { leasesMax: 1 }).acquire();
      const apply = (options: CallOptions): Promise<unknown> => new Migrations(client).apply('shop', [FIRST], options);
      await expect(apply({ timeoutMs: 1000 })).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
      const end = new AbortController();
      const aborted = expect(apply({ signal: end.signal })).rejects.toMatchObject({
        code: 'ABORTED',
        outcome: 'not-applied',
      });
      await fleet.world.sleep(1000);
      end.abort();
      await aborted;
      await lease.release();
      await Promise.all([client.close(), other.close()]);
    }));

  test('report why they were refused also when the timeout passes before the lock is released', () =>
    runSolo(7, async (fleet) => {
      const client = await fleet.connectAs('app', { sessionTimeoutMs: 20_000 });
      const [server] = fleet.ensemble.servers;
      aroundCommits(client, (commit) => commit().finally(() => server!.crash()));
      const refused: Migration = [{ kind: 'set', path: '/missing', data: 'v1' }];
      await expect(new Migrations(client).apply('shop', [refused], { timeoutMs: 3000 })).rejects.toThrow(
        TransactionError,
      );
      server!.start();
      await client.close();
    }));

  test('are not counted by a client without a reply when another client has applied them', () =>
    runSolo(4, async (fleet) => {
      const [client, other] = await Promise.all([fleet.connectAs('app'), fleet.connectAs('other')]);
      const transaction = client.transaction.bind(client);
      const lose = async (): Promise<never> => {
        client.transaction = transaction;
        await other.deleteRecursive('/migrations/locks');
        expect(await new Migrations(other).apply('shop', [FIRST])).toEqual({ total: 1, applied: 1 });
        throw lostCommit();
      };
      client.transaction = () => {
        const made = transaction();
        made.commit = lose;
        return made;
      };
      expect(await new Migrations(client).apply('shop', [FIRST])).toEqual({ total: 1, applied: 0 });
      await Promise.all([client.close(), other.close()]);
    }));

  test('are counted by the client that has applied them also when that happens after its next look', () =>
    runSolo(5, async (fleet) => {
      const client = await fleet.connectAs('app');
      const { transaction: begin, createProtected } = client;
      client.transaction = () => {
        client.transaction = begin;
        const made = begin.call(client);
        // The session, considered lost here, lives on with the lease, and a follower delays the request until after the
        // next look.
        made.check = () => made as never;
        const commit = made.commit.bind(made);
        made.commit = () => {
          client.createProtected = async (...call) => {
            client.createProtected = createProtected;
            await commit();
            return createProtected.apply(client, call);
          };
          return Promise.reject(new SessionLostError({ operation: 'transaction', path: null, outcome: 'unknown' }));
        };
        return made;
      };
      expect(await new Migrations(client).apply('shop', [FIRST])).toEqual({ total: 1, applied: 1 });
      expect(client.createProtected).toBe(createProtected);
      await client.close();
    }));

  test('are refused when servers close the connection because of their size', () =>
    runSolo(6, async (fleet) => {
      const client = await fleet.connectAs('app', { requestBytesMax: 8 * 1024 * 1024 });
      const large: Migration = [{ kind: 'create', path: '/large', data: 'a'.repeat(1_500_000) }];
      const applying = new Migrations(client).apply('shop', [FIRST, large], { timeoutMs: 300_000 });
      await expect(applying).rejects.toMatchObject({ code: 'REQUESTTOOLARGE', path: '/migrations/meta/shop' });
      expect(await new Migrations(client).apply('shop', [FIRST])).toEqual({ total: 1, applied: 0 });
      await client.close();
    }));

  test('are all applied and counted when the reply to each is lost', () =>
    runSolo(6, async (fleet) => {
      const client = await fleet.connectAs('app');
      aroundCommits(client, async (commit) => {
        await commit();
        throw lostCommit();
      });
      const set: Migration[] = Array.from({ length: 8 }, (_, i) => [{ kind: 'create', path: `/m${i}` }]);
      expect(await new Migrations(client).apply('long', set)).toEqual({ total: 8, applied: 8 });
      await client.close();
    }));

  test('are not taken for too large when they are small, however often connections break', () =>
    runSolo(8, async (fleet) => {
      const client = await fleet.connectAs('app');
      let losses = 0;
      aroundCommits(client, (commit) => {
        if (losses++ >= 8) return commit();
        throw lostCommit();
      });
      expect(await new Migrations(client).apply('shop', [FIRST])).toEqual({ total: 1, applied: 1 });
      await client.close();
    }));

  test('are refused when a note is missing that is not the last one', () =>
    runSolo(7, async (fleet) => {
      const client = await fleet.connectAs('app');
      const migrations = new Migrations(client);
      await migrations.apply('shop', [FIRST, SECOND]);
      await client.delete('/migrations/meta/shop/meta-0000000000');
      await expect(migrations.apply('shop', [FIRST, SECOND])).rejects.toThrow(MigrationMismatchError);
      await client.close();
    }));
});
