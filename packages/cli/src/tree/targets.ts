import type { Client } from '@meerkat/client';
import type { Context } from '../run/context.ts';
import { expandGlob, hasWildcard } from './glob.ts';
import { isSystemPath } from './protection.ts';

/** The targets of a command that changes znodes. */
export interface Targets {
  /** Absolute, each once, in the order of the words; of a pattern, parents first. */
  readonly paths: readonly string[];
  readonly hasPattern: boolean;
}

/**
 * The znodes that words name, patterns expanded. A pattern never means the service's own znodes: no user who writes
 * `/*` wants those.
 */
export async function findTargets(context: Context, client: Client, words: readonly string[]): Promise<Targets> {
  const paths = new Set<string>();
  for (const word of words) {
    const path = context.resolve(word);
    if (!hasWildcard(word)) {
      paths.add(path);
      continue;
    }
    const found = await expandGlob(client, path, context.call);
    for (const match of found) if (!isSystemPath(client, match)) paths.add(match);
  }
  return { paths: [...paths], hasPattern: words.some(hasWildcard) };
}

/** Without those that lie below another one. */
export function topmost(paths: readonly string[]): readonly string[] {
  const all = new Set(paths);
  return paths.filter((path) => {
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      if (all.has(path.slice(0, end))) return false;
    }
    return true;
  });
}
