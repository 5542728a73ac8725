import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Io } from '../run/io.ts';

/**
 * The path of a file as people write it: `~/` is the home directory, also where no shell has seen the word.
 *
 * @param directory what a relative path is relative to
 */
export function filePath(text: string, directory: string, env: Io['env']): string {
  return text.startsWith('~/') ? join(homeDirectory(env), text.slice(2)) : resolve(directory, text);
}

export function homeDirectory(env: Io['env']): string {
  const home = env['HOME'];
  return home === undefined || home === '' ? homedir() : home;
}
