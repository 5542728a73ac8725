import { TransactionError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { play } from './stage.ts';

describe('a lock', () => {
  test('Jepsen 2020: that has passed to another client is of no use to the old one, whose writes name the lock that they rely on', () =>
    play({ servers: 3 }, async (stage) => {
      await stage.start();
      const { network } = stage.world;
      const options = { sessionTimeoutMs: 1000 };
      const one = await stage.connect('one', options);
      const two = await stage.connect('two', options);
      await one.create('/locks');
      await one.create('/register', 'nobody');
      const lock = { mode: 'ephemeral', sequential: true } as const;
      const mine = await one.create('/locks/lock-', '', lock);
      const next = await two.create('/locks/lock-', '', lock);
      // The second waits for the first.
      const { changed } = await two.exists(mine.path, { watch: true });
      await one.transaction().check(mine.path).set('/register', 'one').commit();
      // The first is cut off for longer than its session timeout; it has decided to write, and has not written yet.
      network.partition(
        ['one'],
        stage.servers.map(({ host }) => host),
      );
      const pausedMs = stage.world.nowMs;
      expect(await changed).toMatchObject({ type: 'deleted', path: mine.path });
      expect(stage.world.nowMs - pausedMs).toBeLessThan(1000 + 2 * 100 + 100);
      // Its client has reported the session as lost before: at no time do both clients believe that they hold the lock.
      expect(one.state).toBe('lost');
      await two.transaction().check(next.path).set('/register', 'two').commit();
      network.heal();
      await one.whenConnected();
      // A client that ignores its session state is stopped by the check; a write without it would have overwritten the value.
      const late = one.transaction().check(mine.path).set('/register', 'one again').commit();
      await expect(late).rejects.toThrow(TransactionError);
      const { data } = await one.get('/register', { read: 'linearizable' });
      expect(new TextDecoder().decode(data)).toBe('two');
      await one.close();
      await two.close();
    }));
});
