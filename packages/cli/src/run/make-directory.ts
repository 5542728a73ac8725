import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a directory and those above it that are missing; one that exists is no error.
 *
 * In place of Node's own `recursive`: where a directory cannot be made although the one above it is there (in `/proc`),
 * that one tries again for ever.
 *
 * @throws Node's error
 */
export function makeDirectory(path: string, mode: number = 0o777): void {
  try {
    mkdirSync(path, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const parent = dirname(path);
    if (code === 'ENOENT' && parent !== path) {
      makeDirectory(parent, mode);
      mkdirSync(path, mode);
    } else if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
      throw error;
    }
  }
}
