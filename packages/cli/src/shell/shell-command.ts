import type { Command } from 'commander';
import type { CommandHost } from '../run/command.ts';
import type { Shell } from './shell.ts';

/** Where a line of the shell is run. */
export interface ShellCommandHost extends CommandHost {
  readonly isShell: true;
  readonly shell: Shell;
}

/** A command that only the shell has. Its action does nothing but `host.run(…)`, like that of all commands. */
export type DefineShellCommand = (command: Command, host: ShellCommandHost) => void;
