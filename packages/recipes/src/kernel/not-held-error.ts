/**
 * An operation under a lock, lease or leadership was not performed, because it is no longer ours, or no longer certain
 * to be. Nothing has happened: the check of its znode was refused, or nothing was sent.
 */
export class NotHeldError extends Error {
  override readonly name = 'NotHeldError';
  /** The znode that represented the ownership. */
  readonly path: string;
  /** Its fencing token. */
  readonly token: bigint;
  /** What has ended it, or what was refused. */
  readonly why: string;

  constructor(path: string, token: bigint, why: string, options?: ErrorOptions) {
    super(`${path} is no longer held: ${why}`, options);
    this.path = path;
    this.token = token;
    this.why = why;
  }
}
