import type { Io } from '../run/io.ts';

/** The value of a variable; one that is empty is not set. */
export function envValue(env: Io['env'], name: string): string | undefined {
  const value = env[name];
  return value === '' ? undefined : value;
}
