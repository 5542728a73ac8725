import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fill } from '../data-directory/workload.ts';
import { makeArchive } from './java.ts';
import { freePort, ServerProcess } from './server-process.ts';

/** Makes the archive that Apache's servers take their classes from, where there is none yet. */
export function archiveApache(): Promise<void> {
  return makeArchive(runApache);
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
