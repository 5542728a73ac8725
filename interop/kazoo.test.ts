import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ConsoleProcess } from './harness/console-process.ts';
import { describeWith, type Peer } from './harness/peers.ts';
import { Op, RawClient } from './harness/raw-client.ts';
import { record } from './harness/record-builder.ts';
import { SERVER_KINDS, ServerProcess } from './harness/server-process.ts';

const NODE_DELETED = 2;

for (const kind of SERVER_KINDS) {
  const peers: Peer[] = kind === 'apache' ? ['kazoo', 'apache'] : ['kazoo'];
  describeWith(peers, `the Python client kazoo (${kind})`, () => {
    let server: ServerProcess;

    beforeAll(async () => {
      // A short tick allows the short session of the test that kills its client.
      server = await ServerProcess.start(kind, { config: { tickTime: 500, maxSessionTimeout: 60_000 } });
    });
    afterAll(() => server.dispose());

    function start(script: string, ...args: string[]): ConsoleProcess {
      const path = fileURLToPath(new URL(`./kazoo/${script}.py`, import.meta.url));
      return new ConsoleProcess('/usr/bin/python3', [path, `127.0.0.1:${server.port}`, ...args]);
    }

    test.each([
      ['creates znodes in all its modes', 'create_modes'],
      ['runs transactions', 'transactions'],
      ['follows data and children with watches', 'watches'],
      ['authenticates and is held by access control lists', 'auth'],
    ])('%s', async (_, script) => {
      await using client = start(script);
      await client.waitFor(/done/);
      expect(await client.end()).toBe(0);
    });

    test('grants a lock to one process at a time', async () => {
      await using first = start('lock', 'first');
      await first.waitFor(/acquired/);
      await using second = start('lock', 'second');
      await second.waitFor(/waiting/);
      // The second one is queued before the first one releases.
      await waitForChildren(server.port, '/lock', 2);
      expect(second.output).not.toContain('acquired');
      first.send('release');
      await first.waitFor(/released/);
      await second.waitFor(/acquired/);
      second.send('release');
      await second.waitFor(/released/);
      expect(await first.end()).toBe(0);
      expect(await second.end()).toBe(0);
    });

    test('loses its ephemerals some time after it is killed', async () => {
      await using holder = start('ephemerals');
      await holder.waitFor(/holding/);
      const watching = await RawClient.connect(server.port);
      for (const n of [0, 1, 2]) {
        await watching.demand(Op.exists, record().ustring(`/held/${n}`).bool(true).build());
      }
      await holder.kill();
      // The watching session is kept alive while the other one expires.
      const pings = setInterval(() => void watching.ping().catch(() => undefined), 500);
      const events = await watching.waitForNotifications(3);
      clearInterval(pings);
      expect(events.map((event) => event.type)).toEqual([NODE_DELETED, NODE_DELETED, NODE_DELETED]);
      expect(events.map((event) => event.path).sort()).toEqual(['/held/0', '/held/1', '/held/2']);
      await watching.close();
    });

    test('resumes its session after a restart of the server', async () => {
      await using client = start('reconnect');
      await client.waitFor(/ready/);
      // A starting Apache server may never answer kazoo's connect request, and kazoo waits for that until its session
      // times out. So it is paused until the server is up; with ours it keeps trying.
      if (kind === 'apache') process.kill(client.pid, 'SIGSTOP');
      await server.stop();
      await server.restart();
      if (kind === 'apache') process.kill(client.pid, 'SIGCONT');
      client.send('go on');
      await client.waitFor(/done/);
      expect(client.output).not.toContain('lost');
      expect(await client.end()).toBe(0);
    });
  });
}

/** Waits with a watch until the znode has `count` children. */
async function waitForChildren(port: number, path: string, count: number): Promise<void> {
  const client = await RawClient.connect(port);
  for (let seen = 0; ; ) {
    const reply = await client.request(Op.getChildren, record().ustring(path).bool(true).build());
    if (reply.error === 0 && reply.body.readInt32BE(0) >= count) break;
    seen += 1;
    await client.waitForNotifications(seen);
  }
  await client.close();
}
