import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type FileSource, type LoggedTxn, readLogs } from '@meerkat/simulator';
import type { LogsOfServer } from './committed-log.ts';
import type { ServerFiles } from './server-files.ts';

/** Reads what a server has logged and what it has removed, from `behind` on; there are no writes meanwhile. */
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

/** What was checked is not looked at again. */
export function emptyAttic({ attic }: ServerFiles): void {
  for (const name of namesIn(attic)) rmSync(join(attic, name));
}

/** Files of this machine, without the logs that end before a txn. */
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

/** A log in the attic has something behind its name, so that one of each life has its place. */
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
