import { type Client, connect } from '@meerkat/client';
import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { Ensemble } from './ensemble.ts';
import { FOREIGN_KINDS, type ForeignKind } from './foreign-client.ts';
import { expectSessionKept, type SessionOwner, startClient } from './session-owner.ts';
import { writeUntilDone } from './workload.ts';

/** Each client's term for a connection, and all states that it may report on loss and reconnect. */
const STATES: Readonly<Record<ForeignKind, { readonly connected: string; readonly lost: readonly string[] }>> = {
  kazoo: { connected: 'CONNECTED', lost: ['SUSPENDED'] },
  zkCli: { connected: 'SyncConnected', lost: ['Disconnected'] },
  cliMt: { connected: 'CONNECTED', lost: ['CONNECTING', 'ASSOCIATING', 'NOTCONNECTED'] },
  libzookeeperSt: { connected: 'connected', lost: ['connecting', 'associating', 'not connected'] },
};

/** Where a client was connected when a leader died. */
type Position = 'leader' | 'follower';

/** Leaders are killed until each kind of client was at a leader and at a follower; zkCli.sh picks randomly. */
const DEATHS_MIN = 2;
const DEATHS_MAX = 40;

describeWith([...FOREIGN_KINDS], 'when the leader is killed', () => {
  let ensemble: Ensemble;
  let control: Client;

  beforeAll(async () => {
    ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'meerkat' }, { kind: 'meerkat' }]);
    control = await connect(ensemble.connectString, {
      sessionTimeoutMs: 30_000,
      backOff: { minMs: 5, maxMs: 50 },
    });
  });
  afterAll(async () => {
    await control?.close();
    await ensemble?.dispose();
  });
  beforeEach(() => {
    onTestFailed(() => console.log(ensemble.logs));
  });

  test('foreign clients of the leader and followers keep their session, ephemerals and watches', async () => {
    const owners: SessionOwner[] = [];
    try {
      await control.create('/watched', 'before');
      const leader = await ensemble.leader();
      const follower = ensemble.members.find((member) => member !== leader)!;
      const starts = FOREIGN_KINDS.flatMap((kind) => [
        startClient(kind, ensemble, leader, `/${kind}-leader`, control),
        startClient(kind, ensemble, follower, `/${kind}-follower`, control),
      ]);
      for (const start of await Promise.allSettled(starts)) {
        if (start.status === 'rejected') throw start.reason;
        owners.push(start.value);
      }
      const seen = new Set<`${ForeignKind} of ${Position}`>();
      let data = 'before';
      for (let deaths = 1; deaths <= DEATHS_MIN || seen.size < 2 * FOREIGN_KINDS.length; deaths++) {
        expect(deaths).toBeLessThanOrEqual(DEATHS_MAX);
        const dying = await ensemble.leader();
        await Promise.all(owners.map(({ client }) => client.watch('/watched', data)));
        for (const { client, session } of owners) {
          const member = await ensemble.memberOf(session);
          expect(member).not.toBeNull();
          seen.add(`${client.kind} of ${member === dying ? 'leader' : 'follower'}`);
        }
        await dying.server.kill();

        data = `death-${deaths}`;
        await writeUntilDone(control, '/watched', data);
        await Promise.all(owners.map((owner) => expectSessionKept(owner, deaths, control)));
        await dying.server.restart();
      }
      for (const { client } of owners) {
        const { connected, lost } = STATES[client.kind];
        const { states } = client;
        expect(states[0]).toBe(connected);
        expect(states.at(-1)).toBe(connected);
        for (const state of states) expect([connected, ...lost]).toContain(state);
        if (client.kind === 'kazoo') expect(states.join(' ')).toMatch(/^CONNECTED( SUSPENDED CONNECTED){2,}$/);
        expect(await client.quit()).toBe(0);
      }
      // The sessions were never lost, and are closed now with their ephemerals.
      for (const { client } of owners) expect(await control.exists(`${client.root}/mine`)).toBeNull();
    } catch (error) {
      for (const { client } of owners) console.log(`---- ${client.root}\n${client.output}`);
      throw error;
    } finally {
      for (const { client } of owners) await client.kill();
    }
  });
});
