import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@meerkat/client';
import { afterAll, describe, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS, type ServerKind, type ServerOptions, ServerProcess } from '../harness/server-process.ts';
import { diagnose, faults } from './diagnosis.ts';

/* Why a server does not start, from its configuration and its log; and problems of running servers found in files. */

const directory = mkdtempSync(join(tmpdir(), 'doctor-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
let count = 0;

function place(): string {
  const path = join(directory, String(++count));
  mkdirSync(join(path, 'data'), { recursive: true });
  return path;
}

/** The output of a server that fails to start. */
async function lastWords(kind: ServerKind, options: ServerOptions): Promise<string> {
  const log = join(directory, `${++count}.log`);
  try {
    const server = await ServerProcess.start(kind, { ...options, logs: true });
    await server.dispose();
  } catch (error) {
    writeFileSync(log, String(error));
    return log;
  }
  throw new Error('the server has started, and must not');
}

const MEMBERS = {
  tickTime: 500,
  initLimit: 10,
  syncLimit: 5,
  'server.1': '127.0.0.1:1:2',
  'server.2': '127.0.0.1:3:4',
  'server.3': '127.0.0.1:5:6',
};

/** A data directory of a stopped server. */
async function used(kind: ServerKind): Promise<string> {
  const path = place();
  const server = await ServerProcess.start(kind, { directory: path });
  const client = await connect(`127.0.0.1:${server.port}`);
  for (let i = 0; i < 20; i++) await client.create(`/${i}`, 'x'.repeat(100));
  await client.close();
  await server.stop();
  return path;
}

function logOf(path: string): string {
  const version = join(path, 'data', 'version-2');
  return join(
    version,
    readdirSync(version)
      .filter((name) => name.startsWith('log.'))
      .sort()[0] ?? '',
  );
}

describeWith(['apache'], 'doctor reports why a server does not start', () => {
  describe.concurrent.each(SERVER_KINDS)('of %s', (kind) => {
    test('myid is missing', async ({ expect }) => {
      const path = place();
      const log = await lastWords(kind, { directory: path, config: MEMBERS });
      expect(await faults('--no-servers', '--log', log)).toEqual(['myid-missing']);
      expect(await faults('--no-servers', '--config', join(path, 'zoo.cfg'))).toContain('myid-missing');
    });

    test('its myid is not in the server list', async ({ expect }) => {
      const path = place();
      writeFileSync(join(path, 'data', 'myid'), '7');
      const log = await lastWords(kind, { directory: path, config: MEMBERS });
      expect(await faults('--no-servers', '--log', log)).toEqual(['myid-not-listed']);
      expect(await faults('--no-servers', '--config', join(path, 'zoo.cfg'))).toContain('myid-not-listed');
    });

    test('its configuration has an invalid value', async ({ expect }) => {
      const path = place();
      const log = await lastWords(kind, { directory: path, config: { tickTime: 'soon' } });
      expect(readFileSync(log, 'utf8')).toContain('exit code 2');
      expect(await faults('--no-servers', '--config', join(path, 'zoo.cfg'))).toEqual(['configuration-refused']);
    });

    test('another process uses its client port', async ({ expect }) => {
      const other = createServer();
      await once(other.listen(0, '127.0.0.1'), 'listening');
      const { port } = other.address() as { port: number };
      const log = await lastWords(kind, { directory: place(), config: { clientPort: port } });
      expect(await faults('--no-servers', '--log', log)).toEqual(['client-port-taken']);
      other.close();
    });

    test('its data directory is a file', async ({ expect }) => {
      const path = place();
      writeFileSync(join(path, 'file'), '');
      const log = await lastWords(kind, { directory: path, config: { dataDir: join(path, 'file') } });
      expect(await faults('--no-servers', '--log', log)).toEqual(['data-directory-unusable']);
    });

    test('a byte in the middle of its log has changed', async ({ expect }) => {
      const path = await used(kind);
      const log = readFileSync(logOf(path));
      log[600] = (log[600] ?? 0) ^ 0xff;
      writeFileSync(logOf(path), log);
      const words = await lastWords(kind, { directory: path });
      expect(await faults('--no-servers', '--log', words)).toEqual(['log-damaged']);
    });

    test('its snapshots are missing, but not its logs', async ({ expect }) => {
      const path = await used(kind);
      const version = join(path, 'data', 'version-2');
      for (const name of readdirSync(version)) if (name.startsWith('snapshot.')) rmSync(join(version, name));
      const log = await lastWords(kind, { directory: path });
      expect(await faults('--no-servers', '--log', log)).toEqual(['snapshot-missing']);
    });
  });

  test('latent problems found in files: low disk space, many snapshots, an even number of voters', async () => {
    const path = place();
    writeFileSync(join(path, 'data', 'myid'), '1');
    mkdirSync(join(path, 'data', 'version-2'));
    for (let i = 0; i < 11; i++) writeFileSync(join(path, 'data', 'version-2', `snapshot.${i}`), '');
    const lines = { dataDir: join(path, 'data'), clientPort: 2181, ...MEMBERS, 'server.4': '127.0.0.1:7:8' };
    const text = Object.entries(lines).map(([key, value]) => `${key}=${value}\n`);
    writeFileSync(join(path, 'zoo.cfg'), text.join(''));
    const { findings } = await diagnose('--no-servers', '--config', join(path, 'zoo.cfg'));
    const notes = findings.filter(({ isNote }) => isNote).map(({ fault }) => fault);
    expect(notes.sort()).toEqual(['purge-off', 'voters-even']);
  });
});
