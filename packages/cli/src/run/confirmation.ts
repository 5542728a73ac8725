import { createInterface } from 'node:readline';
import type { Context } from './context.ts';

/**
 * Asks whether to continue. Without a terminal the answer is yes.
 *
 * @param question says what will happen: `delete /app and 1,234 znodes below it?`
 * @returns false for everything but a yes
 * @throws AbortError when the command is interrupted
 */
export function confirm({ io, signal }: Pick<Context, 'io' | 'signal'>, question: string): Promise<boolean> {
  if (io.stdin.isTTY !== true || io.stderr.isTTY !== true) return Promise.resolve(true);
  return new Promise((resolve, reject) => {
    // The terminal edits the line and turns Ctrl-C into a signal, as everywhere else in a command.
    const lines = createInterface({ input: io.stdin, output: io.stderr, terminal: false });
    const interrupt = (): void => {
      // The question stands on a line of its own.
      io.stderr.write('\n');
      reject(new DOMException('interrupted at a question', 'AbortError'));
      lines.close();
    };
    signal.addEventListener('abort', interrupt);
    lines.on('close', () => {
      signal.removeEventListener('abort', interrupt);
      resolve(false);
    });
    lines.question(`${question} [y/N] `, (answer) => {
      resolve(/^y(es)?$/i.test(answer.trim()));
      lines.close();
    });
  });
}
