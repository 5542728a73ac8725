import { text } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { doubtClient } from '../testing/doubted-client.ts';
import { inWorld, names } from '../testing/in-world.ts';
import { Semaphore } from './semaphore.ts';

describe.each(['curator', 'kazoo'] as const)('a semaphore with the layout of %s', (layout) => {
  const leases = layout === 'curator' ? '/limit/leases' : '/limit';
  const locks = layout === 'curator' ? '/limit/locks' : '/limit-__lock__';

  test('grants at most leasesMax leases, in the order of the requests', () =>
    inWorld(5, async (stations, { sleep }) => {
      let active = 0;
      let most = 0;
      const order: string[] = [];
      await Promise.all(
        stations.map(async ({ client, host }, i) => {
          await sleep(20 * i);
          await using lease = await new Semaphore(client, '/limit', { layout, leasesMax: 2 }).acquire();
          order.push(host);
          most = Math.max(most, ++active);
          expect(lease.isHeld).toBe(true);
          await sleep(100);
          active--;
        }),
      );
      expect(most).toBe(2);
      expect(order).toEqual(['host1', 'host2', 'host3', 'host4', 'host5']);
      await sleep(100);
      expect(await names(stations[0]!, leases)).toEqual([]);
      expect(await names(stations[0]!, locks)).toEqual([]);
    }));

  test('is tried without waiting, reports its holders, and leaves nothing behind', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      const mine = new Semaphore(one.client, '/limit', { layout, leasesMax: 1, data: 'one' });
      const other = new Semaphore(two.client, '/limit', { layout, leasesMax: 1 });
      expect(await mine.holders()).toEqual([]);
      const lease = await mine.tryAcquire();
      expect(lease).not.toBeNull();
      const [holder] = await other.holders();
      expect(holder).toMatchObject({ path: lease!.path, token: lease!.token, sessionId: lease!.sessionId });
      expect(await text.decode(holder!.data)).toBe('one');
      expect(await other.tryAcquire()).toBeNull();
      await expect(other.acquire({ timeoutMs: 300 })).rejects.toMatchObject({
        code: 'TIMEOUT',
        operation: 'Semaphore.acquire',
      });
      await sleep(100);
      expect(await names(one, leases)).toHaveLength(1);
      expect(await names(one, locks)).toEqual([]);
      await lease!.release();
      expect(await other.tryAcquire()).not.toBeNull();
    }));

  test.each(['acquire', 'tryAcquire'] as const)(
    'reports that nothing is held, whenever the caller of %s cancels',
    (method) =>
      inWorld(1, async ([one], { sleep }) => {
        const semaphore = new Semaphore(one.client, '/limit', { layout, leasesMax: 1 });
        let gaveUp = 0;
        for (let step = 1; step < 48; step++) {
          const controller = new AbortController();
          const ended = semaphore[method]({ signal: controller.signal }).then(
            (lease) => lease?.release(),
            (error: unknown) => {
              const operation = `Semaphore.${method}`;
              expect(error).toMatchObject({ code: 'ABORTED', outcome: 'not-applied', operation, path: '/limit' });
              gaveUp++;
            },
          );
          await sleep(step / 4);
          controller.abort();
          await ended;
          await sleep(100);
        }
        expect(gaveUp).toBeGreaterThan(5);
      }),
  );

  test("is awaited across session loss, both by the lock's holder and from the start", () =>
    inWorld(3, async ([one, two, three], { sleep, cut, heal }) => {
      const options = { layout, leasesMax: 1 };
      const lease = await new Semaphore(one.client, '/limit', options).acquire();
      const second = new Semaphore(two.client, '/limit', options).acquire();
      second.catch(() => {});
      while ((await names(one, locks).catch(() => [])).length === 0) await sleep(10);
      cut('host2');
      cut('host3');
      while (two.client.state !== 'lost' || three.client.state !== 'lost') await sleep(100);
      const third = new Semaphore(three.client, '/limit', options).acquire();
      third.catch(() => {});
      await sleep(1000);
      heal();
      await sleep(5000);
      await lease.release();
      await (await Promise.race([second, third])).release();
      await (await second).release();
      await (await third).release();
    }));

  test('gets back the lease of a client that loses its session', () =>
    inWorld(2, async ([one, two], { cut }) => {
      const lease = await new Semaphore(one.client, '/limit', { layout, leasesMax: 1 }).acquire();
      const next = new Semaphore(two.client, '/limit', { layout, leasesMax: 1 }).acquire();
      cut('host1');
      await next;
      expect(lease.isHeld).toBe(false);
    }));
});

test('a semaphore with the layout of kazoo refuses clients with another number of leases', () =>
  inWorld(1, async ([one]) => {
    await (await new Semaphore(one.client, '/limit', { layout: 'kazoo', leasesMax: 3 }).acquire()).release();
    const other = new Semaphore(one.client, '/limit', { layout: 'kazoo', leasesMax: 2 });
    await expect(other.acquire()).rejects.toThrow('the znode says that there are 3 leases, not 2');
    expect(() => new Semaphore(one.client, '/limit', { leasesMax: 0 })).toThrow('leasesMax is at least 1, not 0');
  }));

test('a lease stays when an earlier one in doubt is removed late', () =>
  inWorld(1, async ([one], { sleep }) => {
    const { client, relent } = doubtClient(one.client, '/limit/leases');
    const lease = await new Semaphore(client, '/limit', { leasesMax: 1 }).acquire();
    relent();
    // Longer than any pause of the removal.
    await sleep(5000);
    expect(await one.client.ephemerals('/limit')).toEqual([lease.path]);
    expect(lease.isHeld).toBe(true);
  }));
