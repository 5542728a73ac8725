import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { OrphanGuard } from './orphan-guard.ts';

/** How a command ended. */
export interface ChildEnd {
  /** As a shell tells it: 128 + the number of the signal that ended it; 127 when there is no such program, 126 when it cannot be run. */
  readonly exitCode: number;
  /** Why it could not be started; null when it was. */
  readonly fault: string | null;
}

/**
 * A command that runs as a child, with the terminal, the input and the output of this process.
 *
 * Unless a person types its input it leads a process group of its own, so that what is sent to it reaches everything that
 * it has started. On a terminal it stays in the group of this process, which is what lets it read the keyboard; then
 * Ctrl-C reaches it without our help, and other signals reach it alone.
 */
export class ChildCommand {
  readonly ended: Promise<ChildEnd>;
  /** Ctrl-C and Ctrl-\ come to it from the terminal as they come to us. */
  readonly isOnTerminal: boolean;
  readonly #child: ChildProcess;
  readonly #guard: OrphanGuard;

  /**
   * @param env added to the environment
   * @param orphanMs what it is given to end, should this process be killed
   */
  constructor(words: readonly string[], env: Readonly<Record<string, string>>, orphanMs: number) {
    const [program = '', ...args] = words;
    this.isOnTerminal = isatty(0);
    this.#guard = new OrphanGuard(orphanMs);
    this.#child = spawn(program, args, {
      stdio: 'inherit',
      env: { ...process.env, ...env },
      detached: !this.isOnTerminal,
    });
    const { pid } = this.#child;
    if (pid !== undefined) this.#guard.watch(this.isOnTerminal ? pid : -pid);
    this.ended = new Promise((resolve) => {
      const end = (exitCode: number, fault: string | null): void => {
        this.#guard.release();
        resolve({ exitCode, fault });
      };
      this.#child.once('error', (error) => {
        if (this.#child.pid === undefined) end(isMissing(error) ? 127 : 126, describeFault(program, error));
      });
      this.#child.once('exit', (code, signal) =>
        end(code ?? 128 + (constants.signals[signal ?? 'SIGKILL'] ?? 0), null),
      );
    });
  }

  /** To the whole group, where it has one of its own. */
  signal(name: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    if (this.isOnTerminal) this.#child.kill(name);
    else signalGroup(pid, name);
  }
}

/** Nobody in the group is left: nothing to do. */
function signalGroup(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(-pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function isMissing(error: Error): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

function describeFault(program: string, error: Error): string {
  if (isMissing(error))
    return `cannot run "${program}": there is no such program; a line for a shell is run by sh -c '…'`;
  return `cannot run "${program}": ${error.message}`;
}
