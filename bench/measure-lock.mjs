// One measurement at a time on this machine: an exclusive flock on a file that other jobs may take as well.
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { start } from './processes.mjs';

const LOCK_FILE = process.env.LOCK ?? join(tmpdir(), 'measure.lock');

/** Runs `measure` while this process alone holds the lock. Without the program `flock`, runs it all the same. */
export async function locked(measure) {
  // flock(1) holds the lock for as long as its command, `cat`, waits for the end of its input.
  const holder = start('flock', [LOCK_FILE, 'sh', '-c', 'echo held; exec cat'], { stdio: ['pipe', 'pipe', 'ignore'] });
  const isMissing = await Promise.race([
    once(holder, 'error').then(() => true),
    once(holder.stdout, 'data').then(() => false),
  ]).catch(() => true);
  try {
    return await measure();
  } finally {
    if (!isMissing) holder.stdin.end();
  }
}
