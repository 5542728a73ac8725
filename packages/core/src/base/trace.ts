import type { Membership } from '@meerkat/protocol';
import type { PeerAddress } from './network.ts';

/** What happened, for logs, metrics and checkers; the core does not depend on the listeners. */
export type TraceEvent =
  /** By one of `LIMITS`; `refused` counts since the last such event. */
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
  /** A request was answered with an error that is less specific than this. */
  | {
      readonly kind: 'request-refused';
      readonly remote: PeerAddress;
      readonly sessionId: bigint;
      readonly reason: string;
    }
  /** `reason` is null when the scheme does not report one. */
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
      /** Replayed from the log. */
      readonly txns: number;
      /** Milliseconds to load the snapshot, and to replay the log. */
      readonly snapshotMs: number;
      readonly replayMs: number;
    }
  | {
      readonly kind: 'log-tail-cut';
      readonly file: string;
      readonly position: number;
      readonly reason: string;
      /** Name of the file that keeps the bytes cut off; null when there were none. */
      readonly kept: string | null;
    }
  | { readonly kind: 'log-file-started'; readonly file: string }
  | { readonly kind: 'log-synced'; readonly txns: number; readonly bytes: number; readonly syncMs: number }
  | { readonly kind: 'snapshot-started'; readonly file: string }
  | { readonly kind: 'snapshot-written'; readonly file: string; readonly bytes: number; readonly ms: number }
  | { readonly kind: 'snapshot-failed'; readonly file: string; readonly error: Error }
  | { readonly kind: 'purge-started' }
  | { readonly kind: 'files-purged'; readonly files: readonly string[] }
  /** Completed or aborted. */
  | { readonly kind: 'purge-ended' }
  | { readonly kind: 'digest-mismatch'; readonly zxid: number; readonly expected: bigint; readonly actual: bigint }
  | { readonly kind: 'quota-exceeded'; readonly path: string; readonly limit: string; readonly isHard: boolean }
  | { readonly kind: 'warning'; readonly message: string }
  /** A message for operators that is not a warning. */
  | { readonly kind: 'notice'; readonly message: string }
  /** The role of a server of an ensemble has changed; `leader` is null while it is looking. */
  | {
      readonly kind: 'role-changed';
      readonly role: 'looking' | 'leading' | 'following' | 'observing';
      readonly leader: number | null;
      readonly reason: string;
    }
  /** A server starts looking for a leader; its history ends at this zxid, 0: it has no history that it trusts. */
  | { readonly kind: 'election-started'; readonly zxid: number }
  /** The election connection to another server was closed by it or by the network. */
  | { readonly kind: 'peer-lost'; readonly serverId: number; readonly reason: string }
  /** A server without a leader starts or stops answering reads. */
  | { readonly kind: 'read-only-changed'; readonly isReadOnly: boolean }
  /** A membership was proposed or has taken effect; this server need not be a member of it. */
  | {
      readonly kind: 'membership-changed';
      readonly committed: Membership;
      /** null when there is none. */
      readonly proposed: Membership | null;
    }
  /** Leader and quorum, or this learner and its leader, are synchronized: clients are served in this epoch. */
  | { readonly kind: 'epoch-established'; readonly epoch: number; readonly zxid: number }
  /** A leader has assigned a zxid to a txn and sent it to its followers. */
  | { readonly kind: 'proposed'; readonly zxid: number }
  /** A leader's quorum holds everything up to here; on a learner: its leader has reported so. */
  | { readonly kind: 'committed'; readonly zxid: number }
  | {
      readonly kind: 'learner-synchronizing';
      readonly serverId: number;
      readonly mode: 'diff' | 'trunc' | 'snap';
      /** Last zxid of the learner, and where the history that it is sent begins. */
      readonly from: number;
      readonly zxid: number;
    }
  /**
   * A learner's leader has said how it synchronizes, and a zxid: the end of the learner's own history (diff), where it
   * must be truncated (trunc), that of the snapshot (snap).
   */
  | {
      readonly kind: 'catching-up';
      readonly leader: number;
      readonly mode: 'diff' | 'trunc' | 'snap';
      readonly zxid: number;
    }
  | { readonly kind: 'learner-synchronized'; readonly serverId: number; readonly zxid: number }
  | { readonly kind: 'learner-closed'; readonly serverId: number | null; readonly reason: string }
  /** The server cannot continue: `error` says why and what to do. Nothing is acknowledged after this. */
  | { readonly kind: 'failed'; readonly error: Error };

export interface Trace {
  emit(event: TraceEvent): void;
}
