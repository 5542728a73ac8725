import { ZooKeeperError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { Fleet } from '../testing/fleet.ts';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { Barrier } from './barrier.ts';
import { CountDownLatch } from './count-down-latch.ts';

const COUNTERS = 3;
const EACH = 8;
const FAULT_MS = 10_000;

test.each(seeds(4))(
  'a latch counts everybody once, and a barrier holds everybody (seed %i)',
  async (seed) => {
    const fleet = new Fleet(seed);
    await fleet.run(async () => {
      const clients = await fleet.connectAll(COUNTERS);
      const barriers = clients.map((client) => new Barrier(client, '/barrier'));
      await barriers[0]!.set();
      if (seed % 4 === 0) fleet.unleashBreaks(FAULT_MS);
      else fleet.unleash(FAULT_MS, COUNTERS);
      const latches = clients.map((client) => new CountDownLatch(client, '/latch', COUNTERS * EACH));
      const through = { latch: 0, barrier: 0 };
      const opened = latches.map((latch) => latch.wait().then(() => through.latch++));
      const passed = barriers.map((barrier) => barrier.wait().then(() => through.barrier++));
      let certain = 0;
      let doubtful = 0;
      const counting = latches.map(async (latch) => {
        for (let i = 0; i < EACH - 1; i++) {
          try {
            await latch.countDown();
            certain++;
          } catch (error) {
            if (!(error instanceof ZooKeeperError)) throw error;
            if (error.outcome === 'unknown') doubtful++;
          }
          await fleet.world.sleep(fleet.world.random.between(0, 1500));
        }
      });
      await Promise.all(counting);
      fleet.heal();
      const left = await latches[0]!.count();
      const counted = COUNTERS * EACH - left;
      expect(counted).toBeGreaterThanOrEqual(certain);
      expect(counted).toBeLessThanOrEqual(certain + doubtful);
      expect(through).toEqual({ latch: 0, barrier: 0 });
      for (let i = 0; i < left; i++) await latches[i % COUNTERS]!.countDown();
      await Promise.all(opened);
      await barriers[1]!.remove();
      await Promise.all(passed);
    });
  },
  patienceMs(1),
);
