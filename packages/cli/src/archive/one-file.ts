import { InvocationFailure } from '../run/command-failure.ts';
import { namedFiles } from './named-files.ts';

/** The one snapshot that is named; of a directory the newest. */
export async function oneSnapshot(names: readonly string[], action: string): Promise<string> {
  const [name, ...more] = names;
  if (name === undefined || more.length > 0) throw new InvocationFailure(`snapshot ${action}: name one file`);
  const [newest] = (await namedFiles([name], 'snapshot')).toReversed();
  return newest ?? name;
}

/** Whether a znode is the top or below it. */
export function isBelow(path: string, top: string | undefined): boolean {
  return top === undefined || top === '/' || path === top || path.startsWith(`${top}/`);
}
