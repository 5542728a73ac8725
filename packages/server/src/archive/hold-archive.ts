import { HeldError, type Hold, holdDirectory } from '../node/hold.ts';
import { ArchiveError, systemError } from './archive-error.ts';

/** Keeps servers, backups and repairs out of a directory. @throws ArchiveError with what is said about one that is in use */
export async function holdArchive(directory: string, inUse: string): Promise<Hold> {
  try {
    return await holdDirectory(directory);
  } catch (error) {
    if (error instanceof HeldError) throw new ArchiveError('unusable', `${inUse} (${error.holder})`, error);
    throw systemError(`cannot take ${directory} for this command alone`, error);
  }
}
