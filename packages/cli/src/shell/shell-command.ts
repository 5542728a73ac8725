import type { Client } from '@meerkat/client';
import type { Command } from 'commander';
import type { Service } from '../connection/location.ts';
import type { CommandHost } from '../run/command.ts';
import type { CommonWords } from '../run/common-words.ts';
import type { Io } from '../run/io.ts';
import type { ShellSession } from './shell-session.ts';
import type { WatchList } from './watch-list.ts';

/** What `help` says of a command of the shell, and where it is. */
export interface ShellCatalogEntry {
  readonly name: string;
  /** One line, beginning with a verb. */
  readonly summary: string;
  readonly group: string;
  readonly load: () => Promise<DefineShellCommand>;
}

/** A command that only the shell has. Its action does nothing but `host.run(…)`, like that of all commands. */
export type DefineShellCommand = (command: Command, host: ShellCommandHost) => void;

/** Where a line of the shell is run. */
export interface ShellCommandHost extends CommandHost {
  readonly isShell: true;
  readonly shell: ShellState;
}

/** The shell, as its commands see it. */
export interface ShellState {
  readonly io: Io;
  /** The options that the shell was started with. */
  readonly words: CommonWords;
  /** What can be typed. */
  readonly commands: ShellCommands;
  readonly session: ShellSession;
  readonly watches: WatchList;
  /** Lines of this shell, from number 0 on, as `history` and `redo` count them. */
  readonly lines: string[];
  readonly currentPath: string;
  readonly previousPath: string;
  /** `quit` was typed. */
  isLeaving: boolean;
  /** Called at every change of the connection, the current znode or the session: the prompt may be another. */
  readonly onChange: () => void;
  /**
   * @param prefix of messages on standard error, which says where the line is
   * @returns the exit code of the command
   */
  run(words: readonly string[], prefix: string, signal: AbortSignal): Promise<number>;
  /** Goes to a znode, which is there. */
  goTo(path: string): void;
  /** The session with a service that a location names: kept until the shell ends. */
  otherSession(service: Service, signal: AbortSignal): Promise<Client>;
}

export interface ShellCommands {
  /** In the order of the help. */
  readonly entries: readonly ShellCatalogEntry[];
  /** Of the help, in its order. */
  readonly groups: readonly string[];
  find(name: string): ShellCatalogEntry | null;
  /** The message for an unknown name: zkCli's text, and similar names. */
  describeUnknown(name: string): string;
}
