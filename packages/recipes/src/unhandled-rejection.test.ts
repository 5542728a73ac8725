/** Cancelling a call just when a reply arrives causes no unhandled rejection, which would end the process. */
import type { Client } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { DoubleBarrier } from './barriers/double-barrier.ts';
import type { Inside } from './barriers/inside.ts';
import { countAnswers } from './testing/answer-counter.ts';
import { inWorld } from './testing/in-world.ts';
import { watchUnhandledRejections } from './testing/unhandled-rejections.ts';
import { WAITS, type Wait } from './testing/waits.ts';

const CASES: readonly (readonly [string, Wait])[] = [
  ...WAITS,
  [
    'Inside.leave of the one that came first',
    async (client, other) => {
      const [inside] = await enterBoth(client, other);
      return (call) => inside.leave(call);
    },
  ],
  [
    'Inside.leave of the one that came last',
    async (client, other) => {
      const [, inside] = await enterBoth(other, client);
      return (call) => inside.leave(call);
    },
  ],
];

const unhandledRejections = watchUnhandledRejections();

describe.each(CASES)('%s', (_title, prepare) => {
  test.each([true, false])(
    'may be cancelled at any of its replies (the client being closed at once: %s)',
    async (atOnce) => {
      let hasWaited = false;
      for (let nth = 1; !hasWaited; nth++) {
        await inWorld(2, async ([one, two], { sleep }) => {
          const controller = new AbortController();
          const { client, onAnswer } = countAnswers(one.client);
          const waiting = await prepare(client, two.client);
          onAnswer(nth, () => {
            controller.abort();
            if (atOnce) void one.client.close();
          });
          const given = waiting({ signal: controller.signal }).catch((error: unknown) => error);
          await sleep(100);
          // There are not this many replies.
          hasWaited = !controller.signal.aborted;
          controller.abort();
          expect(await given).toMatchObject({
            code: expect.stringMatching(atOnce ? /^(ABORTED|CLOSED)$/ : /^ABORTED$/),
          });
          await one.client.close();
          await sleep(100);
        });
        expect(await unhandledRejections(), `cancelled at reply ${nth}`).toEqual([]);
        expect(nth).toBeLessThan(50);
      }
    },
  );
});

async function enterBoth(first: Client, second: Client): Promise<[Inside, Inside]> {
  const entering = new DoubleBarrier(first, '/it', 2).enter();
  while ((await second.exists('/it', { read: 'linearizable' }))?.numChildren !== 1);
  return Promise.all([entering, new DoubleBarrier(second, '/it', 2).enter()]);
}
