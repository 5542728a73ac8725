/** What is wrong by its type alone: mutations that bring back an early acknowledgement, or an early commit. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readMutations } from './mutation.ts';
import { Workshop } from './workshop.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const REFUSED = readMutations(join(ROOT, 'packages/simulator/mutations')).filter(({ compiles }) => !compiles);

/** The compiler takes seconds; a machine that has other things to do may take as long as it likes. */
const TIMEOUT_MS = 600_000;

describe('the compiler refuses', () => {
  let workshop: Workshop;
  beforeAll(async () => {
    workshop = new Workshop(ROOT);
    expect(await workshop.compile('packages/core')).toBeNull();
  }, TIMEOUT_MS);
  afterAll(() => workshop.dispose());

  test('the mutations that durability as a type is there for', () => {
    expect(REFUSED.map(({ id }) => id)).toEqual(
      expect.arrayContaining([
        'follower-applies-before-durable',
        'leader-applies-before-own-disk',
        'newleader-acked-before-history-durable',
        'received-counts-as-durable',
      ]),
    );
  });

  test.each(REFUSED)(
    '$id',
    async (mutation) => {
      workshop.apply(mutation);
      try {
        const errors = await workshop.compile('packages/core');
        const { file } = mutation.hunks[0]!;
        expect(errors).toMatch(new RegExp(`${file.replaceAll('.', '\\.')}\\(\\d+,\\d+\\): error TS2(322|345)`));
      } finally {
        workshop.restore();
      }
    },
    TIMEOUT_MS,
  );
});
