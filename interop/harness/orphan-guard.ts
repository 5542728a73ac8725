import { spawn } from 'node:child_process';

/**
 * Sees to it that a started process does not outlive the test run, however that ends: a worker that is killed runs no
 * clean-up of its own.
 *
 * A small shell waits for the end of its standard input, which is a pipe held by this process. When the pipe breaks, it
 * kills the process and deletes the directory.
 *
 * @param directory what to delete then, null for nothing
 * @returns to be called once the process has ended by itself
 */
export function guardOrphan(pid: number | undefined, directory: string | null): () => void {
  // Without a number it did not start.
  if (pid === undefined) return () => undefined;
  const script = 'cat > /dev/null; kill -9 "$0" 2> /dev/null; [ -z "$1" ] || rm -rf -- "$1"';
  // Its own process group: what is sent to the group of the tests shall not end the guard first.
  const guard = spawn('/bin/sh', ['-c', script, String(pid), directory ?? ''], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  guard.unref();
  return () => guard.kill('SIGKILL');
}
