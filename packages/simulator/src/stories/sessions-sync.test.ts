import { describe, expect, test } from 'vitest';
import { dataIn, get, SYNC } from './requests.ts';
import { play } from './stage.ts';
import { WireClient } from './wire-client.ts';

describe('a sync', () => {
  test('1675: is not answered at the follower of a deposed leader, so that no read behind it is stale', () =>
    play({ servers: 5 }, async (stage) => {
      const old = await stage.start();
      const [follower, ...others] = stage.servers.filter((server) => server !== old);
      await (await stage.at(old)).create('/value', 'old');
      const reader = new WireClient(stage.world, 'reader', follower!);
      await reader.whenAnswered();
      await stage.whole();
      // The old leader keeps one follower, and needs a while to notice that it is deposed. The others know at once.
      stage.isolate(old, follower!);
      for (const server of others) {
        server.crash();
        server.start();
      }
      const leader = await stage.leader(...others);
      await (await stage.at(leader)).set('/value', 'new');
      expect([old.role, old.isServing, follower!.isServing]).toEqual(['leading', true, true]);
      reader.send(1, get('/value'));
      reader.send(2, SYNC);
      reader.send(3, get('/value'));
      await reader.whenClosed();
      // Without a sync, stale data may be shown. With one, the read is not answered.
      expect(reader.replies.map(({ xid, body }) => [xid, dataIn(body)])).toEqual([[1, 'old']]);
      expect(old.isServing).toBe(false);
    }));

  // An expired lease also holds back answers.
  test.each([2, 0])('1675: asked of a deposed leader itself is not answered either, leases of %i ticks', (leaseTicks) =>
    play({ servers: 3, ensemble: { leaseTicks } }, async (stage) => {
      const old = await stage.start();
      const others = stage.servers.filter((server) => server !== old);
      const reader = new WireClient(stage.world, 'reader', old);
      await reader.whenAnswered();
      await stage.whole();
      stage.isolate(old);
      for (const server of others) {
        server.crash();
        server.start();
      }
      await stage.write(await stage.leader(...others));
      expect(old.isServing).toBe(true);
      reader.send(1, SYNC);
      await reader.whenClosed();
      expect(reader.replies).toEqual([]);
    }),
  );

  test('108: at a follower that is late brings everything that any client was told before', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      const [late, quick] = stage.servers.filter((server) => server !== leader);
      await (await stage.at(leader)).create('/value', '0');
      const reader = new WireClient(stage.world, 'reader', late!);
      await reader.whenAnswered();
      await stage.whole();
      const slow = { delayMinMs: 50, delayMaxMs: 80, splitChance: 0.3, mergeChance: 0.3 };
      stage.world.network.slowDown(leader.host, late!.host, slow);
      const writer = await stage.at(quick!);
      for (let i = 1; i <= 5; i++) {
        await writer.set('/value', String(i));
        reader.send(3 * i, get('/value'));
        reader.send(3 * i + 1, SYNC);
        reader.send(3 * i + 2, get('/value'));
        const stale = await reader.reply(3 * i);
        const fresh = await reader.reply(3 * i + 2);
        expect(dataIn(stale.body)).toBe(String(i - 1));
        expect(dataIn(fresh.body)).toBe(String(i));
      }
      // Many at once, between writes of the same client and of another, in the order of the requests.
      for (let xid = 100; xid < 140; xid += 2) {
        writer.set('/value', String(xid)).catch(() => {});
        reader.send(xid, SYNC);
        reader.send(xid + 1, get('/value'));
      }
      await reader.reply(139);
      const values = reader.replies.filter(({ xid }) => xid > 100 && xid % 2 === 1).map(({ body }) => dataIn(body));
      expect(reader.replies.map(({ xid }) => xid)).toEqual(
        reader.replies.map(({ xid }) => xid).toSorted((a, b) => a - b),
      );
      expect(values.map(Number)).toEqual(values.map(Number).toSorted((a, b) => a - b));
      reader.destroy();
    }));
});
