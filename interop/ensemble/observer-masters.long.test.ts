import { connect } from '@meerkat/client';
import { expect, onTestFailed, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { Op, RawClient } from '../harness/raw-client.ts';
import { type RecordBuilder, record } from '../harness/record-builder.ts';
import { freePort, type ServerKind } from '../harness/server-process.ts';
import { Ensemble, type Member } from './ensemble.ts';
import { connectTo, exercise, exerciseEphemerals, writeUntilDone } from './workload.ts';

// Followers accept observers on a fixed port number, so each server has its own address.
const hosts = ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'] as const;

// The last voter leads, so that all followers are of the other kind.
testMasters('servers of ours', ['meerkat', 'meerkat', 'meerkat'], ['meerkat', 'meerkat']);
testMasters('followers of Apache, an observer of ours', ['apache', 'apache', 'meerkat'], ['meerkat']);
testMasters('followers of ours, an observer of Apache', ['meerkat', 'meerkat', 'apache'], ['apache']);

function testMasters(title: string, voters: readonly ServerKind[], observers: readonly ServerKind[]): void {
  describeWith(['apache'], `observers of followers: ${title}`, () => {
    test('they serve clients of every kind, and switch to another follower when theirs dies', async () => {
      const places = [...voters, ...observers].map((kind, i) => ({
        kind,
        host: hosts[i]!,
        isObserver: i >= voters.length,
        hasAdmin: true,
      }));
      const ensemble = await Ensemble.start(places, { observerMasterPort: await freePort() });
      onTestFailed(() => console.log(ensemble.logs));
      try {
        const leader = await ensemble.leaderOfKind(voters.at(-1)!);
        for (const member of ensemble.members) await expect.poll(() => ensemble.modeOf(member)).not.toBeNull();
        const followers = ensemble.members.filter(({ isObserver, id }) => !isObserver && id !== leader.id);
        const watching = ensemble.members.filter(({ isObserver }) => isObserver);
        for (const observer of watching) {
          const master = await masterOf(ensemble, observer);
          expect(followers.map(({ id }) => id)).toContain(master.id);
          const one = await connectTo(observer);
          const other = await connectTo(leader);
          await exercise(one, { client: other, kind: leader.server.kind }, `/up-${observer.id}`);
          await exercise(other, { client: one, kind: observer.server.kind }, `/down-${observer.id}`);
          await exerciseEphemerals(observer, { client: other, kind: leader.server.kind }, `/ephemeral-${observer.id}`);
          await Promise.all([one.close(), other.close()]);
          await moveThrough([observer, master, leader, observer], `/moved-${observer.id}`);
        }
        // The leader does not know them.
        expect(await leader.server.fourLetterWord('mntr')).toMatch(/zk_synced_observers\t0\n/);
        expect((await syncedObservers(followers)).reduce((a, b) => a + b)).toBe(watching.length);

        const [observer] = watching;
        await using client = await connect(`127.0.0.1:${observer!.server.port}`, {
          sessionTimeoutMs: 30_000,
          backOff: { minMs: 5, maxMs: 50 },
        });
        await client.create('/survivor', 'x', { mode: 'ephemeral' });
        await client.create('/deaths', '0');
        const session = client.session?.id;
        const master = await masterOf(ensemble, observer!);
        await master.server.kill();
        await writeUntilDone(client, '/deaths', '1');
        expect((await masterOf(ensemble, observer!)).id).not.toBe(master.id);
        await master.server.restart();
        await (await ensemble.leader()).server.kill();
        await writeUntilDone(client, '/deaths', '2');
        expect(client.session?.id).toBe(session);
        expect((await client.exists('/survivor'))?.ephemeralOwner).toBe(session);
      } finally {
        await ensemble.dispose();
      }
    });
  });
}

/** The observer master reported by an observer. */
async function masterOf({ members }: Ensemble, { server }: Member): Promise<Member> {
  const text = await server.fourLetterWord('mntr');
  const id = Number(/zk_observer_master_id\t(\d+)/.exec(text)?.[1]);
  return members.find((member) => member.id === id)!;
}

/** Moves a session from server to server, writing at each what the next one must have applied. */
async function moveThrough(members: readonly Member[], path: string): Promise<void> {
  let client = await RawClient.connect(members[0]!.server.port, { timeoutMs: 20_000 });
  const acl = (b: RecordBuilder) => b.int(1).int(31).ustring('world').ustring('anyone');
  for (const [i, { server }] of members.entries()) {
    if (i > 0) {
      client.destroy();
      client = await resume(server.port, client);
    }
    const create = (name: string, flags: number) => acl(record().ustring(name).buffer(Buffer.alloc(0))).int(flags);
    // Ephemeral and sequential, to check owner and order.
    await client.demand(Op.create, create(`${path}-${i}`, 1).build());
    await client.demand(Op.sync, record().ustring('/').build());
    for (let earlier = 0; earlier <= i; earlier++) {
      await client.demand(Op.exists, record().ustring(`${path}-${earlier}`).bool(false).build());
    }
  }
  await client.close();
}

/** Reconnects in a loop: a server that lags behind the client's last zxid closes the connection. */
async function resume(port: number, client: RawClient): Promise<RawClient> {
  for (;;) {
    try {
      return await RawClient.connect(port, client.credentials);
    } catch (error) {
      if (!String(error).includes('the server closed the connection')) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

async function syncedObservers(members: readonly Member[]): Promise<readonly number[]> {
  return Promise.all(
    members.map(async ({ server }) =>
      Number(/zk_synced_observers\t(\d+)/.exec(await server.fourLetterWord('mntr'))?.[1] ?? 0),
    ),
  );
}
