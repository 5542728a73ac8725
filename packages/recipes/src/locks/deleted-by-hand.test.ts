/** Another client deletes all znodes while a lock is being acquired: it is acquired, later, and nothing fails. */
import { NoNodeError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { inWorld } from '../testing/in-world.ts';
import { stepClient } from '../testing/stepped-client.ts';
import { TAKES } from '../testing/takes.ts';

describe.each(TAKES)('%s', (_title, take) => {
  test.each(['free', 'held'] as const)(
    'succeeds whatever is deleted by hand before any of its requests, when %s',
    (how) =>
      inWorld(2, async ([one, two], { sleep }) => {
        const { client, beforeRequest } = stepClient(one.client);
        const deleteAll = async (): Promise<void> => {
          for (const path of ['/it', '/it-__lock__']) {
            await two.client.deleteRecursive(path).catch((error: unknown) => {
              if (!(error instanceof NoNodeError)) throw error;
            });
          }
        };
        let hasActed = true;
        for (let nth = 1; hasActed; nth++) {
          hasActed = false;
          if (how === 'held') await take(two.client, {});
          beforeRequest(nth, () => {
            hasActed = true;
            return deleteAll();
          });
          const taking = take(client, { timeoutMs: 10_000 });
          // A caller that waits for the other holder by now gets it.
          void sleep(200).then(how === 'held' ? deleteAll : undefined);
          const taken = await taking.catch((error: unknown) => {
            throw new Error(`request ${nth}`, { cause: error });
          });
          await sleep(300);
          await taken?.[Symbol.asyncDispose]();
          await deleteAll();
          expect(nth).toBeLessThan(40);
        }
      }),
  );
});
