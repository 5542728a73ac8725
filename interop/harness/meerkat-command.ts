import { env, execPath } from 'node:process';
import { fileURLToPath } from 'node:url';

const BUILT = fileURLToPath(new URL('../../packages/cli/bin/meerkat.js', import.meta.url));

/**
 * The command, as people start it: a program, and the words before its arguments.
 *
 * What has been built, by this Node.js; or the single executable that the variable MEERKAT_EXECUTABLE names, so that all tests of
 * the command can be run with it.
 */
export const MEERKAT_COMMAND: readonly [program: string, ...words: string[]] =
  env['MEERKAT_EXECUTABLE'] === undefined ? [execPath, BUILT] : [env['MEERKAT_EXECUTABLE']];

/** The same for a process with this environment: options of Node.js are taken by what has been built alone. */
export function meerkatCommand(environment: Readonly<Record<string, string>> = {}): typeof MEERKAT_COMMAND {
  return environment['NODE_OPTIONS'] === undefined ? MEERKAT_COMMAND : [execPath, BUILT];
}

/** The same for a shell. */
export const MEERKAT_IN_SHELL: string = MEERKAT_COMMAND.map((word) => `'${word}'`).join(' ');
