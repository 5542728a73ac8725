import { styleText } from 'node:util';
import type { Command } from 'commander';
import type { Context } from './context.ts';

/** Where a command is run: `run` makes the context, tells failures and closes sessions. */
export interface CommandHost {
  /** Whether it becomes a line of the shell, where -w leaves watches behind. */
  readonly isShell: boolean;
  /** @param work returns the exit code */
  run(work: (context: Context) => Promise<number>, options?: RunOptions): Promise<void>;
}

export interface RunOptions {
  /** The work takes Ctrl-C itself: it does not end the run. Default false. */
  readonly takesSigint?: boolean;
}

/**
 * A command: gives `command`, which has its name and summary already, its arguments, options, examples and action. The
 * action does nothing but `host.run(…)`.
 */
export type DefineCommand = (command: Command, host: CommandHost) => void;

/** The examples at the end of a command's help: what to type, and what it does. */
export function examples(lines: readonly (readonly [command: string, meaning: string])[]): string {
  const width = Math.max(...lines.map(([command]) => command.length));
  return `\n${styleText('bold', 'Examples:')}\n${lines.map(([command, meaning]) => `  ${command.padEnd(width)}  ${meaning}`).join('\n')}`;
}
