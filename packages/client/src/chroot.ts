import { describePathFault } from '@meerkat/protocol';
import { BadArgumentsError } from './errors.ts';

/*
 * A chroot is '' for none, or a valid path other than '/'. Paths of the user are relative to it and valid by
 * themselves; paths of the server are absolute.
 *
 *     chroot '/app':   user '/'  ◄─► server '/app'       user '/a' ◄─► server '/app/a'
 */

/** Parses the chroot of a connect string or an option. @throws BadArgumentsError when it is not a path */
export function parseChroot(text: string): string {
  if (text === '' || text === '/') return '';
  checkPath(text, 'chroot');
  return text;
}

/** The chroot of a client within a client. @throws BadArgumentsError for an illegal path */
export function nestChroot(chroot: string, path: string): string {
  checkPath(path, 'withChroot');
  return path === '/' ? chroot : chroot + path;
}

/** The server's path. @throws BadArgumentsError for an invalid path */
export function addChroot(chroot: string, path: string, operation: string): string {
  checkPath(path, operation);
  if (chroot === '') return path;
  return path === '/' ? chroot : chroot + path;
}

/**
 * The path for a sequential create: `/queue/` is valid there, and results in names that consist of the number alone.
 */
export function addChrootSequential(chroot: string, path: string, operation: string): string {
  if (typeof path !== 'string' || !path.endsWith('/')) return addChroot(chroot, path, operation);
  checkPath(`${path}0`, operation, path);
  return chroot + path;
}

/** The user's path. A path outside of the chroot is unchanged; see `isInChroot`. */
export function removeChroot(chroot: string, path: string): string {
  if (chroot === '' || !isInChroot(chroot, path)) return path;
  return path.length === chroot.length ? '/' : path.slice(chroot.length);
}

/** `/application` is not in the chroot `/app`. */
export function isInChroot(chroot: string, path: string): boolean {
  return path.startsWith(chroot) && (path.length === chroot.length || path.charCodeAt(chroot.length) === SLASH);
}

const SLASH = 0x2f;

function checkPath(path: string, operation: string, shown = path): void {
  // Callers without a compiler may pass undefined, too.
  const detail = typeof path === 'string' ? describePathFault(path) : `the path is ${typeof path}, not a string`;
  if (detail !== null) throw new BadArgumentsError({ operation, path: String(shown), detail });
}
