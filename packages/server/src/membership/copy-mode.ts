import { chmodSync, chownSync, statSync } from 'node:fs';

/**
 * Gives a new file, empty still, the owner and the permissions of the one that it is to replace: a zoo.cfg may have passwords.
 * A file system that knows none of this is no reason to keep an old membership.
 */
export function copyMode(source: string, target: string): void {
  const found = statSync(source, { throwIfNoEntry: false });
  if (found === undefined) return;
  for (const step of [() => chmodSync(target, found.mode & MODE_BITS), () => chownSync(target, found.uid, found.gid)]) {
    try {
      step();
    } catch {
      // Only root may give files away.
    }
  }
}

const MODE_BITS = 0o777;
