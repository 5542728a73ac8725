import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Workshop } from './workshop.ts';

/** A machine that has other things to do may take as long as it likes. */
const TIMEOUT_MS = 600_000;

describe('a copy of the sources', () => {
  let workshop: Workshop;
  beforeAll(() => {
    workshop = new Workshop(fileURLToPath(new URL('../../../../', import.meta.url)));
  }, TIMEOUT_MS);
  afterAll(() => workshop.dispose());

  test(
    'runs a test',
    async () => {
      const file = 'packages/simulator/src/shrink.test.ts';
      expect(await workshop.test({ file, title: null })).toBe('passed');
    },
    TIMEOUT_MS,
  );

  test(
    'runs the simulation of a recipe',
    async () => {
      expect(await workshop.simulateRecipe('queues/queue', { first: 1, last: 1 }, TIMEOUT_MS)).toEqual([]);
    },
    TIMEOUT_MS,
  );
});
