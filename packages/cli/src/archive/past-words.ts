import type { Command } from 'commander';
import type { CommandHost } from '../run/command.ts';
import type { Context } from '../run/context.ts';
import { addSourceOptions } from './source-words.ts';
import type { PastWords } from './words.ts';

/** What a command that only reads takes besides. */
export function addPastOptions(command: Command, host: CommandHost): void {
  if (host.isShell) return;
  command.option('--at <moment>', 'as it was behind this zxid (0x…) or at this time: of a running server, or of --dir');
  addSourceOptions(command);
}

/**
 * Runs a command that reads on the service as it was, if the words ask for that: `connect` gives a client of a service in this
 * process. Otherwise on the service of the run.
 */
export async function inPast<T>(
  context: Context,
  words: PastWords,
  work: (context: Context) => Promise<T>,
): Promise<T> {
  const { at, dir, logDir, admin } = words;
  if ([at, dir, logDir, admin].every((word) => word === undefined)) return work(context);
  return (await import('./past.ts')).workInPast(context, words, work);
}
