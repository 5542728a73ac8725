import { close, fsync, mkdir, open, stat } from 'node:fs';
import { dirname } from 'node:path';

type Done = (error: NodeJS.ErrnoException | null) => void;

/**
 * Creates a directory and its missing parents, and makes their names durable; one that exists is no error.
 *
 * Node's own `recursive` is not used: it retries forever where a directory cannot be created although its parent exists
 * (in `/proc`).
 */
export function makeDirectory(path: string, done: Done): void {
  mkdir(path, (error) => {
    if (error === null) return syncNames(dirname(path), done);
    const parent = dirname(path);
    if (error.code !== 'ENOENT' || parent === path) return expectDirectory(path, error, done);
    makeDirectory(parent, (parentError) => {
      if (parentError !== null) return done(parentError);
      mkdir(path, (again) => {
        if (again === null) syncNames(parent, done);
        else expectDirectory(path, again, done);
      });
    });
  });
}

/** It may have been created concurrently; a link to a directory is accepted. */
function expectDirectory(path: string, cause: NodeJS.ErrnoException, done: Done): void {
  stat(path, (error, stats) => {
    if (error === null && stats.isDirectory()) return done(null);
    if (cause.code !== 'EEXIST') return done(cause);
    // A file in the way, or a link that leads nowhere.
    done(error ?? Object.assign(new Error(`${path} is not a directory`), { code: 'ENOTDIR' }));
  });
}

function syncNames(path: string, done: Done): void {
  open(path, 'r', (error, fd) => {
    // A parent that is writable but not readable cannot be opened to sync it.
    if (error !== null) return done(error.code === 'EACCES' ? null : error);
    fsync(fd, (syncError) => {
      // Some file systems cannot sync a directory and say EINVAL; they keep names in another way.
      close(fd, () => done(syncError?.code === 'EINVAL' ? null : syncError));
    });
  });
}
