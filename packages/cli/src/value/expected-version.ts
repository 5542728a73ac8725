import { InvocationFailure } from '../run/command-failure.ts';

/**
 * The version that `--if-version` names. −1 stands for any, as in zkCli.
 *
 * @returns undefined for any
 */
export function parseVersion(text: string | undefined): number | undefined {
  if (text === undefined || text === '-1') return undefined;
  if (/^\d{1,10}$/.test(text) && Number(text) < 2 ** 31) return Number(text);
  throw new InvocationFailure(
    `--if-version: expected the version of a znode, a whole number ("stat"), found "${text}"`,
  );
}
