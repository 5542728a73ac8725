import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a directory and its missing parents; one that exists is no error.
 *
 * Node's own `recursive` is not used: it retries forever where a directory cannot be created although its parent exists
 * (in `/proc`).
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
