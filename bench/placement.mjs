// CPU affinity of processes (taskset of util-linux), for measurements with one request in flight: such a latency
// depends most on whether both ends of the connection share a CPU, which the scheduler would change between slices.
import { cpus } from 'node:os';
import { run } from './processes.mjs';

/**
 * Pins the server to the first CPU and every client to the second one, as if they were on separate machines.
 *
 * @returns false with a single CPU or without `taskset`
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

/** Lets all processes use every CPU again. */
export async function placeAnywhere(pids) {
  for (const pid of pids) await place(pid, `0-${cpus().length - 1}`).catch(() => {});
}

/** Pins all threads of the process. */
function place(pid, processors) {
  return run('taskset', ['-a', '-c', '-p', processors, String(pid)]);
}
