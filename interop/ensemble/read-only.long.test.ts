import { fileURLToPath } from 'node:url';
import { type Client, connect } from '@meerkat/client';
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest';
import { ConsoleProcess } from '../harness/console-process.ts';
import { describeWith } from '../harness/peers.ts';
import { Op, RawClient } from '../harness/raw-client.ts';
import { record } from '../harness/record-builder.ts';
import type { ServerKind } from '../harness/server-process.ts';
import { Ensemble, type Member } from './ensemble.ts';

const KAZOO = fileURLToPath(new URL('../kazoo/read_only.py', import.meta.url));
const ZKCLI = '/usr/share/zookeeper/bin/zkCli.sh';
const OPTIONS = { canBeReadOnly: true, sessionTimeoutMs: 40_000, connectTimeoutMs: 60_000 };
const CLOSED = 'the server closed the connection instead of answering the connect request';

describeKind('meerkat');
describeKind('apache');

function describeKind(kind: ServerKind): void {
  // Without a quorum Apache's servers accept no new session unless local sessions are enabled.
  const sessions = kind === 'apache' ? { localSessionsEnabled: true, localSessionsUpgradingEnabled: true } : {};

  describeWith(['apache', 'kazoo', 'zkCli'], `a server without a quorum, ${kind}`, () => {
    let ensemble: Ensemble;
    let last: Member;
    /** Connected before the quorum was lost. */
    let old: Client;
    let plain: RawClient;
    let owner: RawClient;

    beforeAll(async () => {
      ensemble = await Ensemble.start([{ kind }, { kind }, { kind, hasAdmin: true }], {
        'readonlymode.enabled': true,
        ...sessions,
      });
      last = ensemble.members[2]!;
      old = await connect(ensemble.connectString, OPTIONS);
      await old.create('/read', 'before');
      // A global session, also with Apache's servers.
      owner = await RawClient.connect(last.server.port, { timeoutMs: 40_000 });
      await createEphemeral(owner, '/owned');
      plain = await RawClient.connect(last.server.port, { timeoutMs: 40_000 });
      for (const { server } of ensemble.members.slice(0, 2)) await server.kill();
      await until(async () => (await ensemble.modeOf(last)) === 'read-only');
    });
    afterAll(async () => {
      await old?.close();
      await ensemble?.dispose();
    });

    test('reports that it is read-only on every interface', async () => {
      onTestFailed(() => console.log(ensemble.logs));
      const { server } = last;
      expect(await server.fourLetterWord('isro')).toBe('ro');
      expect(await server.fourLetterWord('srvr')).toContain('Mode: read-only\n');
      expect(await server.fourLetterWord('mntr')).toContain('zk_server_state\tread-only\n');
      expect(await server.fourLetterWord('conf')).not.toContain('membership');
      expect(JSON.parse(await server.askAdmin('/commands/is_read_only'))).toMatchObject({ read_only: true });
      if (kind === 'meerkat') expect(await server.askAdmin('/readyz')).toContain('read-only');
    });

    test('closes the connection of a client that did not set the read-only flag', async () => {
      onTestFailed(() => console.log(ensemble.logs));
      const { port } = last.server;
      await expect(RawClient.connect(port, { readOnly: false })).rejects.toThrow(CLOSED);
      await expect(RawClient.connect(port, { readOnly: null })).rejects.toThrow(CLOSED);
    });

    test('refuses a session that has ephemerals; our server accepts one without, for reads', async () => {
      onTestFailed(() => console.log(ensemble.logs));
      const resume = ({ sessionId, password }: RawClient) =>
        RawClient.connect(last.server.port, { sessionId, password, readOnly: true });
      await expect(resume(owner)).rejects.toThrow(CLOSED);
      if (kind === 'apache') return;
      const resumed = await resume(plain);
      expect(resumed.sessionId).toBe(plain.sessionId);
      // This server cannot close it.
      expect((await resumed.request(Op.closeSession)).error).toBe(-119);
      await until(() => old.state === 'read-only');
      expect(old.session?.id).toBeDefined();
    });

    test('answers reads of ours, kazoo and zkCli.sh, refuses writes, and they move to where a quorum is', async () => {
      onTestFailed(() => console.log(ensemble.logs));
      const session = old.session?.id;
      await using client = await connect(`127.0.0.1:${last.server.port}`, OPTIONS);
      expect(client.state).toBe('read-only');
      expect(textOf((await client.get('/read')).data)).toBe('before');
      await expect(client.set('/read', 'x')).rejects.toMatchObject({ code: 'NOTREADONLY' });
      await expect(client.create('/new', 'x')).rejects.toMatchObject({ code: 'NOTREADONLY' });
      await expect(client.sync()).rejects.toMatchObject({ code: 'NOTREADONLY' });

      await using kazoo = new ConsoleProcess('/usr/bin/python3', [KAZOO, ensemble.connectString, '/read']);
      await kazoo.waitFor(/state CONNECTED_RO\nread before\nrefused\n/);
      await using shell = new ConsoleProcess(ZKCLI, ['-r', '-server', ensemble.connectString]);
      await shell.waitFor(/ConnectedReadOnly/);
      shell.send('get /read');
      await shell.waitFor(/^before$/m);
      shell.send('set /read x');
      await shell.waitFor(/Not a read-only call|NotReadOnly/i);

      await Promise.all(ensemble.members.slice(0, 2).map(({ server }) => server.restart()));
      await until(() => client.state === 'connected' && old.state === 'connected');
      // With Apache's servers it was local, and ended with its server.
      if (kind === 'meerkat') expect(old.session?.id).toBe(session);
      await client.set('/read', 'ours');
      kazoo.send('');
      await kazoo.waitFor(/state CONNECTED\n/);
      await shell.waitFor(/SyncConnected/);
      shell.send('set -s /read shell');
      await shell.waitFor(/dataVersion/);
      await old.sync();
      expect((await old.get('/read')).stat.version).toBe(3);
    });
  });
}

async function createEphemeral(client: RawClient, path: string): Promise<void> {
  const acl = (b: ReturnType<typeof record>) => b.int(1).int(31).ustring('world').ustring('anyone');
  await client.demand(
    Op.create,
    acl(record().ustring(path).buffer(Buffer.alloc(0)))
      .int(1)
      .build(),
  );
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
