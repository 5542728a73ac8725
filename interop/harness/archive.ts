import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fill } from '../data-directory/workload.ts';
import { makeArchive } from './java.ts';
import { freePort, ServerProcess } from './server-process.ts';

/** Creates the class data archive of Apache's servers, unless it exists. */
export function archiveApache(): Promise<void> {
  return makeArchive(runApache);
}

/** Runs an Apache ensemble of one, so that it elects and leads, with every kind of request. */
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
