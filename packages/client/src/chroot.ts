import { describePathFault } from '@meerkat/protocol';
import { BadArgumentsError } from './errors.ts';

/*
 * A chroot is '' for none, or a legal path other than '/'. Paths that users see are relative to it and legal by
 * themselves; paths that servers see are absolute.
 *
 *     chroot '/app':   user '/'  ◄─► server '/app'       user '/a' ◄─► server '/app/a'
 */

/** Reads a chroot as a connect string or an option has it. @throws BadArgumentsError when it is no path */
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

/** The path that the server knows. @throws BadArgumentsError for a path that no znode can have */
export function addChroot(chroot: string, path: string, operation: string): string {
  checkPath(path, operation);
  if (chroot === '') return path;
  return path === '/' ? chroot : chroot + path;
}

/**
 * The path for a create whose name the server completes with a sequence number: `/queue/` is legal there, and gives
 * names that consist of the number alone.
 */
export function addChrootSequential(chroot: string, path: string, operation: string): string {
  if (typeof path !== 'string' || !path.endsWith('/')) return addChroot(chroot, path, operation);
  checkPath(`${path}0`, operation, path);
  return chroot + path;
}

/** The path that the user knows. What lies outside of the chroot stays as it is; see `isInChroot`. */
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
  // Callers without a compiler pass undefined, too.
  const detail = typeof path === 'string' ? describePathFault(path) : `the path is ${typeof path}, not a string`;
  if (detail !== null) throw new BadArgumentsError({ operation, path: String(shown), detail });
}
