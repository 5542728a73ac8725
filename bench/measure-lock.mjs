// One measurement at a time on this machine: an exclusive flock on a file that other jobs can lock too.
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { start } from './processes.mjs';

const LOCK_FILE = process.env.LOCK ?? join(tmpdir(), 'measure.lock');

/** Runs `measure` while holding the lock. Without the program `flock`, runs it unlocked. */
export async function locked(measure) {
  // flock(1) holds the lock until its command, `cat`, reaches the end of its input.
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
