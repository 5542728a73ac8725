import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fill } from './data-directory/workload.ts';
import { makeArchive } from './harness/java.ts';
import { freePort, ServerProcess } from './harness/server-process.ts';

/** Builds the packages before tests that start the command `meerkat`; quick when nothing has changed. */
export default async function build(): Promise<void> {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the packages do not build, so nothing can be started:\n${stdout}${stderr}`);
  await makeArchive(runApache);
}

/** A server of Apache that is the whole ensemble, so that it elects and leads, and every kind of request. */
async function runApache(flags: readonly string[]): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'interop-archive-'));
  try {
    mkdirSync(join(directory, 'data'));
    writeFileSync(join(directory, 'data', 'myid'), '1');
    await using server = await ServerProcess.start('apache', {
      directory,
      env: { JAVA_TOOL_OPTIONS: flags.join(' ') },
      config: {
        'server.1': `127.0.0.1:${await freePort()}:${await freePort()}`,
        standaloneEnabled: false,
        initLimit: 20,
        syncLimit: 10,
      },
    });
    await fill(server.port, '/archive');
    await server.stop();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
