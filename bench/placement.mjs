// Which processors a process may use (taskset of util-linux), for measurements of one request in flight: whether the two
// ends of a connection share a processor decides more about such a time than either end does, and the scheduler would
// decide it anew for each slice.
import { cpus } from 'node:os';
import { run } from './processes.mjs';

/**
 * Keeps the server on the first processor and every client on the second one, as if each had a machine of its own.
 *
 * @returns whether they are: not on a machine of one processor, nor without `taskset`
 */
export async function placeApart(serverPid, clientPids) {
  if (cpus().length < 2) return false;
  try {
    await place(serverPid, '0');
    for (const pid of clientPids) await place(pid, '1');
    return true;
  } catch {
    return false;
  }
}

/** Lets all of them use every processor again. */
export async function placeAnywhere(pids) {
  for (const pid of pids) await place(pid, `0-${cpus().length - 1}`).catch(() => {});
}

/** All threads of the process. */
function place(pid, processors) {
  return run('taskset', ['-a', '-c', '-p', processors, String(pid)]);
}
