import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@meerkat/client';
import { CertificateAuthority } from '@meerkat/server';
import { afterAll, expect, test } from 'vitest';
import { Ensemble } from '../ensemble/ensemble.ts';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';
import { type Ended, RunningCommand } from './harness.ts';

/* The monitoring commands with TLS and in ensembles; see monitoring.test.ts for the rest. */

const directory = mkdtempSync(join(tmpdir(), 'monitoring-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const run = (...args: string[]): Promise<Ended> => new RunningCommand(args, {}, false).ended;

describeWith(['apache'], 'the monitoring commands', () => {
  test.each(SERVER_KINDS)('use TLS with a server of %s that requires a certificate', async (kind) => {
    const authority = new CertificateAuthority();
    const trustStorePath = file(`${kind}-ca.pem`, authority.certificate);
    const keyStorePath = file(`${kind}.pem`, authority.issue('zk', { names: ['IP:127.0.0.1'] }).keyStore);
    const { certificate, key } = authority.issue('ann');
    const words = ['--tls-ca', trustStorePath, '--tls-cert', file(`${kind}-ann.pem`, certificate)];
    words.push('--tls-key', file(`${kind}-ann.key`, key));
    await using server = await ServerProcess.start(kind, { tls: { keyStorePath, trustStorePath } });
    const here = ['--server', `127.0.0.1:${server.securePort}`, ...words];
    const tls = { ca: authority.certificate, cert: certificate, key };
    const client = await connect(`127.0.0.1:${server.securePort}`, { tls });
    const session = `0x${client.session?.id.toString(16)}`;
    await client.create('/e', '', { mode: 'ephemeral' });
    await client.get('/e', { watch: true });

    const status = await run('status', ...here, '-o', 'json');
    expect(JSON.parse(status.stdout), status.stderr).toMatchObject([{ role: 'standalone', problem: null }]);
    // On a busy machine the first requests are so slow that `health` would report them.
    expect(await run('4lw', 'srst', ...here)).toMatchObject({ exitCode: 0 });
    expect(await run('health', ...here)).toMatchObject({ exitCode: 0 });
    expect(JSON.parse((await run('sessions', ...here, '-o', 'json')).stdout)).toMatchObject([{ session }]);
    expect((await run('ephemerals', ...here, '-o', 'fields')).stdout).toBe(`/e\t${session}\n`);
    expect(JSON.parse((await run('watches', ...here, '-o', 'json')).stdout)).toMatchObject([{ path: '/e', session }]);
    expect((await run('4lw', 'ruok', ...here)).stdout).toBe('imok\n');
    expect((await run('top', '--count', '1', ...here)).stdout).toMatch(/^1 of 1 servers serve/);
    await client.close();
  });

  test('report roles, sessions and health of a mixed ensemble, also after failures', async () => {
    const ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'apache' }, { kind: 'meerkat' }]);
    try {
      const here = ['--server', ensemble.connectString, '-o', 'json'];
      const states = JSON.parse((await run('status', ...here)).stdout) as { role: string; version: string }[];
      expect(states.map(({ role }) => role).sort()).toEqual(['follower', 'follower', 'leader']);
      expect(states.map(({ version }) => version.includes('meerkat'))).toEqual([true, false, true]);
      expect(await run('health', ...here)).toMatchObject({ exitCode: 0 });
      const clients = await Promise.all(ensemble.members.map(({ server }) => connect(`127.0.0.1:${server.port}`)));
      const sessions = JSON.parse((await run('sessions', ...here)).stdout) as { session: string; server: string }[];
      const expected = clients.map((client, i) => {
        const { port } = ensemble.members[i]!.server;
        return [`0x${BigInt.asUintN(64, client.session?.id ?? 0n).toString(16)}`, `127.0.0.1:${port}`];
      });
      const found = new Map(sessions.map(({ session, server }) => [session, server]));
      expect(expected.map(([session = '']) => [session, found.get(session)])).toEqual(expected);
      await Promise.all(clients.map((client) => client.close()));
      await ensemble.members[1]?.server.kill();
      const half = await run('health', ...here);
      expect(half.exitCode).toBe(1);
      expect(half.stdout).toContain('nothing listens there');
    } finally {
      await ensemble.dispose();
    }
  });
});
