import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { InvocationFailure } from '../run/command-failure.ts';

export type FileKind = 'log' | 'snapshot';

const NAMES: Readonly<Record<FileKind, RegExp>> = {
  log: /^log\.([0-9a-f]{1,16})$/,
  snapshot: /^snapshot\.([0-9a-f]{1,16})(?:\.gz|\.snappy)?$/,
};

/**
 * The files that a command line names: each as it is, and of a directory, or the `version-2` in it, all of the kind, oldest
 * first.
 *
 * @throws InvocationFailure when a directory has none
 */
export async function namedFiles(names: readonly string[], kind: FileKind): Promise<readonly string[]> {
  const found: string[] = [];
  for (const name of names) {
    if (!(await isDirectory(name))) {
      found.push(name);
      continue;
    }
    const below = join(name, 'version-2');
    const directory = (await isDirectory(below)) ? below : name;
    const files = (await readdir(directory))
      .flatMap((file) => {
        const digits = NAMES[kind].exec(file)?.[1];
        return digits === undefined ? [] : [{ file, zxid: BigInt(`0x${digits}`) }];
      })
      .toSorted((a, b) => (a.zxid < b.zxid ? -1 : a.zxid > b.zxid ? 1 : 0));
    if (files.length === 0) {
      throw new InvocationFailure(
        `${directory} has no ${kind}.<zxid>: name files, or the dataDir or dataLogDir of a server`,
      );
    }
    found.push(...files.map(({ file }) => join(directory, file)));
  }
  return found;
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
