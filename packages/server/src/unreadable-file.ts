import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { getegid, geteuid } from 'node:process';

/**
 * Why a file cannot be read, for people: of a lack of rights, whose the file is and who runs.
 *
 * @param path absolute
 * @param error of the attempt
 */
export function describeUnreadable(path: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'ENOENT':
      return 'there is no such file';
    case 'EISDIR':
      return 'it is a directory';
    case 'EACCES':
      return `permission denied: ${describeRights(path)}`;
    default:
      return message;
  }
}

/** Of the file, or of the directory on the way to it that keeps even that from being seen. */
function describeRights(path: string): string {
  const runs = geteuid === undefined ? 'another user' : `user ${geteuid()} and group ${getegid?.()}`;
  for (let at = path; ; at = dirname(at)) {
    try {
      const { uid, gid, mode } = statSync(at);
      const what = at === path ? 'it' : `the directory ${at}`;
      return `${what} is of user ${uid} and group ${gid} with mode ${(mode & 0o7777).toString(8)}, and this process runs as ${runs}`;
    } catch {
      if (dirname(at) === at) return `this process runs as ${runs}`;
    }
  }
}
