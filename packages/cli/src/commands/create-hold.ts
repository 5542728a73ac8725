import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Client } from '@meerkat/client';
import { CommandFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';

/** How long a command may take to end after its session is lost. Milliseconds. */
const GRACE_MS = 5000;

/**
 * Keeps the session, and with it an ephemeral znode, until it is told to stop or a command ends.
 *
 * @param line run by sh, with MEERKAT_PATH in its environment; null: until the signal
 * @returns the exit code of the command
 * @throws CommandFailure when the session is lost: the znode has gone or will go, and the command is ended
 */
export async function holdZnode(context: Context, client: Client, path: string, line: string | null): Promise<number> {
  const { lostSignal } = client;
  if (line === null) {
    context.note(`${path} stays until Ctrl-C`);
    await Promise.race([aborted(context.signal), aborted(lostSignal)]);
    if (context.signal.aborted) return CommandExit.ok;
    throw lost(path, 'is gone');
  }
  const child = spawn('/bin/sh', ['-c', line], { stdio: 'inherit', env: { ...process.env, MEERKAT_PATH: path } });
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', (error) =>
      reject(new CommandFailure(CommandExit.file, `cannot run sh: ${error.message}`, error)),
    );
    child.once('exit', (code, name) => resolve(code ?? 128 + (constants.signals[name ?? 'SIGKILL'] ?? 0)));
  });
  const first = await Promise.race([ended, aborted(context.signal), aborted(lostSignal)]);
  if (typeof first === 'number') return first;
  if (context.signal.aborted) {
    // Ctrl-C of a terminal has reached it already. It takes the time it needs; a second one ends this process.
    if (context.io.stdin.isTTY !== true) child.kill('SIGTERM');
    return ended;
  }
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
  await ended;
  clearTimeout(timer);
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
