import { CommandExit } from './exit-code.ts';

/** A command cannot continue, for a reason of its own: what was attempted, what was found, what to do. */
export class CommandFailure extends Error {
  readonly exitCode: CommandExit;

  constructor(exitCode: CommandExit, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
  }
}

/** The command line, a profile or a file that it names asks for what cannot be. */
export class InvocationFailure extends CommandFailure {
  constructor(message: string, cause?: unknown) {
    super(CommandExit.invocation, message, cause);
  }
}

/** @param attempt what was to be done with the file: `cannot read the values of --file x.json` */
export function fileFailure(attempt: string, error: unknown): CommandFailure {
  const { code, message } = error as NodeJS.ErrnoException;
  const found = code === undefined ? message : (FILE_ERRORS[code] ?? message);
  return new CommandFailure(CommandExit.file, `${attempt}: ${found}`, error);
}

const FILE_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or directory',
  EACCES: 'the permissions of the file or its directory do not allow it',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of the path is no directory',
  EEXIST: 'it exists already',
  ENOSPC: 'the disk is full',
};
