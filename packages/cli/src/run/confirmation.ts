import { createInterface } from 'node:readline/promises';
import type { Context } from './context.ts';

/**
 * Asks whether to go on, where there is somebody to ask: in a pipe nobody is, and the answer is yes.
 *
 * @param question says what will happen: `delete /app and 1,234 znodes below it?`
 * @returns false for everything but a yes
 */
export async function confirm({ io, signal }: Context, question: string): Promise<boolean> {
  if (io.stdin.isTTY !== true || io.stderr.isTTY !== true) return true;
  const lines = createInterface({ input: io.stdin, output: io.stderr });
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `, { signal })).trim());
  } finally {
    lines.close();
  }
}
