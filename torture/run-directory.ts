import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from './namespaces.ts';

const PREFIX = 'meerkat-torture';

/** Where everything of a run is: named after its process. */
export function makeRunDirectory(): string {
  return mkdtempSync(join(tmpdir(), `${PREFIX}-${process.pid}-`));
}

/**
 * Ends the servers of runs that were killed: a stopped one does not notice the end of its run. What they
 * have written stays.
 */
export function endLeftServers(): void {
  // Only where a process can be told from another one that has got its id.
  if (!existsSync('/proc/self/cmdline')) return;
  for (const name of readdirSync(tmpdir())) {
    const owner = new RegExp(`^${PREFIX}-(\\d+)-`).exec(name)?.[1];
    if (owner === undefined || isAlive(Number(owner))) continue;
    const directory = join(tmpdir(), name);
    for (const id of readdirSync(directory)) {
      const file = join(directory, id, 'pid');
      if (!existsSync(file)) continue;
      const pid = Number(readFileSync(file, 'utf8'));
      if (pid > 0 && commandOf(pid).includes(`${directory}/`)) process.kill(pid, 'SIGKILL');
      rmSync(file);
    }
  }
}

/** '' when there is no such process. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
