/** How the process ends (ZooKeeper's ExitCode). */
export const ExitCode = {
  ok: 0,
  /** Whatever has no code of its own, a port in use among it. */
  unexpected: 1,
  /** The command line or the configuration cannot be used. */
  invocation: 2,
  /** A data directory cannot be used: not writable, held by another server, damaged. */
  dataDirectory: 3,
} as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** A server cannot start or go on: in words for whoever runs it, and as the code that its process ends with. */
export class ServerError extends Error {
  override readonly name = 'ServerError';
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
  }
}
