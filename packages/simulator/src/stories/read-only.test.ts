import type { Client } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import type { VirtualServer } from '../virtual-server.ts';
import { play } from './stage.ts';

const SHAPE = { servers: 3, ensemble: { readOnlyEnabled: true } };

describe('a server without a leader that answers reads', () => {
  test('shows the contents of its log and acknowledges no write; its clients keep their sessions', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const others = stage.three.filter((server) => server !== leader);
      await stage.whole();
      const client = await stage.connect('reader', { canBeReadOnly: true, sessionTimeoutMs: 60_000 });
      const { id } = client.session!;
      await client.create('/committed', 'before');
      await client.moveTo({ host: leader.host, port: leader.port });
      await stage.logAlone(leader, '/alone');
      stage.isolate(leader);
      const next = await stage.leader(...others);
      const [missed] = await stage.write(next);
      await stage.until('the leader of before answers reads', () => leader.core?.view.isReadOnly === true);
      const lastZxid = stage.lastZxid(leader);
      // The client may have moved to the others; this one can reach only this server.
      const beside = await stage.connect('beside', {
        servers: `${leader.host}:${leader.port}`,
        canBeReadOnly: true,
        sessionTimeoutMs: 60_000,
      });
      expect(beside.state).toBe('read-only');
      expect(await beside.exists('/committed')).not.toBeNull();
      // It is logged here alone and will be lost; what the others have written since is not visible here.
      expect(await beside.exists('/alone')).not.toBeNull();
      expect(await beside.exists(missed!)).toBeNull();
      for (const write of [
        beside.create('/new'),
        beside.create('/new', '', { mode: 'ephemeral' }),
        beside.set('/committed', 'x'),
        beside.delete('/committed'),
        beside.transaction().create('/new').commit(),
        beside.sync(),
      ]) {
        expect(await codeOf(write)).toBe('NOTREADONLY');
      }
      // Nothing of it is logged (ZOOKEEPER-3526).
      expect(stage.lastZxid(leader)).toBe(lastZxid);
      stage.heal();
      await stage.until('all are connected to a quorum', () =>
        [client, beside].every(({ state }) => state === 'connected'),
      );
      expect(client.session?.id).toBe(id);
      expect(await beside.exists('/new')).toBeNull();
      expect(await beside.exists('/alone')).toBeNull();
      await beside.set('/committed', 'after');
      await stage.whole();
      expect(await stage.has(leader, '/alone')).toBe(false);
      for (const each of [client, beside]) await each.close();
    }));

  test('resumes a session without ephemerals, and lets one with ephemerals wait for a quorum', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const [other, last] = stage.three.filter((server) => server !== leader);
      await stage.whole();
      const connect = (host: string): Promise<Client> =>
        stage.connect(host, { servers: `${last!.host}:${last!.port}`, canBeReadOnly: true, sessionTimeoutMs: 60_000 });
      const reader = await connect('reader');
      const owner = await connect('owner');
      await owner.create('/owned', '', { mode: 'ephemeral' });
      await reader.sync();
      const sessions = [reader, owner].map((client) => client.session!.id);
      stage.kill(leader, other!);
      await stage.until('the last one answers reads', () => reader.state === 'read-only');
      expect(await reader.exists('/owned')).not.toBeNull();
      expect(owner.state).toBe('suspended');
      const { lastZxid } = last!.core!.view;
      await stage.launch(leader, other!);
      await stage.until('both are back', () => [reader, owner].every(({ state }) => state === 'connected'));
      expect([reader, owner].map((client) => client.session?.id)).toEqual(sessions);
      expect((await reader.exists('/owned'))?.ephemeralOwner).toBe(sessions[1]);
      expect(lastZxid).toBeLessThanOrEqual(last!.core!.view.lastZxid);
      for (const each of [reader, owner]) await each.close();
    }));

  test('that does not log takes no client that has seen more than it has left', () => {
    const ensemble = { ...SHAPE.ensemble, syncEnabled: false, snapshotSizeFactor: 100 };
    return play({ servers: 3, observers: 1, ensemble }, async (stage) => {
      const observer = stage.zk(4);
      const placeOf = ({ host, port }: VirtualServer) => ({ host, port });
      const first = await stage.start();
      const client = await stage.connect('reader', { canBeReadOnly: true, sessionTimeoutMs: 60_000 });
      // The next leader gives the observer a snapshot, which stays.
      stage.kill(first);
      const second = await stage.leader(...stage.three.filter((server) => server !== first));
      await stage.launch(first);
      await stage.whole();
      await client.moveTo(placeOf(second));
      await client.create('/seen');
      const seen = stage.lastZxid(second);
      // The third one gives it a DIFF, which it does not log.
      stage.kill(second);
      await stage.leader(...stage.three.filter((server) => server !== second));
      // It serves in the next epoch, which begins after all that the client has seen.
      await stage.whole();
      stage.isolate(observer);
      await stage.until('the observer answers reads', () => observer.core?.view.isReadOnly === true);
      expect(observer.core!.view.lastZxid).toBeLessThan(seen);
      await client.moveTo(placeOf(observer)).catch(() => {});
      expect(await client.exists('/seen')).not.toBeNull();
      stage.heal();
      await client.close();
    });
  });
});

async function codeOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
    return null;
  } catch (error) {
    return (error as { readonly code?: unknown }).code;
  }
}
