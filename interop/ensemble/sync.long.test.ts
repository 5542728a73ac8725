import type { Client } from '@meerkat/client';
import { expect, onTestFailed, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { Ensemble, type Member, THREADED } from './ensemble.ts';
import { connectTo } from './workload.ts';

/** Rounds of each syncing client. With a wrong order of packets to Apache's learners, 3 to 411 writes caused a hang. */
const ROUNDS = 200;
/** Milliseconds within which a request is answered unless its server hangs. */
const PATIENCE_MS = 60_000;

describeWith(['apache'], 'a leader of ours with a follower and an observer of Apache', () => {
  test('answers syncs of their clients while others write, and keeps serving all', async () => {
    const ensemble = await Ensemble.start([
      { kind: 'apache' },
      THREADED,
      THREADED,
      { kind: 'apache', isObserver: true },
    ]);
    onTestFailed(() => console.log(ensemble.logs));
    try {
      expect((await ensemble.leader()).server.kind).toBe('meerkat');
      const learners = ensemble.members.filter(({ server }) => server.kind === 'apache');
      await using clients = await connectAll([...learners, ...learners, ...learners, ...ensemble.members]);
      for (const { id } of ensemble.members) await clients.of[0]!.client.create(`/at-${id}`);

      let isOver = false;
      const write = async ({ client, member: { id } }: Site): Promise<void> => {
        for (let n = 0; !isOver; n++) await within(client.set(`/at-${id}`, String(n)), `a write at server ${id}`);
      };
      const sync = async ({ client, member: { id } }: Site): Promise<void> => {
        for (let round = 0; round < ROUNDS && !isOver; round++) {
          const written = client.set(`/at-${id}`, `round ${round}`);
          const read = client.sync().then(() => client.get(`/at-${id}`));
          await within(Promise.all([written, read]), `round ${round} of writes and syncs at server ${id}`);
        }
      };
      const over = (): void => {
        isOver = true;
      };
      const syncing = Promise.all(clients.of.slice(0, 4).map(sync)).finally(over);
      const writing = Promise.all(clients.of.slice(4).map(write)).finally(over);
      // The first failure is reported; the rest ends soon after it.
      await Promise.all([syncing, writing]);
      for (const member of learners) {
        await using late = await within(connectTo(member), `a new session at server ${member.id}`);
        await within(late.create('/late-', '', { sequential: true }), `a new write at server ${member.id}`);
      }
    } finally {
      await ensemble.dispose();
    }
  });
});

interface Site {
  readonly member: Member;
  readonly client: Client;
}

async function connectAll(members: readonly Member[]): Promise<{ readonly of: readonly Site[] } & AsyncDisposable> {
  const of = await Promise.all(members.map(async (member) => ({ member, client: await connectTo(member) })));
  return {
    of,
    async [Symbol.asyncDispose]() {
      await Promise.all(of.map(({ client }) => client.close()));
    },
  };
}

async function within<T>(promise: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not answered within ${PATIENCE_MS} ms: ${what}`)), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
