import type { Target } from '../machine/ports.ts';

/** One request, for subscribers of `requestChannel`: the same object from start to end. */
export interface RequestTrace {
  /** The method of the client. */
  readonly operation: string;
  /** The user's path, without the chroot; null when the operation has none. */
  readonly path: string | null;
  /** The server of the connection, at the start and again at the end; null while there is none. */
  server: Target | null;
  /** At the end: the largest zxid that the session has seen; the reply shows no change that is newer. */
  zxid: bigint | null;
  /** At the end, if it succeeded. */
  result?: unknown;
  /** At the end, if it failed: a ZooKeeperError. */
  error?: unknown;
}
