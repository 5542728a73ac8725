import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type FileSource, type LoggedTxn, readLogs } from '@meerkat/simulator';
import type { LogsOfServer } from './committed-log.ts';
import type { ServerFiles } from './server-files.ts';

/** Reads a server's current and removed logs from `behind` on. There must be no writes meanwhile. */
export function readLogsOfServer(
  { id, data, attic }: Pick<ServerFiles, 'id' | 'data' | 'attic'>,
  behind: number,
): LogsOfServer {
  const removedNames = namesIn(attic);
  return {
    id,
    txns: readLogs(new Directory(behind), data),
    removed: removedNames.flatMap((name) => readRemoved(attic, name, behind)),
    isWhole: behind === 0 && removedNames.length === 0,
  };
}

/** Deletes removed logs that have been checked. */
export function emptyAttic({ attic }: ServerFiles): void {
  for (const name of namesIn(attic)) rmSync(join(attic, name));
}

/** A directory without the logs that end before a given txn. */
class Directory implements FileSource {
  readonly #behind: number;

  constructor(behind: number) {
    this.#behind = behind;
  }

  names(directory: string): readonly string[] {
    const logs = namesIn(directory).filter((name) => LOG_NAME.test(name));
    const ordered = logs.sort((a, b) => zxidOf(a) - zxidOf(b));
    // A log ends where the next one begins.
    return ordered.filter((_, i) => {
      const next = ordered[i + 1];
      return next === undefined || zxidOf(next) > this.#behind;
    });
  }

  peek(path: string): Uint8Array {
    return readFileSync(path);
  }
}

/** Names of logs in the attic have a suffix, so that logs of different runs do not overwrite each other. */
function readRemoved(attic: string, name: string, behind: number): readonly LoggedTxn[] {
  const source: FileSource = {
    names: () => [name.split('-')[0] ?? name],
    peek: () => readFileSync(join(attic, name)),
  };
  return readLogs(source, attic).filter(({ zxid }) => zxid > behind);
}

const LOG_NAME = /^log\.[0-9a-f]+$/;

function zxidOf(name: string): number {
  return Number.parseInt(name.slice('log.'.length), 16);
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
