import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Ends a command whose parent was killed: after kill -9 no other process does.
 *
 * A shell reads from a pipe that this process holds open. Its first line names the target; the end of the pipe without the
 * line "done" means that this process is gone: SIGTERM then, and SIGKILL after a while. It has a session of its own, so that
 * nothing which is sent to the group of this process or to its terminal reaches it.
 *
 *     this process ──"-4711"──────"done"──► sh: leaves in peace
 *     this process ──"-4711"──✗             sh: kill -TERM -4711; sleep; kill -KILL -4711
 */
export class OrphanGuard {
  readonly #shell: ChildProcess;

  /** @param graceMs between SIGTERM and SIGKILL */
  constructor(graceMs: number) {
    this.#shell = spawn('/bin/sh', ['-c', SCRIPT, 'guard', (graceMs / 1000).toFixed(3)], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    // Without a shell there is no guard, and the command runs all the same.
    this.#shell.on('error', () => {});
    this.#shell.stdin?.on('error', () => {});
    this.#shell.unref();
  }

  /** @param target a process, or the negative of a group */
  watch(target: number): void {
    this.#shell.stdin?.write(`${target}\n`);
  }

  release(): void {
    this.#shell.stdin?.end('done\n');
  }
}

const SCRIPT = `
target=
while read -r line; do
  case $line in
    done) exit 0 ;;
    *) target=$line ;;
  esac
done
[ -n "$target" ] || exit 0
kill -s TERM -- "$target" || exit 0
sleep "$1"
kill -s KILL -- "$target"
`;
