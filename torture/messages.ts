/** What a server of the ensemble and the process that torments it tell each other. Zxids are numbers, session ids and digests hex. */

/** What the disk of a server does from now on. */
export type DiskTrouble =
  | { readonly kind: 'none' }
  /** Each effect is told that much later, by chance. Milliseconds. */
  | { readonly kind: 'slow'; readonly maxMs: number }
  /** Nothing is told any more until `none` or `slow`. */
  | { readonly kind: 'stall' }
  /** One effect fails, after so many that do not. */
  | { readonly kind: 'error'; readonly skip: number; readonly takesPlace: boolean }
  /** Whatever needs room fails. */
  | { readonly kind: 'full' };

export type ToServer =
  | { readonly kind: 'disk'; readonly trouble: DiskTrouble }
  /** Answered by an inspection. */
  | { readonly kind: 'inspect' };

/** Sent whenever it changes, a few times a second at most. */
export interface ServerStatus {
  readonly kind: 'status';
  readonly role: 'looking' | 'leading' | 'following' | 'observing';
  readonly isServing: boolean;
  readonly leader: number | null;
  /** The version of the membership that it follows, and the participants of that. */
  readonly membershipVersion: number;
  readonly voters: readonly number[];
  /** That it has served in last in this life; 0 before the first. */
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
      /** At some zxids. */
      readonly digests: readonly (readonly [number, string])[];
    }
  /** A txn says that the tree should be another one. */
  | { readonly kind: 'digest-mismatch'; readonly zxid: number }
  /** This server, as a leader, begins an epoch behind this zxid. */
  | { readonly kind: 'established'; readonly epoch: number };

/**
 * Both ends are of one build, and the channel is theirs alone; what is looked at is that a message was not meant for
 * another client in the process.
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
