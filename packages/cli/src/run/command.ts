import { styleText } from 'node:util';
import type { Command } from 'commander';
import type { Context } from './context.ts';

/** What `meerkat --help` says of a command, and where it is. */
export interface CatalogEntry {
  readonly name: string;
  /** One line, beginning with a verb. */
  readonly summary: string;
  readonly group: CommandGroup;
  /** Run by programs, not by people: no help names it, and the shell has it not. Default false. */
  readonly isHidden?: boolean;
  /** The code of a command is loaded when it is run. */
  readonly load: () => Promise<DefineCommand>;
}

/** In the order of the help. */
export const COMMAND_GROUPS = ['Data:', 'Script:', 'Shell:', 'Monitor:', 'Files:', 'Servers:', 'Others:'] as const;
export type CommandGroup = (typeof COMMAND_GROUPS)[number];

/** Where a command is run: `run` makes the context, reports failures and closes sessions. */
export interface CommandHost {
  /** Whether it becomes a line of the shell, where -w leaves watches behind. */
  readonly isShell: boolean;
  /** All commands of the program. */
  readonly catalog: readonly CatalogEntry[];
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
