import { spawn } from 'node:child_process';

/**
 * Ensures that a started process does not outlive the test run, even if the worker is killed and cannot clean up.
 *
 * A small shell waits for the end of its standard input, which is a pipe held by this process. When the pipe breaks, it
 * kills the process and deletes the directory.
 *
 * @param directory to delete as well, or null
 * @returns a function to call once the process has exited
 */
export function guardOrphan(pid: number | undefined, directory: string | null): () => void {
  // Without a pid it did not start.
  if (pid === undefined) return () => undefined;
  const script = 'cat > /dev/null; kill -9 "$0" 2> /dev/null; [ -z "$1" ] || rm -rf -- "$1"';
  // In its own process group, so that a signal to the group of the tests does not end the guard first.
  const guard = spawn('/bin/sh', ['-c', script, String(pid), directory ?? ''], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  guard.unref();
  return () => guard.kill('SIGKILL');
}
