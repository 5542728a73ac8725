import type { Client } from '@meerkat/client';
import { CommandFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { expandGlob, hasWildcard } from './glob.ts';

/**
 * The paths that a command was given, in their order, patterns replaced by what they mean, each once. A path without
 * wildcards is not looked for: reading it shows that.
 *
 * @throws CommandFailure when a pattern means nothing that is there
 */
export async function expandPaths(
  context: Context,
  client: Client,
  texts: readonly string[],
): Promise<readonly string[]> {
  const paths = new Set<string>();
  for (const text of texts) {
    const path = withoutSlash(context.resolve(text));
    if (!hasWildcard(path)) {
      paths.add(path);
      continue;
    }
    const found = await expandGlob(client, path, context.call);
    if (found.length === 0) throw new CommandFailure(CommandExit.noNode, `there is no znode like ${path}`);
    for (const one of found) paths.add(one);
  }
  return [...paths];
}

/** `/app/` is /app: what completes the names of directories puts a slash behind them. */
function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** Whether a command was given one path without a pattern, so that it prints one item instead of a list. */
export function isOnePath(texts: readonly string[]): boolean {
  return texts.length === 1 && !hasWildcard(texts[0] ?? '');
}
