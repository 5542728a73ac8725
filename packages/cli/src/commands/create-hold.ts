import type { Client } from '@meerkat/client';
import { ChildCommand } from '../child/child-command.ts';
import { takeSignals } from '../child/signals.ts';
import { CommandFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';

/** How long a command may take to end after its session is lost. Milliseconds. */
const KILL_AFTER_MS = 2000;

/**
 * Keeps the session, and with it an ephemeral znode, until a signal or the end of a command.
 *
 * @param line run by sh, with MEERKAT_PATH in its environment; null: until the signal
 * @returns the exit code of the command
 * @throws CommandFailure when the session is lost: the znode is or will be deleted, and the command is ended
 */
export async function holdZnode(context: Context, client: Client, path: string, line: string | null): Promise<number> {
  if (line !== null) return runMeanwhile(context, client, path, line);
  context.note(`${path} stays until Ctrl-C`);
  const { lostSignal } = client;
  await Promise.race([aborted(context.signal), aborted(lostSignal)]);
  if (context.signal.aborted) return CommandExit.ok;
  throw lost(path, 'is gone');
}

/** Signals are passed to the command, and its exit code is returned. */
async function runMeanwhile({ signal }: Context, { lostSignal }: Client, path: string, line: string): Promise<number> {
  let child: ChildCommand | null = null;
  using _ = takeSignals((name) => {
    // The terminal has sent it to the command already.
    if (child?.isOnTerminal === true && (name === 'SIGINT' || name === 'SIGQUIT')) return;
    child?.signal(name);
  });
  if (signal.aborted) throw new DOMException('interrupted before the command began', 'AbortError');
  child = new ChildCommand(['/bin/sh', '-c', line], { MEERKAT_PATH: path }, KILL_AFTER_MS);
  const ended = await Promise.race([child.ended, aborted(lostSignal)]);
  if (ended !== null) {
    if (ended.fault !== null) throw new CommandFailure(CommandExit.file, ended.fault);
    return ended.exitCode;
  }
  child.signal('SIGTERM');
  const timer = setTimeout(() => child.signal('SIGKILL'), KILL_AFTER_MS);
  await child.ended;
  clearTimeout(timer);
  // Processes that the command has started may have outlived it.
  child.signal('SIGKILL');
  throw lost(path, 'is gone, and the command was ended');
}

function aborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    else signal.addEventListener('abort', () => resolve(null), { once: true });
  });
}

function lost(path: string, consequence: string): CommandFailure {
  return new CommandFailure(CommandExit.sessionLost, `the session was lost, so the ephemeral ${path} ${consequence}`);
}
