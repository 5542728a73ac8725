import { NoAuthError, NoNodeError } from '@meerkat/client';
import { CommandFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { explainFailure } from '../run/failure.ts';
import { reportFailure } from '../run/report-failure.ts';
import { pipelined } from './pipelined.ts';

/**
 * Reads znodes, many at once, and tells them in their order. When there are several, one that is missing, refused or not
 * what it is said to be is reported on standard error and the others continue, as cat(1) does with files.
 *
 * @returns how to end: as the first that failed says
 */
export async function eachZnode<T>(
  context: Context,
  paths: readonly string[],
  read: (path: string) => Promise<T>,
  onFound: (found: T) => Promise<void> | undefined,
): Promise<CommandExit> {
  let exitCode: CommandExit = CommandExit.ok;
  const attempt = async (path: string): Promise<Attempt<T>> => {
    try {
      return { found: await read(path) };
    } catch (error) {
      if (paths.length > 1 && isOfThisZnode(error)) return { error };
      throw error;
    }
  };
  for await (const result of pipelined(paths, attempt)) {
    if ('found' in result) {
      await onFound(result.found);
      continue;
    }
    await reportFailure(result.error, context.report, context.io);
    if (exitCode === CommandExit.ok) exitCode = explainFailure(result.error).exitCode;
  }
  return exitCode;
}

type Attempt<T> = { readonly found: T } | { readonly error: unknown };

/** Others would be the same for the next znode. */
function isOfThisZnode(error: unknown): boolean {
  return error instanceof NoNodeError || error instanceof NoAuthError || error instanceof CommandFailure;
}
