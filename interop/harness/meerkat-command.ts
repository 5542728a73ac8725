import { env, execPath } from 'node:process';
import { fileURLToPath } from 'node:url';

const BUILT = fileURLToPath(new URL('../../packages/cli/bin/meerkat.js', import.meta.url));

/**
 * The command line of `meerkat`: a program, and the words before its arguments.
 *
 * By default the build, run by this Node.js; or the single executable in the variable MEERKAT_EXECUTABLE, so that all
 * tests of the command can be run with it.
 */
export const MEERKAT_COMMAND: readonly [program: string, ...words: string[]] =
  env['MEERKAT_EXECUTABLE'] === undefined ? [execPath, BUILT] : [env['MEERKAT_EXECUTABLE']];

/** The same for a process with this environment: only the build accepts options of Node.js. */
export function meerkatCommand(environment: Readonly<Record<string, string>> = {}): typeof MEERKAT_COMMAND {
  return environment['NODE_OPTIONS'] === undefined ? MEERKAT_COMMAND : [execPath, BUILT];
}

/** The same for a shell. */
export const MEERKAT_IN_SHELL: string = MEERKAT_COMMAND.map((word) => `'${word}'`).join(' ');
