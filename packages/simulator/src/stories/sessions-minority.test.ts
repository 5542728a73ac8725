import { CreateMode, ErrorCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { create, get } from './requests.ts';
import { play } from './stage.ts';
import { WireClient } from './wire-client.ts';

describe('servers without a quorum', () => {
  test('1754: accept no session, not even a read-only one, and no request sent to them takes effect', () =>
    play({ servers: 5, observers: 1, seeds: [1, 2] }, async (stage) => {
      const leader = await stage.start();
      const [other, ...majority] = stage.ensemble.participants.filter((server) => server !== leader);
      const minority = [leader, other!, stage.ensemble.observers[0]!];
      const clients: WireClient[] = [];
      for (const [i, server] of minority.entries()) {
        const client = new WireClient(stage.world, `c${i}`, server, { readOnly: true, timeoutMs: 60_000 });
        await client.whenAnswered();
        expect(client.connected?.readOnly).toBe(false);
        clients.push(client);
      }
      await stage.whole();
      stage.isolate(...minority);
      const sessions = clients.map(({ session }) => session);
      // The old leader, not knowing that it is deposed, creates sessions and takes writes, and answers none of them.
      const early = new WireClient(stage.world, 'early', leader, { readOnly: true });
      clients[0]!.send(1, create('/lost', CreateMode.ephemeral));
      clients[1]!.send(1, create('/lost'));
      for (const client of [...clients, early]) await client.whenClosed();
      for (const { replies } of clients) expect(replies).toEqual([]);
      expect(early.connected).toBeNull();
      // Then they look for a leader, and answer no client.
      for (const [i, server] of minority.entries()) {
        expect([server.host, server.isServing]).toEqual([server.host, false]);
        for (const session of [undefined, sessions[i]]) {
          const late = new WireClient(stage.world, `late-${i}`, server, { session, readOnly: true });
          late.send(1, get('/'));
          await late.whenClosed();
          expect([late.connected, late.replies]).toEqual([null, []]);
        }
      }
      // The others have continued, without what the old leader had taken.
      const next = await stage.leader(...majority);
      expect(await stage.has(next, '/lost')).toBe(false);
      await stage.write(next, 3);
      stage.heal();
      await stage.whole();
      for (const server of stage.servers) expect(await stage.has(server, '/lost')).toBe(false);
      const back = new WireClient(stage.world, 'c0', other!, { session: sessions[0] });
      await back.whenAnswered();
      expect(back.hasSession).toBe(true);
      expect((await back.ask(1, create('/lost', CreateMode.ephemeral))).error).toBe(ErrorCode.ok);
    }));
});
