import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CertificateAuthority } from '@meerkat/server';
import { afterAll, expect, test } from 'vitest';
import { RunningCommand } from '../cli/harness.ts';
import { Ensemble, type Member } from '../ensemble/ensemble.ts';
import { describeWith } from '../harness/peers.ts';
import { withCode } from '../harness/preload.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';
import { at, diagnose, faults } from './diagnosis.ts';

/* Why there is no quorum: faults between servers, staged in sequence in an ensemble of three. */

const directory = mkdtempSync(join(tmpdir(), 'doctor-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
let count = 0;

/** Starts a server, waits until its log shows this fault, and returns all faults found in its log. */
async function untilLogShows(fault: string, { server }: Member): Promise<string[]> {
  const log = join(directory, `${++count}.log`);
  const before = server.output.length;
  server.launch();
  for (const sinceMs = Date.now(); ; ) {
    if (Date.now() - sinceMs > SHOWN_MS)
      throw new Error(`the log does not show ${fault}:\n${server.output.slice(before)}`);
    writeFileSync(log, server.output.slice(before));
    const found = await faults('--no-servers', '--log', log);
    if (found.includes(fault)) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const SHOWN_MS = 120_000;

const configOf = ({ server }: Member): string => join(server.directory, 'zoo.cfg');
const setId = ({ server }: Member, id: number): void => writeFileSync(join(server.dataDirectory, 'myid'), String(id));

describeWith(['apache'], 'doctor reports why there is no quorum', () => {
  test.each(SERVER_KINDS)('among servers of %s', async (kind) => {
    const ensemble = await Ensemble.start([{ kind }, { kind }, { kind }]);
    const [one, two, three] = ensemble.members as [Member, Member, Member];
    const ask = at(...ensemble.members.map(({ server }) => server));
    const files = ['--config', ...ensemble.members.map(configOf)];
    try {
      expect(await faults(...ask, ...files)).toEqual([]);

      // Two of three are down.
      await Promise.all([two.server.kill(), three.server.kill()]);
      await expect
        .poll(() => faults(...ask, '--no-sessions'))
        .toEqual(['not-serving', 'port-closed', 'voters-missing']);
      expect(await faults('--no-servers', ...files)).toEqual(['election-port-closed']);
      await one.server.kill();
      // The others are unreachable, according to the log of the remaining one.
      expect(await untilLogShows('election-port-closed', one)).toEqual(['election-port-closed']);
      await one.server.kill();

      // Another process uses the election port.
      const other = createServer();
      await once(other.listen(two.electionPort, '127.0.0.1'), 'listening');
      expect(await untilLogShows('quorum-port-taken', two)).toContain('quorum-port-taken');
      await two.server.kill();
      other.close();

      // Two servers have the same id, found in their files and, for ours, in their logs.
      setId(two, 1);
      expect(await faults('--no-servers', ...files)).toContain('myid-twice');
      setId(two, 2);

      // The server lists differ.
      three.server.reconfigure({ 'server.1': `127.0.0.1:${one.quorumPort}:1` });
      three.server.launch();
      await three.server.kill();
      expect(await faults('--no-servers', ...files)).toContain('members-differ');
      three.server.reconfigure({ 'server.1': `127.0.0.1:${one.quorumPort}:${one.electionPort}` });

      // A quorum is running but elects no leader: one uses TLS, the other does not.
      const authority = new CertificateAuthority();
      const keyStore = join(one.server.directory, 'key.pem');
      const trustStore = join(one.server.directory, 'trust.pem');
      writeFileSync(keyStore, authority.issue('one', { names: ['IP:127.0.0.1'] }).keyStore);
      writeFileSync(trustStore, authority.certificate);
      one.server.reconfigure({
        sslQuorum: true,
        serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
        'ssl.quorum.keyStore.location': keyStore,
        'ssl.quorum.keyStore.type': 'PEM',
        'ssl.quorum.trustStore.location': trustStore,
        'ssl.quorum.trustStore.type': 'PEM',
      });
      two.server.launch();
      expect(await untilLogShows('quorum-tls-differs', one)).toContain('quorum-tls-differs');
      await expect
        .poll(() => faults(...at(one.server, two.server), '--no-sessions', '--timeout', '1s'))
        .toEqual(['no-leader', 'not-serving']);
      await Promise.all([one.server.kill(), two.server.kill()]);
    } finally {
      await ensemble.dispose();
    }
  });

  test('a server has seen a later epoch', async () => {
    const ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'meerkat' }, { kind: 'meerkat' }]);
    const [, , three] = ensemble.members as [Member, Member, Member];
    try {
      await three.server.kill();
      await expect.poll(() => ensemble.leader()).toBeDefined();
      for (const name of ['acceptedEpoch', 'currentEpoch']) {
        writeFileSync(join(three.server.dataDirectory, 'version-2', name), '50');
      }
      expect(await untilLogShows('epoch-ahead', three)).toContain('epoch-ahead');
    } finally {
      await ensemble.dispose();
    }
  });

  test('servers of several kinds, versions and ensembles are distinguished', async () => {
    await using apache = await ServerProcess.start('apache');
    await using meerkat = await ServerProcess.start('meerkat');
    const { findings, exitCode } = await diagnose(...at(apache, meerkat));
    expect(findings.map(({ fault, isNote }) => [fault, isNote])).toEqual([
      ['ensembles-mixed', false],
      ['versions-differ', true],
    ]);
    expect(exitCode).toBe(1);
    const kind = 'meerkat';
    const [first, second] = await Promise.all([
      Ensemble.start([{ kind }, { kind }]),
      Ensemble.start([{ kind }, { kind }]),
    ]);
    const places = [...first.members, ...second.members].map(({ server }) => server);
    expect(await faults(...at(...places))).toEqual(['two-leaders']);
    await Promise.all([first.dispose(), second.dispose()]);
  });

  test('a read-only server is reported', async () => {
    const kind = 'apache';
    const env = { JAVA_TOOL_OPTIONS: '-Dreadonlymode.enabled=true' };
    const ensemble = await Ensemble.start([{ kind, env }, { kind: 'meerkat' }, { kind: 'meerkat' }]);
    const [one, two, three] = ensemble.members as [Member, Member, Member];
    try {
      await Promise.all([two.server.kill(), three.server.kill()]);
      await expect.poll(() => faults(...at(one.server), '--no-sessions'), { timeout: 120_000 }).toEqual(['read-only']);
    } finally {
      await ensemble.dispose();
    }
  });

  test('clocks differ', async () => {
    // The command runs with a wrong clock; it can only detect the difference.
    const patch = 'const now=Date.now;Date.now=()=>now()-90000';
    const env = withCode(patch);
    await using apache = await ServerProcess.start('apache', { hasAdmin: true });
    await using meerkat = await ServerProcess.start('meerkat', { hasAdmin: true });
    const ports = ['--http-port', `${apache.adminPort},${meerkat.adminPort}`, '--no-sessions', '-o', 'fields'];
    const args = ['doctor', ...at(apache, meerkat), ...ports, '--timeout', '60s'];
    const startMs = performance.now();
    const { stdout } = await new RunningCommand(args, { env }, false).ended;
    // Besides rounding, half of the time that an answer takes is the error.
    const errorSeconds = 2 + (performance.now() - startMs) / 2000;
    const lines = stdout.split('\n').filter((line) => line.startsWith('clocks-differ'));
    expect(lines.map((line) => line.split('\t')[2])).toEqual([`127.0.0.1:${apache.port}`, `127.0.0.1:${meerkat.port}`]);
    for (const line of lines) {
      const seconds = Number(/its clock is (\d+) s ahead of/.exec(line)?.[1]);
      expect(Math.abs(seconds - 90), line).toBeLessThanOrEqual(errorSeconds);
    }
  });
});
