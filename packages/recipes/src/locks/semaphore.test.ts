import { text } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { inWorld, names } from '../testing/in-world.ts';
import { Semaphore } from './semaphore.ts';

describe.each(['curator', 'kazoo'] as const)('a semaphore with the layout of %s', (layout) => {
  const leases = layout === 'curator' ? '/limit/leases' : '/limit';
  const locks = layout === 'curator' ? '/limit/locks' : '/limit-__lock__';

  test('gives so many leases and no more, in the order of asking', () =>
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

  test('is tried without waiting, tells its holders, and leaves nothing behind', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      const mine = new Semaphore(one!.client, '/limit', { layout, leasesMax: 1, data: 'one' });
      const other = new Semaphore(two!.client, '/limit', { layout, leasesMax: 1 });
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
      expect(await names(one!, leases)).toHaveLength(1);
      expect(await names(one!, locks)).toEqual([]);
      await lease!.release();
      expect(await other.tryAcquire()).not.toBeNull();
    }));

  test('takes back the lease of whoever loses its session', () =>
    inWorld(2, async ([one, two], { cut }) => {
      const lease = await new Semaphore(one!.client, '/limit', { layout, leasesMax: 1 }).acquire();
      const next = new Semaphore(two!.client, '/limit', { layout, leasesMax: 1 }).acquire();
      cut('host1');
      await next;
      expect(lease.isHeld).toBe(false);
    }));
});

test('a semaphore with the layout of kazoo tells those who disagree about the number of leases', () =>
  inWorld(1, async ([one]) => {
    await (await new Semaphore(one!.client, '/limit', { layout: 'kazoo', leasesMax: 3 }).acquire()).release();
    const other = new Semaphore(one!.client, '/limit', { layout: 'kazoo', leasesMax: 2 });
    await expect(other.acquire()).rejects.toThrow('the znode says that there are 3 leases, not 2');
    expect(() => new Semaphore(one!.client, '/limit', { leasesMax: 0 })).toThrow('leasesMax is at least 1, not 0');
  }));
