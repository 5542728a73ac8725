import { makeZxid, txnBytesMaxOf, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
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
import { type RecoverySummary, Storage, type StorageEvents } from './storage/storage.ts';
import type { Database } from './tree/database.ts';
import { type AnswerLease, UNLIMITED } from './zab/answer-lease.ts';
import type { History } from './zab/history.ts';

/** What the core tells its host. */
export interface ServerCoreEvents {
  /** Clients are served: at the start, and in an ensemble again after each change of roles. */
  onServing(): void;
  /** Everything is finished, synced and released after `stop`. */
  onStopped(): void;
  /** The server cannot go on. It acknowledges nothing more; the host ends it. */
  onFailed(error: Error): void;
}

export type ServerPhase = 'new' | 'waiting' | 'serving' | 'stopping' | 'stopped' | 'failed';

export interface ServerLifeParts {
  readonly ports: Ports;
  readonly options: CoreOptions;
  readonly turn: Turn;
  readonly servings: ServingFactory;
  readonly connections: ClientConnections;
  readonly events: ServerCoreEvents;
}

/**
 * The life of a server: one storage after the other, each recovers what the one before it has left, and a role begins with
 * that.
 *
 *     start ──► waiting ──► serving ──► stop ──► stopping ──► stopped
 *                  ▲           │
 *                  └───────────┘ the role has ended          failed, from any of them
 *
 * While it waits the storage recovers and, in an ensemble, the member looks for a leader and synchronizes.
 */
export class ServerLife implements StorageEvents, PeerHost {
  readonly ports: Ports;
  readonly options: CoreOptions;
  readonly turn: Turn;
  readonly servings: ServingFactory;
  readonly member: Member;
  /** null of a server of its own. */
  readonly ensemble: EnsembleView | null;
  readonly #connections: ClientConnections;
  readonly #events: ServerCoreEvents;
  /** Of this incarnation: in an ensemble, a new one for each role. */
  #storage: Storage;
  #phase: ServerPhase = 'new';
  #serving: Serving | null = null;
  /** The storage finishes what it was given, for the next one to recover. */
  #isBeginningAnew = false;
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
    this.member = peer ?? new Solo(this);
    this.ensemble = peer;
  }

  get storage(): Storage {
    return this.#storage;
  }

  /** What serves clients; null while this server has no role. */
  get serving(): Serving | null {
    return this.#serving;
  }

  get phase(): ServerPhase {
    return this.#phase;
  }

  get isServing(): boolean {
    return this.#phase === 'serving';
  }

  /** True once nothing new is begun: what is in flight is finished, then the server or its role ends. */
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

  /** While stopping: once nothing is in flight any more, connections end and the storage closes. */
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

  /** True while only reads are answered, as no leader is found. */
  get isReadOnly(): boolean {
    return this.#serving instanceof ReadOnlyServing;
  }

  /** Everything up to here that any server has ever shown is either applied here or was never committed. */
  get decidedZxid(): Zxid {
    return this.#decidedZxid;
  }

  beginReadOnly(database: Database): void {
    if (this.#phase !== 'waiting' || this.#isBeginningAnew) return;
    this.#serving = this.servings.makeReadOnlyServing(database);
    // It makes no client sure of anything.
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

  beginAnew(reason: string): void {
    if (this.#isOver) return;
    // Whatever is committed is answered before.
    this.#serving?.pipeline.applyAll(this.turn.nowMs());
    this.#connections.closeAfterReplies(`the server has no leader any more: ${reason}`);
    this.#serving?.drop();
    this.#serving = null;
    if (this.#phase === 'serving') this.#phase = 'waiting';
    if (this.#phase === 'stopping' || this.#isBeginningAnew) return;
    this.#isBeginningAnew = true;
    this.#storage.stop({ keepsHold: true });
  }

  /* ----------------------------------------------------------------------------------------------- storage ---- */

  onRecovered(database: Database, _summary: RecoverySummary, history: History): void {
    if (this.#phase !== 'waiting' && this.#phase !== 'stopping') return;
    const mustCheck = !this.#hasRecovered && !this.options.skipAcl;
    this.#hasRecovered = true;
    const refusal = mustCheck ? this.ports.authenticator.refusalOf(database.tree.acls.schemes()) : null;
    if (refusal !== null) this.#fail(new Error(refusal), 'its ACLs cannot be kept');
    else this.member.onRecovered({ database, history });
  }

  onStorageFailed(error: Error): void {
    if (!this.#isOver) this.#fail(error, 'its disk has failed');
  }

  onStorageStopped(): void {
    if (this.#phase === 'failed') return;
    if (this.#isBeginningAnew) {
      this.#isBeginningAnew = false;
      this.#storage = new Storage(this.ports, this.options, this, this.#storage.legacy);
      this.#storage.recover({ isHeld: true });
      return;
    }
    this.#phase = 'stopped';
    this.#events.onStopped();
  }

  /** True when nothing happens any more. */
  get #isOver(): boolean {
    return this.#phase === 'failed' || this.#phase === 'stopped';
  }

  #fail(error: Error, reason: string): void {
    this.#phase = 'failed';
    this.member.abandon(reason);
    this.#connections.close('the server cannot go on');
    this.trace.emit({ kind: 'failed', error });
    this.#events.onFailed(error);
  }
}
