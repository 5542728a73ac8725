import { NoAuthError, Perm } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { runSolo } from '../testing/fleet.ts';
import { SetPartitioner, type Share } from './set-partitioner.ts';

const ITEMS = ['a', 'b', 'c', 'd', 'e'];

/** Takes shares and releases them when they are recalled, until it is closed. */
async function serve(partitioner: SetPartitioner): Promise<void> {
  for await (const share of partitioner) {
    await new Promise<void>((resolve) => {
      if (share.recall.aborted) resolve();
      else share.recall.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}

describe('a partitioned set', () => {
  test('belongs to a single member, is divided when others join, and is taken over when they leave or die', () =>
    runSolo(1, async (fleet) => {
      const clients = await Promise.all(['w1', 'w2', 'w3'].map((host) => fleet.connectAs(host)));
      const start = (i: number): SetPartitioner =>
        new SetPartitioner(clients[i]!, '/p', ITEMS, { identifier: `w${i + 1}`, quietMs: 500 });
      const itemsOf = (partitioner: SetPartitioner): string => partitioner.share?.items.join('') ?? '-';

      const first = start(0);
      const serving = [serve(first)];
      await fleet.world.until(() => itemsOf(first) === 'abcde', 20_000);
      expect(itemsOf(first)).toBe('abcde');

      const second = start(1);
      serving.push(serve(second));
      await fleet.world.until(() => itemsOf(second) === 'bd', 20_000);
      await fleet.world.until(() => itemsOf(first) === 'ace', 20_000);
      expect([first, second].map(itemsOf)).toEqual(['ace', 'bd']);
      expect(first.share?.locks.get('a')?.token).toBeGreaterThan(0n);

      const third = start(2);
      serving.push(serve(third));
      await fleet.world.until(() => [first, second, third].map(itemsOf).join() === 'ad,be,c', 20_000);
      expect([first, second, third].map(itemsOf)).toEqual(['ad', 'be', 'c']);

      await fleet.kill(clients[0]!);
      await fleet.world.until(() => [second, third].map(itemsOf).join() === 'ace,bd', 30_000);
      expect([second, third].map(itemsOf)).toEqual(['ace', 'bd']);

      await second.close();
      await fleet.world.until(() => itemsOf(third) === 'abcde', 20_000);
      expect(itemsOf(third)).toBe('abcde');
      await third.close();
      await Promise.all(serving);
      const { children } = await clients[1]!.children('/p/party');
      expect(children).toEqual([]);
      await Promise.all(clients.map((client) => client.close()));
    }));

  test('yields no share when it is closed while a share is taken, and leaves nothing behind', () =>
    runSolo(3, async (fleet) => {
      const client = await fleet.connectAs('w');
      const path = (i: number): string => `/p${i}`;
      // These delays cover each step towards a share: requests are answered within two milliseconds.
      for (let i = 0; i < 40; i++) {
        const partitioner = new SetPartitioner(client, path(i), ITEMS, { identifier: 'w', quietMs: 10 });
        const taken: Share[] = [];
        let isClosed = false;
        const serving = (async () => {
          for await (const share of partitioner) {
            expect(isClosed, `a share is yielded after the end, at step ${i}`).toBe(false);
            taken.push(share);
            // As if its result were not awaited.
            await fleet.world.sleep(20);
          }
        })();
        await fleet.world.sleep(i / 2);
        await partitioner.close();
        isClosed = true;
        expect(taken.some((share) => share.items.some((item) => share.locks.get(item)?.isHeld))).toBe(false);
        for (const item of ITEMS) {
          const stat = await client.exists(`${path(i)}/locks/${item}`, { read: 'linearizable' });
          expect(stat?.numChildren ?? 0, `places in the line of ${item} at step ${i}`).toBe(0);
        }
        await serving;
      }
      await client.close();
    }));

  test('reports to a client why it may not take part, and does not let it wait', () =>
    runSolo(4, async (fleet) => {
      const client = await fleet.connectAs('w');
      await client.create('/p');
      await client.create('/p/party', '', { acl: [{ scheme: 'world', id: 'anyone', perms: Perm.read }] });
      const partitioner = new SetPartitioner(client, '/p', ITEMS, { identifier: 'w', quietMs: 10 });
      await expect(serve(partitioner)).rejects.toThrow(NoAuthError);
      await client.close();
    }));

  test('aborts the signal when a share is released, also one without items', () =>
    runSolo(5, async (fleet) => {
      const client = await fleet.connectAs('w');
      const partitioner = new SetPartitioner(client, '/p', [], { identifier: 'w', quietMs: 10 });
      const taken: Share[] = [];
      for await (const share of partitioner) {
        taken.push(share);
        expect(share.signal.aborted).toBe(false);
        break;
      }
      expect(taken.map(({ items, signal }) => [items.length, signal.aborted])).toEqual([[0, true]]);
      await client.close();
    }));

  test('takes part no longer once it is closed, also if the service refuses to delete its locks', () =>
    runSolo(6, async (fleet) => {
      const client = await fleet.connectAs('w');
      const acl = [{ scheme: 'world', id: 'anyone', perms: Perm.read | Perm.create }];
      await client.createParents('/p/locks/a');
      await client.setAcl('/p/locks/a', acl);
      const partitioner = new SetPartitioner(client, '/p', ['a', 'b'], { identifier: 'w', quietMs: 10 });
      const serving = serve(partitioner).catch((error: unknown) => error);
      await fleet.world.until(() => partitioner.share !== null, 20_000);
      // Another caller releases it, too, without waiting.
      void partitioner.share?.release();
      await expect(partitioner.close()).rejects.toThrow(NoAuthError);
      expect((await client.children('/p/party', { read: 'linearizable' })).children).toEqual([]);
      expect((await client.children('/p/locks/b', { read: 'linearizable' })).children).toEqual([]);
      await serving;
      await client.close();
    }));

  test('yields no share once it has ended', () =>
    runSolo(7, async (fleet) => {
      const client = await fleet.connectAs('w');
      for (let turns = 0; turns < 20; turns++) {
        let isClosed = false;
        const closeLater = async (): Promise<void> => {
          for (let i = 0; i < turns; i++) await null;
          isClosed = true;
          await partitioner.close();
        };
        const partition = (): readonly string[] => {
          void closeLater();
          return [];
        };
        const partitioner = new SetPartitioner(client, `/p${turns}`, [], { identifier: 'w', quietMs: 10, partition });
        for await (const share of partitioner) {
          const isGiven = !share.signal.aborted;
          expect(isClosed && isGiven, `a share follows the end, ${turns} turns after the division`).toBe(false);
          await share.release();
          break;
        }
      }
      await client.close();
    }));

  test('takes an item once that its partition function returns twice', () =>
    runSolo(8, async (fleet) => {
      const client = await fleet.connectAs('w');
      const partition = (): readonly string[] => ['a', 'b', 'a'];
      const partitioner = new SetPartitioner(client, '/p', ITEMS, { identifier: 'w', quietMs: 10, partition });
      const serving = serve(partitioner);
      await fleet.world.until(() => partitioner.share !== null, 20_000);
      expect(partitioner.share?.items).toEqual(['a', 'b']);
      await partitioner.close();
      await serving;
      await client.close();
    }));

  test("uses kazoo's znodes", () =>
    runSolo(2, async (fleet) => {
      const client = await fleet.connectAs('w');
      const partitioner = new SetPartitioner(client, '/p', ['x'], { identifier: 'host-1', quietMs: 100 });
      const serving = serve(partitioner);
      await fleet.world.until(() => partitioner.share !== null, 20_000);
      expect((await client.children('/p')).children.toSorted()).toEqual(['locks', 'party']);
      expect((await client.children('/p/party')).children).toEqual([expect.stringMatching(/^[0-9a-f]{32}-host-1$/)]);
      const { children } = await client.children('/p/locks/x');
      expect(children).toEqual([expect.stringMatching(/^[0-9a-f]{32}__lock__\d{10}$/)]);
      await partitioner.close();
      await serving;
      await client.close();
    }));
});
