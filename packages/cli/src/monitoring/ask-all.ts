import { askWord, type MonitoredServer, NoAnswerError } from '@meerkat/console/monitoring';
import { CommandFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';

/**
 * What each server says to a word, read. A server that does not answer is noted; when none does, the command fails.
 */
export async function askAll<T>(
  context: Context,
  word: string,
  timeoutMs: number,
  parse: (server: string, text: string) => readonly T[],
): Promise<T[]> {
  const servers = await context.servers();
  const problems: string[] = [];
  const ask = async (server: MonitoredServer): Promise<readonly T[]> => {
    try {
      return parse(server.name, await askWord(server, word, timeoutMs, context.signal));
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      problems.push(error.message);
      return [];
    }
  };
  const found = await Promise.all(servers.map(ask));
  if (problems.length === servers.length) throw new CommandFailure(CommandExit.unreachable, problems.join('\n'));
  for (const problem of problems) context.note(`meerkat: ${problem}`);
  return found.flat();
}
