import { open } from 'node:fs/promises';
import { systemError } from './archive-error.ts';

/** Makes the names in a directory durable. */
export async function syncDirectory(path: string): Promise<void> {
  try {
    const handle = await open(path, 'r');
    try {
      await handle.sync();
    } catch (error) {
      // Some file systems cannot sync a directory and say EINVAL; they keep names in another way.
      if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error;
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw systemError(`cannot sync the directory ${path}`, error);
  }
}
