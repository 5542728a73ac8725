/**
 * One leader per token under faults. A failure prints its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/election/election.simulation.test.ts`.
 */
import { describe } from 'vitest';
import { FencedStore } from '../testing/fenced-store.ts';
import { contendInStorm, drawLimits, simulateStorm } from '../testing/storm.ts';
import { Election, type ElectionOptions } from './election.ts';

const SHAPES: readonly ElectionOptions[] = [{ style: 'latch' }, { style: 'selector' }, { layout: 'kazoo' }];

describe('an election in a storm', () => {
  simulateStorm('has one leader at a time, and leaves nothing behind', 6, (fleet, seed) =>
    contendInStorm(fleet, new FencedStore('/entries'), ['/leader'], async ({ station, client, random }) => {
      const election = new Election(client, '/leader', {
        ...SHAPES[seed % SHAPES.length],
        id: station.host,
      });
      return { held: await election.campaign(drawLimits(random)), access: 'write' };
    }),
  );
});
