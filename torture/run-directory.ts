import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from './namespaces.ts';

const PREFIX = 'meerkat-torture';

/** Creates the directory of a run, named after its process. */
export function makeRunDirectory(): string {
  return mkdtempSync(join(tmpdir(), `${PREFIX}-${process.pid}-`));
}

/**
 * Kills the servers left by killed runs: a stopped (SIGSTOP) server does not notice the end of its run. Their files are
 * kept.
 */
export function endLeftServers(): void {
  // Only where a reused process id can be detected.
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
