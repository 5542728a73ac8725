import { makeZxid, maxZxid, nextZxid, txnBytesMaxOf, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import type { CoreOptions } from './base/options.ts';
import type { Ports, Trace } from './base/ports.ts';
import type { EnsembleView } from './base/server-view.ts';
import type { Turn } from './base/turn.ts';
import type { Member } from './ensemble/member.ts';
import { type PeerHost, QuorumPeer } from './ensemble/quorum-peer.ts';
import { Solo } from './ensemble/solo.ts';
import type { ClientConnections } from './links/client-connections.ts';
import { LeaderServing } from './request/leader-serving.ts';
import type { LearnerServing } from './request/learner-serving.ts';
import { ReadOnlyServing } from './request/read-only-serving.ts';
import type { Serving, ServingFactory } from './serving.ts';
import { installingSnapshotName } from './storage/file-names.ts';
import { SnapshotLoad } from './storage/snapshot-load.ts';
import { looksWhole } from './storage/snapshot-store.ts';
import { type CarriedStorage, type RecoverySummary, Storage, type StorageEvents } from './storage/storage.ts';
import { Database } from './tree/database.ts';
import { type AnswerLease, UNLIMITED } from './zab/answer-lease.ts';
import type { History } from './zab/history.ts';

/** Callbacks from the core to its host. */
export interface ServerCoreEvents {
  /** Clients are served from now on; in an ensemble, called again after each role change. */
  onServing(): void;
  /** Everything is finished, synced and released after `stop`. */
  onStopped(): void;
  /** The server has failed. It acknowledges nothing more; the host must terminate it. */
  onFailed(error: Error): void;
}

export type ServerPhase = 'new' | 'waiting' | 'serving' | 'stopping' | 'stopped' | 'failed';

/** A complete, synced snapshot in the snapshot directory, under a temporary name: the next start removes it. */
export interface RestorableSnapshot {
  readonly path: string;
  /** No znode in the snapshot has a later zxid. */
  readonly zxid: Zxid;
}

interface Restore {
  readonly snapshot: RestorableSnapshot;
  readonly done: (error: Error | null) => void;
}

export interface ServerLifeParts {
  readonly ports: Ports;
  readonly options: CoreOptions;
  readonly turn: Turn;
  readonly servings: ServingFactory;
  readonly connections: ClientConnections;
  readonly events: ServerCoreEvents;
}

/**
 * The lifecycle of a server. Each role starts with a new `Storage`, which recovers what the previous one wrote.
 *
 *     start ──► waiting ──► serving ──► stop ──► stopping ──► stopped
 *                  ▲           │
 *                  └───────────┘ the role has ended          any of them ──► failed
 *
 * While `waiting`, the storage recovers and, in an ensemble, the member looks for a leader and synchronizes.
 */
export class ServerLife implements StorageEvents, PeerHost {
  readonly ports: Ports;
  readonly options: CoreOptions;
  readonly turn: Turn;
  readonly servings: ServingFactory;
  readonly member: Member;
  /** null for a member of an ensemble. */
  readonly #solo: Solo | null;
  /** null for a standalone server. */
  readonly ensemble: EnsembleView | null;
  readonly #connections: ClientConnections;
  readonly #events: ServerCoreEvents;
  /** Of the current incarnation: in an ensemble, each role has a new one. */
  #storage: Storage;
  #phase: ServerPhase = 'new';
  #serving: Serving | null = null;
  /** The storage is finishing its writes; then the next one recovers. */
  #isRestarting = false;
  /** The restore in progress: its snapshot replaces the history. */
  #restore: Restore | null = null;
  #decidedZxid: Zxid = ZXID_ZERO;
  #hasRecovered = false;

  constructor({ ports, options, turn, servings, connections, events }: ServerLifeParts) {
    this.ports = ports;
    this.options = options;
    this.turn = turn;
    this.servings = servings;
    this.#connections = connections;
    this.#events = events;
    this.#storage = new Storage(ports, options, this);
    const peer = options.ensemble === null ? null : new QuorumPeer(this, options.ensemble);
    this.#solo = peer === null ? new Solo(this) : null;
    this.member = peer ?? this.#solo!;
    this.ensemble = peer?.view ?? null;
  }

  get storage(): Storage {
    return this.#storage;
  }

  /** null while this server has no role. */
  get serving(): Serving | null {
    return this.#serving;
  }

  get phase(): ServerPhase {
    return this.#phase;
  }

  get isServing(): boolean {
    return this.#phase === 'serving';
  }

  /** True once no new work is accepted: what is in flight is finished, then the server or its role ends. */
  get isStopping(): boolean {
    return this.#phase === 'stopping' || this.member.isLeaving;
  }

  /* ----------------------------------------------------------------------------------------- start and stop ---- */

  start(): void {
    this.#phase = 'waiting';
    this.#storage.recover();
  }

  /** Accepts nothing more, finishes what is in flight, syncs and releases everything; then `onStopped`. */
  stop(): void {
    if (this.#phase === 'stopped' || this.#phase === 'stopping') return;
    if (this.#phase === 'new') {
      this.#phase = 'stopped';
      this.#events.onStopped();
      return;
    }
    this.#phase = 'stopping';
    this.member.stop();
    this.maybeStopStorage();
  }

  /** While stopping: once nothing is in flight, closes the connections and the storage. */
  maybeStopStorage(): void {
    if (this.#phase !== 'stopping' || !this.member.isReadyToStop()) return;
    this.#connections.closeAfterReplies('the server is stopping');
    this.#storage.stop();
  }

  /* ------------------------------------------------------------------------------------------------- roles ---- */

  get trace(): Trace {
    return this.ports.trace;
  }

  get fieldBytesMax(): number {
    return txnBytesMaxOf(this.options.frameBytesMax, this.options.extraBytesMax);
  }

  beginServing(serving: LeaderServing | LearnerServing, epoch: number, lease: AnswerLease): void {
    this.#serving = serving;
    this.#decidedZxid = makeZxid(epoch, 0);
    this.#connections.gate.begin(lease);
    if (this.#phase !== 'waiting') return;
    if (serving instanceof LeaderServing) serving.endOrphans(this.turn.wallMs());
    this.#phase = 'serving';
    this.#events.onServing();
  }

  /** True in read-only mode: only reads are served, because there is no leader. */
  get isReadOnly(): boolean {
    return this.#serving instanceof ReadOnlyServing;
  }

  /** Any txn up to this zxid that a server has ever exposed is either applied here or was never committed. */
  get decidedZxid(): Zxid {
    return this.#decidedZxid;
  }

  beginReadOnly(database: Database): void {
    if (this.#phase !== 'waiting' || this.#isRestarting) return;
    this.#serving = this.servings.makeReadOnlyServing(database);
    // An observer that does not log may have less than it served before.
    this.#decidedZxid = ZXID_ZERO;
    // Reads here promise nothing about recency, so no lease limits them.
    this.#connections.gate.begin(UNLIMITED);
    this.#phase = 'serving';
    this.trace.emit({ kind: 'read-only-changed', isReadOnly: true });
  }

  endReadOnly(reason: string): void {
    if (!this.isReadOnly) return;
    this.#connections.closeAfterReplies(reason);
    this.#serving?.drop();
    this.#serving = null;
    if (this.#phase === 'serving') this.#phase = 'waiting';
    this.trace.emit({ kind: 'read-only-changed', isReadOnly: false });
  }

  restartRole(reason: string): void {
    this.#endRole(`the server has lost its leader: ${reason}`);
  }

  /** Refused by a member of an ensemble: the other members would not have that history. */
  restore(snapshot: RestorableSnapshot, done: (error: Error | null) => void): void {
    if (this.#solo === null || !this.isServing || this.#restore !== null) {
      const reason = this.#solo === null ? 'it is a member of an ensemble' : 'it does not serve, or restores already';
      done(new Error(`this server restores no snapshot: ${reason}`));
      return;
    }
    this.#restore = { snapshot, done };
    this.#findFault(snapshot.path, (fault) => {
      if (fault !== null || !this.isServing) {
        this.#reportRestored(new Error(fault ?? 'the server is no longer serving'));
        return;
      }
      this.#endRole('a snapshot is restored');
      this.#solo?.end();
    });
  }

  /** Checks, while clients are still served, that a start would accept the snapshot. */
  #findFault(path: string, done: (fault: string | null) => void): void {
    const { disk, authenticator } = this.ports;
    const database = new Database(this.options, this.trace);
    disk.open(path, { readOnly: true }, (error, file) => {
      if (error !== null) return done(error.message);
      file.close();
      looksWhole(disk, path, file.size, (readError, isWhole) => {
        if (readError !== null || !isWhole) return done(readError?.message ?? 'it is cut short');
        new SnapshotLoad({ ...this.ports, scans: null }, path, database, ({ fault }) => {
          done(fault ?? authenticator.refusalOf(database.tree.acls.schemes()));
        }).start();
      });
    });
  }

  #endRole(reason: string): void {
    if (this.#isOver) return;
    // Committed writes are applied and answered before the connections close.
    this.#serving?.pipeline.applyAll(this.turn.nowMs());
    this.#connections.closeAfterReplies(reason);
    this.#serving?.drop();
    this.#serving = null;
    if (this.#phase === 'serving') this.#phase = 'waiting';
    if (this.#phase === 'stopping' || this.#isRestarting) return;
    this.#isRestarting = true;
    this.#storage.stop({ keepsHold: true });
  }

  /* ----------------------------------------------------------------------------------------------- storage ---- */

  onRecovered(database: Database, _summary: RecoverySummary, history: History): void {
    if (this.#phase !== 'waiting' && this.#phase !== 'stopping') return;
    const mustCheck = !this.#hasRecovered && !this.options.skipAcl;
    this.#hasRecovered = true;
    this.#reportRestored(null);
    const refusal = mustCheck ? this.ports.authenticator.refusalOf(database.tree.acls.schemes()) : null;
    if (refusal !== null) this.#fail(new Error(refusal));
    else this.member.onRecovered({ database, history });
  }

  onStorageFailed(error: Error): void {
    if (!this.#isOver) this.#fail(error);
  }

  onStorageStopped(): void {
    if (this.#phase === 'failed') return;
    if (this.#isRestarting) {
      this.#isRestarting = false;
      const { carriedState } = this.#storage;
      if (this.#restore === null) this.#recoverAgain(carriedState);
      else this.#exchange(this.#restore.snapshot, carriedState);
      return;
    }
    this.#phase = 'stopped';
    this.#events.onStopped();
  }

  /**
   * Once the snapshot has this name, a start installs it (`snapshot-install.ts`). Its zxid is one that the log never
   * had, so that a reader that tails the log, such as a backup, does not take the new history for a continuation.
   */
  #exchange({ path, zxid }: RestorableSnapshot, carriedState: CarriedStorage | null): void {
    if (carriedState === null) {
      this.#reportRestored(new Error('the log is not whole'));
      this.#recoverAgain(null);
      return;
    }
    const newZxid = maxZxid(zxid, nextZxid(carriedState.durableZxid));
    const target = `${this.options.snapshotDirectory}/${installingSnapshotName(newZxid)}`;
    this.ports.disk.rename(path, target, (error) => {
      if (error !== null) this.#reportRestored(error);
      this.#recoverAgain(error === null ? null : carriedState);
    });
  }

  #recoverAgain(carriedState: CarriedStorage | null): void {
    this.#storage = new Storage(this.ports, this.options, this, carriedState);
    this.#storage.recover({ isHeld: true });
  }

  #reportRestored(error: Error | null): void {
    const restore = this.#restore;
    this.#restore = null;
    restore?.done(error);
  }

  get #isOver(): boolean {
    return this.#phase === 'failed' || this.#phase === 'stopped';
  }

  #fail(error: Error): void {
    this.#phase = 'failed';
    this.#reportRestored(error);
    this.member.abandon();
    this.#connections.close('the server has failed');
    this.trace.emit({ kind: 'failed', error });
    this.#events.onFailed(error);
  }
}
