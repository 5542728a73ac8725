import { DiskError } from '@meerkat/core';
import type { Configuration } from './config/options.ts';
import { ExitCode, ServerError } from './exit-codes.ts';
import { HeldError } from './node/hold.ts';

/** Why a port cannot be opened, and what to do. @param key of zoo.cfg that names the port */
export function describeListenError(error: unknown, key: string, host: string | null, port: number): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const place = `${host === null ? 'port' : `${host.includes(':') ? `[${host}]` : host}:`}${host === null ? ' ' : ''}${port}`;
  switch (code) {
    case 'EADDRINUSE':
      return `cannot listen on ${place}: it is in use; stop the program that listens there, or set another ${key}`;
    case 'EACCES':
      return `cannot listen on ${place}: permission denied; ports below 1024 are for root, set another ${key}`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `cannot listen on ${place}: ${host} is no address of this machine; correct ${key}Address`;
    default:
      return `cannot listen on ${place}: ${message}`;
  }
}

/** What ends a server, with its exit code and what to do. @param starting null once it serves */
export function describeFailure(error: unknown, starting: DataDirectories | null): ServerError {
  if (!(error instanceof Error)) return new ServerError(ExitCode.unexpected, String(error), error);
  // Once it serves, the storage itself says what to do.
  const hint = starting === null ? null : findHint(error, starting);
  const message = hint === null || error.message.includes(hint) ? error.message : `${error.message}; ${hint}`;
  // Until the server serves, all that can fail is its data directories; a mistake of ours has its own name.
  const isDirectory = starting !== null && error.name !== 'AssertionError' && error.name !== 'TypeError';
  return new ServerError(isDirectory ? ExitCode.dataDirectory : ExitCode.unexpected, message, error);
}

type DataDirectories = Pick<Configuration['server'], 'dataDirectory' | 'dataLogDirectory'>;

/** What to do about an error of the disk; null when there is no advice. */
function findHint(error: unknown, directories: DataDirectories): string | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (!(cause instanceof DiskError)) continue;
    const setting = settingOf(cause.path, directories);
    switch (cause.code) {
      case 'EBUSY':
        return cause.cause instanceof HeldError ? `the other one: ${cause.cause.holder}` : null;
      case 'EACCES':
      case 'EPERM':
        return `give the user that runs this server the right to write there, or set another ${setting}`;
      case 'EROFS':
        return `the file system is read-only: set another ${setting}`;
      case 'ENOTDIR':
      case 'EEXIST':
        return `a file is in the way: remove it, or set another ${setting}`;
      case 'ENOENT':
      case 'ELOOP':
        return `nothing can be created there, or a symbolic link leads nowhere: correct that, or set another ${setting}`;
      case 'ENOSPC':
      case 'EDQUOT':
        return 'the disk is full: make room, then start the server again';
      case 'EIO':
        return 'the device has failed: look at the log of the system before this server starts again';
      default:
        return null;
    }
  }
  return null;
}

/** The key of zoo.cfg that a path comes from. */
function settingOf(path: string, { dataDirectory, dataLogDirectory }: DataDirectories): string {
  const isLog = dataLogDirectory !== dataDirectory && path.startsWith(`${dataLogDirectory}/version-2`);
  return isLog ? 'dataLogDir' : 'dataDir';
}
