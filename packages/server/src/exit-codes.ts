/** How the process ends (ZooKeeper's ExitCode). */
export const ExitCode = {
  ok: 0,
  /** All other errors, such as a port in use. */
  unexpected: 1,
  /** The command line or the configuration cannot be used. */
  invocation: 2,
  /** A data directory cannot be used: not writable, held by another server, damaged. */
  dataDirectory: 3,
} as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** A server failed, at the start or later: a message for the operator and the exit code of the process. */
export class ServerError extends Error {
  override readonly name = 'ServerError';
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
  }
}
