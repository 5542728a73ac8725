/**
 * - `missing`: a file or directory does not exist, or was removed meanwhile.
 * - `damaged`: a file is not what it should be.
 * - `unusable`: the files are intact, but do not contain what was asked for.
 * - `unreachable`: the server whose files they are does not answer, or refuses.
 * - `disk`: the system refuses to read or write.
 */
export type ArchiveFault = 'missing' | 'damaged' | 'unusable' | 'unreachable' | 'disk';

/** Why files of a server cannot be read, or used: which file, where in it, what was found, what to do. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';
  readonly fault: ArchiveFault;

  constructor(fault: ArchiveFault, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.fault = fault;
  }
}

/** @param attempt what was to be done: `cannot read /data/version-2/log.1` */
export function systemError(attempt: string, error: unknown): ArchiveError {
  if (error instanceof ArchiveError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const found = code === undefined ? message : (SYSTEM_ERRORS[code] ?? code);
  return new ArchiveError(code === 'ENOENT' ? 'missing' : 'disk', `${attempt}: ${found}`, error);
}

const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or directory',
  EACCES: 'the permissions of the file or its directory do not allow it',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of the path is no directory',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system can only be read',
  EDQUOT: 'the quota of this user on the disk is used up',
};
