import { expect, test } from 'vitest';
import { EPOCH_MS } from '../testing/committed.ts';
import { runSolo } from '../testing/fleet.ts';
import { Tally } from './tally.ts';

test('the time of the service is between the bounds that are given for it, also after a slow reply', () =>
  runSolo(3, async (fleet) => {
    const client = await fleet.connectAs('app');
    const tally = new Tally(client, '/tallies');
    const expectBounds = async (): Promise<void> => {
      const { earliestMs, latestMs } = await tally.serverTime();
      const nowMs = EPOCH_MS + fleet.world.nowMs;
      expect(earliestMs).toBeLessThanOrEqual(nowMs);
      expect(latestMs).toBeGreaterThanOrEqual(nowMs);
    };
    const set = client.set.bind(client);
    const setSlowly = async (...made: Parameters<typeof set>): ReturnType<typeof set> => {
      const stat = await set(...made);
      await fleet.world.sleep(500);
      return stat;
    };
    Object.assign(client, { set: setSlowly });
    await expectBounds();
    await fleet.world.sleep(250);
    await expectBounds();
    await client.close();
  }));
