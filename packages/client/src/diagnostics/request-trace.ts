import type { Target } from '../machine/ports.ts';

/** One request, as the subscribers of `requestChannel` see it: the same object from the start to the end. */
export interface RequestTrace {
  /** The method of the client. */
  readonly operation: string;
  /** As the user wrote it, without the chroot; null when the operation has none. */
  readonly path: string | null;
  /** The server of the connection, at the start and again at the end; null while there is none. */
  server: Target | null;
  /** At the end: the largest zxid that the session has seen, which no change that the reply shows is newer than. */
  zxid: bigint | null;
  /** At the end, if it succeeded. */
  result?: unknown;
  /** At the end, if it failed: a ZooKeeperError. */
  error?: unknown;
}
