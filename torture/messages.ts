/** Messages between a server and the torture process. Zxids are numbers, session ids and digests hex. */

/** Faults of a server's disk from now on. */
export type DiskFault =
  | { readonly kind: 'none' }
  /** Each completion is reported after a random delay of at most `maxMs` milliseconds. */
  | { readonly kind: 'slow'; readonly maxMs: number }
  /** No completion is reported until `none` or `slow`. */
  | { readonly kind: 'stall' }
  /** One effect fails, after `skip` effects that succeed. */
  | { readonly kind: 'error'; readonly skip: number; readonly takesPlace: boolean }
  /** Every effect that needs disk space fails. */
  | { readonly kind: 'full' };

export type ToServer =
  | { readonly kind: 'disk'; readonly trouble: DiskFault }
  /** Answered by an inspection. */
  | { readonly kind: 'inspect' };

/** Sent whenever it changes, a few times a second at most. */
export interface ServerStatus {
  readonly kind: 'status';
  readonly role: 'looking' | 'leading' | 'following' | 'observing';
  readonly isServing: boolean;
  readonly leader: number | null;
  /** Version and participants of the membership in force at this server. */
  readonly membershipVersion: number;
  readonly voters: readonly number[];
  /** The last epoch in which it served since the process started; 0 if none. */
  readonly epoch: number;
  readonly lastZxid: number;
  readonly sessionCount: number;
}

export type FromServer =
  | ServerStatus
  | {
      readonly kind: 'inspection';
      readonly lastZxid: number;
      readonly treeDigest: string;
      /** Ids and timeouts in milliseconds. */
      readonly sessions: readonly (readonly [string, number])[];
      /** Digests at some zxids. */
      readonly digests: readonly (readonly [number, string])[];
    }
  /** The digest in a txn differs from that of the tree. */
  | { readonly kind: 'digest-mismatch'; readonly zxid: number }
  /** This server, as leader, starts an epoch. */
  | { readonly kind: 'established'; readonly epoch: number };

/**
 * Both ends come from one build and own the channel; this only checks that a message is not meant for another client in
 * the process.
 */
export function isToServer(message: unknown): message is ToServer {
  const kind = kindOf(message);
  return kind === 'disk' || kind === 'inspect';
}

export function isFromServer(message: unknown): message is FromServer {
  const kind = kindOf(message);
  return kind === 'status' || kind === 'inspection' || kind === 'digest-mismatch' || kind === 'established';
}

function kindOf(message: unknown): unknown {
  return typeof message === 'object' && message !== null && 'kind' in message ? message.kind : null;
}

export type Inspection = Extract<FromServer, { readonly kind: 'inspection' }>;
