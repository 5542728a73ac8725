import { ArchiveError, type ArchiveFault } from '@meerkat/server/archive';
import { CommandFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';

const EXITS: Readonly<Record<ArchiveFault, CommandExit>> = {
  missing: CommandExit.file,
  damaged: CommandExit.file,
  unusable: CommandExit.file,
  disk: CommandExit.file,
  unreachable: CommandExit.unreachable,
};

/** Does something with files of servers; what is wrong with them ends the command with its exit code. */
export async function withArchive<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ArchiveError) throw new CommandFailure(EXITS[error.fault], error.message, error);
    throw error;
  }
}
