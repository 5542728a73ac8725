/**
 * What was to be done under a lock, lease or leadership was not done, because it is not ours any more, or not for certain.
 * Nothing has happened: a check of the znode that stands for it was refused, or nothing was sent.
 */
export class NotHeldError extends Error {
  override readonly name = 'NotHeldError';
  /** The znode that stood for it. */
  readonly path: string;
  /** Its fencing token. */
  readonly token: bigint;
  /** What has ended it, or what was refused. */
  readonly why: string;

  constructor(path: string, token: bigint, why: string, options?: ErrorOptions) {
    super(`${path} is not held any more: ${why}`, options);
    this.path = path;
    this.token = token;
    this.why = why;
  }
}
