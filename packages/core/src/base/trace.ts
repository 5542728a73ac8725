import type { Membership } from '@meerkat/protocol';
import type { PeerAddress } from './network.ts';

/** What happened, for logs, metrics and checkers; nothing in the core depends on who listens. */
export type TraceEvent =
  /** By one of `LIMITS`; so many since this was told last. */
  | { readonly kind: 'limit-reached'; readonly limit: string; readonly reason: string; readonly refused: number }
  | { readonly kind: 'connection-refused'; readonly remote: PeerAddress; readonly reason: string }
  | { readonly kind: 'connection-opened'; readonly remote: PeerAddress }
  | {
      readonly kind: 'connection-closed';
      readonly remote: PeerAddress;
      readonly sessionId: bigint;
      readonly reason: string;
    }
  | {
      readonly kind: 'session-created';
      readonly sessionId: bigint;
      readonly timeoutMs: number;
      readonly remote: PeerAddress;
    }
  | {
      readonly kind: 'session-resumed';
      readonly sessionId: bigint;
      readonly timeoutMs: number;
      readonly remote: PeerAddress;
    }
  | {
      readonly kind: 'session-refused';
      readonly sessionId: bigint;
      readonly remote: PeerAddress;
      readonly reason: string;
    }
  | {
      readonly kind: 'session-expired';
      readonly sessionId: bigint;
      readonly timeoutMs: number;
      readonly isLocal?: true;
    }
  | { readonly kind: 'session-closed'; readonly sessionId: bigint }
  /** A request was answered with an error that says less than this. */
  | {
      readonly kind: 'request-refused';
      readonly remote: PeerAddress;
      readonly sessionId: bigint;
      readonly reason: string;
    }
  /** `reason` is null when the scheme does not tell it. */
  | {
      readonly kind: 'auth-failed';
      readonly remote: PeerAddress;
      readonly scheme: string;
      readonly reason: string | null;
    }
  | { readonly kind: 'recovery-progress'; readonly message: string }
  | {
      readonly kind: 'recovered';
      readonly lastZxid: number;
      readonly znodes: number;
      readonly sessions: number;
      /** Of the log, replayed. */
      readonly txns: number;
      /** Milliseconds that the snapshot took, and the log behind it. */
      readonly snapshotMs: number;
      readonly replayMs: number;
    }
  | {
      readonly kind: 'log-tail-cut';
      readonly file: string;
      readonly position: number;
      readonly reason: string;
      /** Name of the file that has what was cut; null when there was nothing. */
      readonly kept: string | null;
    }
  | { readonly kind: 'log-file-started'; readonly file: string }
  | { readonly kind: 'log-synced'; readonly txns: number; readonly bytes: number; readonly syncMs: number }
  | { readonly kind: 'snapshot-started'; readonly file: string }
  | { readonly kind: 'snapshot-written'; readonly file: string; readonly bytes: number; readonly ms: number }
  | { readonly kind: 'snapshot-failed'; readonly file: string; readonly error: Error }
  | { readonly kind: 'purge-started' }
  | { readonly kind: 'files-purged'; readonly files: readonly string[] }
  /** Done or given up. */
  | { readonly kind: 'purge-ended' }
  | { readonly kind: 'digest-mismatch'; readonly zxid: number; readonly expected: bigint; readonly actual: bigint }
  | { readonly kind: 'quota-exceeded'; readonly path: string; readonly limit: string; readonly isHard: boolean }
  | { readonly kind: 'warning'; readonly message: string }
  /** Good news that an operator waits for. */
  | { readonly kind: 'notice'; readonly message: string }
  /** A server of an ensemble does something else from now on; `leader` is null while it is looking for one. */
  | {
      readonly kind: 'role-changed';
      readonly role: 'looking' | 'leading' | 'following' | 'observing';
      readonly leader: number | null;
      readonly reason: string;
    }
  /** A server begins to look for a leader, with a history that ends here; 0: with none that it trusts. */
  | { readonly kind: 'election-started'; readonly zxid: number }
  /** The connection to another server, for the election, has ended at the other end or on the way. */
  | { readonly kind: 'peer-lost'; readonly serverId: number; readonly reason: string }
  /** A server that finds no leader answers reads alone, or no more. */
  | { readonly kind: 'read-only-changed'; readonly isReadOnly: boolean }
  /** Another membership is proposed, or in force from now on; this server need not be a member of it. */
  | {
      readonly kind: 'membership-changed';
      readonly committed: Membership;
      /** null when there is none. */
      readonly proposed: Membership | null;
    }
  /** Leader and quorum, or this learner and its leader, have synchronized: clients are served in this epoch. */
  | { readonly kind: 'epoch-established'; readonly epoch: number; readonly zxid: number }
  /** A leader has given a txn its zxid and sent it to its followers. */
  | { readonly kind: 'proposed'; readonly zxid: number }
  /** A leader's quorum holds everything up to here; on a learner, its leader has said so. */
  | { readonly kind: 'committed'; readonly zxid: number }
  | {
      readonly kind: 'learner-synchronizing';
      readonly serverId: number;
      readonly mode: 'diff' | 'trunc' | 'snap';
      /** Where the learner was, and where the history that it is sent begins. */
      readonly from: number;
      readonly zxid: number;
    }
  /**
   * A learner's leader has said how the histories become one, and a zxid: where its own ends (diff), how much stays
   * (trunc), of its snapshot (snap).
   */
  | {
      readonly kind: 'catching-up';
      readonly leader: number;
      readonly mode: 'diff' | 'trunc' | 'snap';
      readonly zxid: number;
    }
  | { readonly kind: 'learner-synchronized'; readonly serverId: number; readonly zxid: number }
  | { readonly kind: 'learner-closed'; readonly serverId: number | null; readonly reason: string }
  /** The server can go on no longer: `error` says why and what to do. Nothing is acknowledged after this. */
  | { readonly kind: 'failed'; readonly error: Error };

export interface Trace {
  emit(event: TraceEvent): void;
}
