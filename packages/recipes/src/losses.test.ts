/**
 * Waiting calls whose connection or session is lost at any moment. A call that is cancelled at that moment leaves no
 * znode behind, although it cannot delete one; a call that is not keeps waiting.
 */
import { type CallOptions, type Client, text, ZooKeeperError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { Condition } from './barriers/condition.ts';
import { DoubleBarrier } from './barriers/double-barrier.ts';
import { Rendezvous } from './barriers/rendezvous.ts';
import { NameService } from './groups/name-service.ts';
import { Mutex } from './locks/mutex.ts';
import { Queue } from './queues/queue.ts';
import { inWorld, type Tools } from './testing/in-world.ts';
import { TAKES } from './testing/takes.ts';
import { WAITING_TAKES } from './testing/waits.ts';

interface Case {
  readonly title: string;
  /** Nothing blocks it. */
  readonly comes?: true;
  /** It fails with session loss, and reports it (`outcome: 'unknown'`). */
  readonly endsWithSession?: true;
  /** What another client does first. @returns our call, which waits or completes soon */
  readonly prepare: (client: Client, other: Client) => Promise<(call: CallOptions) => Promise<AsyncDisposable | null>>;
}

/** After a loss, locks with a delay make the others wait for it. */
const SWIFT_TAKES = TAKES.filter(([title]) => !title.includes('with a delay'));

const CASES: readonly Case[] = [
  ...SWIFT_TAKES.map(([title, take]): Case => {
    return { title: `${title}, free`, comes: true, prepare: (client) => Promise.resolve((call) => take(client, call)) };
  }),
  ...SWIFT_TAKES.filter((entry) => WAITING_TAKES.includes(entry)).map(([title, take]): Case => {
    const prepare: Case['prepare'] = async (client, other) => {
      await take(other, {});
      return (call) => take(client, call);
    };
    return { title: `${title}, held`, prepare };
  }),
  {
    title: 'Condition.wait',
    prepare: (client) => {
      const mutex = new Mutex(client, '/it');
      return Promise.resolve(async (call) =>
        new Condition(client, '/changed', mutex).wait(await mutex.acquire(), call),
      );
    },
  },
  {
    title: 'DoubleBarrier.enter',
    prepare: (client) => Promise.resolve((call) => new DoubleBarrier(client, '/it', 2).enter(call)),
  },
  {
    title: 'Rendezvous.meet',
    endsWithSession: true,
    prepare: (client) =>
      Promise.resolve(async (call) => {
        await new Rendezvous(client, '/it', 2).meet(new Uint8Array(1), call);
        return null;
      }),
  },
  {
    title: 'Queue.take, empty',
    prepare: (client) => Promise.resolve((call) => new Queue(client, '/it').take(call)),
  },
  {
    title: 'Queue.take of an item',
    comes: true,
    prepare: async (client, other) => {
      await new Queue(other, '/it', { codec: text }).put('one');
      return (call) => new Queue(client, '/it', { codec: text }).take(call);
    },
  },
  {
    title: 'Queue.put, full',
    prepare: async (client, other) => {
      await new Queue(other, '/it', { codec: text, itemsMax: 1 }).put('one');
      const queue = new Queue(client, '/it', { codec: text, itemsMax: 1 });
      return async (call) => {
        await queue.put('two', call);
        return null;
      };
    },
  },
  {
    title: 'NameService.claim',
    endsWithSession: true,
    prepare: (client) => Promise.resolve((call) => new NameService(client, '/it').claim('worker-', '', call)),
  },
];

describe.each(CASES)('$title', ({ prepare }) => {
  test.each(['breaks', 'is gone for a while'] as const)(
    'leaves nothing behind when its caller cancels at any moment, and the connection %s just then',
    (way) =>
      inWorld(2, async ([one, two], tools) => {
        const take = await prepare(one.client, two.client);
        let gaveUp = 0;
        for (let limitMs = STEP_MS; limitMs <= LIMIT_MAX_MS; limitMs += STEP_MS) {
          const lose = way === 'breaks' ? tools.breakConnections : () => tools.cut('host1');
          if (await giveUpWhile(one.client, tools, { take, limitMs, lose, regain: tools.heal })) gaveUp++;
        }
        expect(gaveUp).toBeGreaterThan(3);
      }),
  );

  test('leaves nothing behind in a session that counts as lost at any moment and comes back', async () => {
    for (let limitMs = STEP_MS; limitMs <= LIMIT_MAX_MS; limitMs += 3 * STEP_MS) {
      await inWorld(2, async ([one, two], tools) => {
        const take = await prepare(one.client, two.client);
        const { lostSignal } = one.client;
        // A service that is down keeps its sessions.
        const lose = (): void => tools.server.crash();
        const regain = (): void => void tools.server.start();
        await giveUpWhile(one.client, tools, { take, limitMs, lose, regain, awayMs: 6000 });
        expect(lostSignal.aborted).toBe(true);
      });
    }
  });
});

describe.each(CASES.filter(({ endsWithSession }) => endsWithSession !== true))(
  '$title',
  ({ prepare, comes = false }) => {
    test.each(['comes back', 'has expired'] as const)(
      'continues when the session is lost at any moment, and %s',
      async (way) => {
        for (let limitMs = STEP_MS; limitMs <= LIMIT_MAX_MS; limitMs += 2 * STEP_MS) {
          await inWorld(2, async ([one, two], { server, sleep, cut, heal }) => {
            const { client } = one;
            const take = await prepare(client, two.client);
            const controller = new AbortController();
            const taking = holdOnce(take({ signal: controller.signal }));
            const { lostSignal } = client;
            await sleep(limitMs);
            if (way === 'comes back') server.crash();
            else cut('host1');
            await sleep(way === 'comes back' ? 6000 : 15_000);
            if (way === 'comes back') server.start();
            else heal();
            expect(lostSignal.aborted).toBe(true);
            await sleep(5000);
            controller.abort();
            const hasGivenUp = await taking;
            if (comes) expect(hasGivenUp, `lost after ${limitMs} ms`).toBe(false);
            await sleep(2500);
            expect((await ownOf(client)).filter(isNoTally), `lost after ${limitMs} ms`).toEqual([]);
          });
        }
      },
    );
  },
);

/** Releases it at once. @returns whether it succeeded, or was cancelled before; rejects when it failed otherwise */
async function holdOnce(taking: Promise<AsyncDisposable | null>): Promise<boolean> {
  try {
    await using _ = await taking;
    return false;
  } catch (error) {
    if (!(error instanceof ZooKeeperError) || error.code !== 'ABORTED') throw error;
    return true;
  }
}

interface GivingUp {
  readonly take: (call: CallOptions) => Promise<AsyncDisposable | null>;
  readonly limitMs: number;
  /** Takes the connection away, and restores it. */
  readonly lose: () => void;
  readonly regain: () => void;
  readonly awayMs?: number;
}

/** @returns whether it was cancelled, or had succeeded before */
async function giveUpWhile(
  client: Client,
  { sleep }: Tools,
  { take, limitMs, lose, regain, awayMs = 1000 }: GivingUp,
): Promise<boolean> {
  const sessionId = client.session?.id;
  const controller = new AbortController();
  const taking = holdOnce(take({ signal: controller.signal }));
  await sleep(limitMs);
  lose();
  controller.abort();
  await sleep(awayMs);
  regain();
  const hasGivenUp = await taking;
  await client.whenConnected();
  await sleep(2500);
  // It is still the same session: nothing was deleted with it.
  expect(client.session?.id).toBe(sessionId);
  expect((await ownOf(client)).filter(isNoTally), `after ${limitMs} ms`).toEqual([]);
  return hasGivenUp;
}

/** The paths of the ephemeral znodes of a client's session. */
async function ownOf(client: Client): Promise<readonly string[]> {
  await client.sync('/');
  return client.ephemerals('/');
}

/** The tally, by which a queue counts its transactions, lives as long as the session. */
function isNoTally(path: string): boolean {
  return !path.includes('/tallies/');
}

/** Milliseconds; a request takes longer here. */
const STEP_MS = 0.75;
const LIMIT_MAX_MS = 12;
