import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants as fsConstants, statSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Writable } from 'node:stream';
import { isatty } from 'node:tty';
import { OrphanGuard } from './orphan-guard.ts';

/** How a command ended. */
export interface ChildEnd {
  /** As in a shell: 128 + the signal that ended it; 127 when there is no such program, 126 when it cannot be run. */
  readonly exitCode: number;
  /** Why it could not be started; null when it was. */
  readonly fault: string | null;
}

/** As shells exit. */
const NO_PROGRAM = 127;
const CANNOT_RUN = 126;

/**
 * Waits at a pipe before it becomes the command: no program begins before its guard knows whom to guard. Where this process
 * is killed in between, the pipe ends without a word, and nothing begins.
 */
const GATE = 'read -r _ <&3 || exit 125; exec 3<&-; exec "$@"';

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
  /** null when there is nothing to run. */
  readonly #child: ChildProcess | null;
  readonly #guard: OrphanGuard;

  /**
   * @param env added to the environment
   * @param orphanMs what it is given to end, should this process be killed
   */
  constructor(words: readonly string[], env: Readonly<Record<string, string>>, orphanMs: number) {
    const [program = ''] = words;
    this.isOnTerminal = isatty(0);
    this.#guard = new OrphanGuard(orphanMs);
    const fault = findFault(program, env['PATH'] ?? process.env['PATH'] ?? '');
    if (fault !== null) {
      this.#guard.release();
      this.#child = null;
      this.ended = Promise.resolve(fault);
      return;
    }
    const child = spawn('/bin/sh', ['-c', GATE, 'meerkat', ...words], {
      stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
      env: { ...process.env, ...env },
      detached: !this.isOnTerminal,
    });
    this.#child = child;
    this.ended = new Promise((resolve) => {
      const end = (exitCode: number, why: string | null): void => {
        this.#guard.release();
        resolve({ exitCode, fault: why });
      };
      child.once('error', (error) => {
        if (child.pid === undefined) end(CANNOT_RUN, `cannot run "${program}" by /bin/sh: ${error.message}`);
      });
      child.once('exit', (code, signal) => end(code ?? 128 + (constants.signals[signal ?? 'SIGKILL'] ?? 0), null));
    });
    if (child.pid === undefined) return;
    this.#guard.watch(this.isOnTerminal ? child.pid : -child.pid);
    const gate = child.stdio[3] as Writable;
    // It may have ended by a signal before.
    gate.on('error', () => {});
    gate.end('go\n');
  }

  /** To the whole group, where it has one of its own. */
  signal(name: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    if (this.isOnTerminal) this.#child?.kill(name);
    else signalGroup(pid, name);
  }
}

/** The group is empty: nothing to do. */
function signalGroup(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(-pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Why a program cannot be run; null when it can. */
function findFault(program: string, searchPath: string): ChildEnd | null {
  const places = program.includes('/')
    ? [program]
    : searchPath.split(delimiter).map((directory) => join(directory, program));
  const files = places.filter((place) => statSync(place, { throwIfNoEntry: false })?.isFile() === true);
  if (program === '' || files.length === 0) {
    const fault = `cannot run "${program}": there is no such program; a line for a shell is run by sh -c '…'`;
    return { exitCode: NO_PROGRAM, fault };
  }
  if (files.some(isExecutable)) return null;
  return { exitCode: CANNOT_RUN, fault: `cannot run "${program}": its permissions do not allow to execute it` };
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, fsConstants.X_OK);
    return true;
  } catch {
    return false;
  }
}
