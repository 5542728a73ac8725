import { type Acl, type ConnectRequest, OPEN_ACL, txnBytesMaxOf, type Zxid } from '@meerkat/protocol';
import { assert } from './base/assert.ts';
import type { Durable } from './base/durable.ts';
import type { CoreOptions } from './base/options.ts';
import type { Authenticator, ByteStream, Ports, StreamEvents, Trace } from './base/ports.ts';
import { ServerStats } from './base/server-stats.ts';
import type { FourLetterWords, ServerView } from './base/server-view.ts';
import { CoreView } from './core-view.ts';
import type { Member } from './ensemble/member.ts';
import { type PeerHost, QuorumPeer } from './ensemble/quorum-peer.ts';
import { Solo, type SoloHost } from './ensemble/solo.ts';
import type { ClientConnection } from './links/client-connection.ts';
import { ClientConnections } from './links/client-connections.ts';
import type { ConnectionHost } from './links/connection-host.ts';
import type { Flushable } from './links/link-host.ts';
import { OutputPool } from './links/output-pool.ts';
import { LeaderServing, type ServingParts } from './request/leader-serving.ts';
import { LearnerServing, type LearnerServingEffects } from './request/learner-serving.ts';
import { Permission } from './request/permission.ts';
import type { OnApplied, Pipeline } from './request/pipeline.ts';
import { WorkMeter } from './request/work-meter.ts';
import type { Serving } from './serving.ts';
import type { ConnectDecision } from './session/connect-decision.ts';
import { decideConnect } from './session/session-door.ts';
import { SessionIds } from './session/session-ids.ts';
import type { EpochFileName } from './storage/epoch-files.ts';
import { type RecoverySummary, Storage, type StorageEvents } from './storage/storage.ts';
import { OPEN_ACL_ID } from './tree/acl-table.ts';
import { Database } from './tree/database.ts';
import { WatchManager } from './watch/watch-manager.ts';
import type { Broadcast } from './zab/broadcast.ts';
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

export interface ServerCoreParts {
  readonly fourLetterWords: (view: ServerView) => FourLetterWords;
  /** For checkers of a whole ensemble. Default: nobody looks. */
  readonly onApplied?: OnApplied | null;
}

/**
 * One server: the one door of the core. Events in, effects out.
 *
 * The host delivers events (`onStreamOpened`, the events of streams and files, `onTick`) and calls `onTurnEnd` after
 * each batch of them. It asks `nextDeadlineMs` when to call `onTick`.
 *
 *     start ──► waiting ──► onServing ──► serving ──► stop ──► stopping ──► onStopped
 *                  ▲                         │
 *                  └── a role has ended ─────┘        (in an ensemble)
 *
 * While it waits it recovers what the disk holds and, in an ensemble, looks for a leader and synchronizes.
 */
export class ServerCore implements StorageEvents, ConnectionHost<ClientConnection>, PeerHost, SoloHost {
  readonly stats: ServerStats = new ServerStats();
  readonly outputPool: OutputPool = new OutputPool();
  readonly work: WorkMeter = new WorkMeter();
  readonly permission: Permission;
  readonly fourLetterWords: FourLetterWords;
  readonly view: ServerView;
  readonly ports: Ports;
  readonly options: CoreOptions;
  readonly #events: ServerCoreEvents;
  readonly #onApplied: OnApplied | null;
  readonly #connections: ClientConnections;
  readonly #watches = new WatchManager();
  readonly #sessionIds: SessionIds;
  readonly #member: Member;
  /** Of this incarnation: in an ensemble, a new one for each role. */
  #storage: Storage;
  #phase: 'new' | 'waiting' | 'serving' | 'stopping' | 'stopped' | 'failed' = 'new';
  #serving: Serving | null = null;
  /** The storage finishes what it was given, for the next incarnation to recover. */
  #isBeginningAnew = false;
  #hasRecovered = false;
  /** Links to other servers with output of this turn. */
  #linksWithOutput: Flushable[] = [];
  #deferred: (() => void)[] = [];
  /** The clock at the first event of this turn; −1 between turns. */
  #turnMs = -1;
  #turnWallMs = -1;
  #turn = 0;

  constructor(ports: Ports, options: CoreOptions, parts: ServerCoreParts, events: ServerCoreEvents) {
    this.ports = ports;
    this.options = options;
    this.#events = events;
    this.#onApplied = parts.onApplied ?? null;
    this.#connections = new ClientConnections(options);
    this.permission = new Permission(ports.authenticator, options.skipAcl, this.work);
    this.#sessionIds = new SessionIds(options.serverId, ports.clock.wallMs());
    this.#storage = new Storage(ports, options, this);
    const peer = options.ensemble === null ? null : new QuorumPeer(this, options.ensemble);
    this.#member = peer ?? new Solo(this);
    this.view = new CoreView({
      options,
      stats: this.stats,
      watches: this.#watches,
      connections: this.#connections.all,
      clock: ports.clock,
      ensemble: peer,
      serving: () => this.#serving,
      isServing: () => this.isServing,
    });
    this.fourLetterWords = parts.fourLetterWords(this.view);
  }

  /* ---------------------------------------------------------------------------------- life of the server ---- */

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
    this.#member.stop();
    this.#maybeStopStorage();
  }

  /** The role has synchronized. */
  beginServing(serving: Serving): void {
    this.#serving = serving;
    if (this.#phase !== 'waiting') return;
    if (serving instanceof LeaderServing) serving.endOrphans(this.wallMs());
    this.#phase = 'serving';
    this.#events.onServing();
  }

  /** The role is over. What it held in memory is given up, and what its log holds is recovered for the next one. */
  beginAnew(reason: string): void {
    if (this.#phase === 'failed' || this.#phase === 'stopped') return;
    this.#connections.closeAfterReplies(`the server has no leader any more: ${reason}`);
    this.#serving?.drop();
    this.#serving = null;
    if (this.#phase === 'serving') this.#phase = 'waiting';
    if (this.#phase === 'stopping' || this.#isBeginningAnew) return;
    this.#isBeginningAnew = true;
    this.#storage.stop({ keepsHold: true });
  }

  onRecovered(database: Database, _summary: RecoverySummary, history: History): void {
    if (this.#phase !== 'waiting' && this.#phase !== 'stopping') return;
    const mustCheck = !this.#hasRecovered && !this.options.skipAcl;
    this.#hasRecovered = true;
    const refusal = mustCheck ? this.authenticator.refusalOf(database.tree.acls.schemes()) : null;
    if (refusal !== null) this.#fail(new Error(refusal), 'its ACLs cannot be kept');
    else this.#member.onRecovered({ database, history });
  }

  onLogSynced(durable: Durable<Zxid>): void {
    if (this.#phase !== 'failed') this.#member.onLogSynced(durable);
  }

  onEpochDurable(name: EpochFileName, epoch: Durable<number>): void {
    if (this.#phase !== 'failed') this.#member.onEpochDurable(name, epoch);
  }

  onTruncateRefused(reason: string): void {
    if (this.#phase !== 'failed') this.#member.onTruncateRefused(reason);
  }

  onSnapshotInstalled(lastZxid: Durable<Zxid>): void {
    if (this.#phase !== 'failed') this.#member.onSnapshotInstalled(lastZxid);
  }

  onStorageFailed(error: Error): void {
    if (this.#phase !== 'failed' && this.#phase !== 'stopped') this.#fail(error, 'its disk has failed');
  }

  #fail(error: Error, reason: string): void {
    this.#phase = 'failed';
    this.#member.abandon(reason);
    this.#connections.close('the server cannot go on');
    this.ports.trace.emit({ kind: 'failed', error });
    this.#events.onFailed(error);
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

  /* ------------------------------------------------------------------------------------------ connections ---- */

  onStreamOpened(stream: ByteStream): StreamEvents {
    const isEnding = this.#phase === 'stopping' || this.#phase === 'failed';
    const reason = isEnding ? 'the server is stopping' : this.#refusalOf(stream);
    if (reason !== null) {
      this.stats.connectionsRefused++;
      this.ports.trace.emit({ kind: 'connection-refused', remote: stream.remote, reason });
      stream.destroy();
      return REFUSED;
    }
    this.ports.trace.emit({ kind: 'connection-opened', remote: stream.remote });
    return this.#connections.open(stream, this);
  }

  /** @returns why a connection is refused; null when it is welcome, in place of a silent one if need be */
  #refusalOf({ remote, isCrowding = false }: ByteStream): string | null {
    const refusal = this.#connections.refusalOf(remote.host);
    if (refusal !== null || !isCrowding || this.#connections.shedSilent(CROWDED)) return refusal;
    return `${CROWDED}, and none of the others is without a session`;
  }

  onAsked(connection: ClientConnection): void {
    this.#connections.onAsked(connection);
  }

  onClosed(connection: ClientConnection): void {
    this.#connections.onClosed(connection);
  }

  onConnectionOutput(connection: ClientConnection): void {
    this.#connections.onOutput(connection);
  }

  onConnectionEvents(connection: ClientConnection): void {
    this.#connections.onEvents(connection);
  }

  onConnectionRead(): void {
    this.#connections.onRead();
  }

  onHeldBack(connection: ClientConnection): void {
    this.#connections.onHeldBack(connection);
  }

  onShareUsed(connection: ClientConnection): void {
    this.#connections.onShareUsed(connection);
  }

  get turn(): number {
    return this.#turn;
  }

  get turnShare(): number {
    return this.#connections.turnShare;
  }

  mayAwaitServing(openedMs: number): boolean {
    return this.#phase === 'waiting' && this.nowMs() < openedMs + this.#connections.servingWaitMs;
  }

  onAwaitingServing(connection: ClientConnection): void {
    this.#connections.onAwaitingServing(connection);
  }

  decideConnect(request: ConnectRequest): ConnectDecision {
    const { pipeline, sessions } = this.#current;
    return decideConnect(request, sessions, pipeline.lastApplied, this.options, this.nowMs());
  }

  get pipeline(): Pipeline {
    return this.#current.pipeline;
  }

  get storage(): Storage {
    return this.#storage;
  }

  get authenticator(): Authenticator {
    return this.ports.authenticator;
  }

  get trace(): Trace {
    return this.ports.trace;
  }

  get frameBytesMax(): number {
    return this.options.frameBytesMax;
  }

  get isServing(): boolean {
    return this.#phase === 'serving';
  }

  get isStopping(): boolean {
    return this.#phase === 'stopping' || this.#member.isLeaving;
  }

  get isOverloaded(): boolean {
    return this.#current.pipeline.outstandingCount > this.options.globalOutstandingLimit;
  }

  aclOf(aclId: number): readonly Acl[] {
    return aclId === OPEN_ACL_ID ? OPEN_ACL : this.#current.database.tree.acls.get(aclId);
  }

  nowMs(): number {
    if (this.#turnMs < 0) this.#turnMs = Math.floor(this.ports.clock.monotonicMs());
    return this.#turnMs;
  }

  wallMs(): number {
    if (this.#turnWallMs < 0) this.#turnWallMs = this.ports.clock.wallMs();
    return this.#turnWallMs;
  }

  /* ------------------------------------------------------------------------------------- for the member's roles ---- */

  makeDatabase(): Database {
    return new Database(this.options, this.trace);
  }

  makeLeaderServing(database: Database, broadcast: Broadcast): LeaderServing {
    return new LeaderServing({ ...this.#partsFor(database), broadcast }, this.nowMs());
  }

  makeLearnerServing(database: Database, effects: LearnerServingEffects): LearnerServing {
    return new LearnerServing(this.#partsFor(database), effects);
  }

  get fieldBytesMax(): number {
    return txnBytesMaxOf(this.options.frameBytesMax, this.options.extraBytesMax);
  }

  onOutput(link: Flushable): void {
    this.#linksWithOutput.push(link);
  }

  defer(action: () => void): void {
    this.#deferred.push(action);
  }

  /* ------------------------------------------------------------------------------------------ time, turns ---- */

  /** Monotonic milliseconds at which `onTick` has something to do, at the latest. */
  nextDeadlineMs(): number {
    if (this.#connections.hasWork || this.#hasChores) return AT_ONCE;
    if (this.#linksWithOutput.length > 0 || this.#deferred.length > 0) return AT_ONCE;
    const servingMs = this.#tickingServing?.nextDeadlineMs ?? Number.POSITIVE_INFINITY;
    const memberMs = this.#member.nextDeadlineMs();
    return Math.min(this.#storage.nextDeadlineMs(), memberMs, this.#connections.nextDeadlineMs, servingMs);
  }

  onTick(): void {
    if (this.#phase === 'failed' || this.#phase === 'stopped') return;
    const nowMs = this.nowMs();
    this.#storage.onTick(nowMs);
    this.#connections.onTick(nowMs);
    this.#member.onTick();
    const serving = this.#tickingServing;
    if (serving === null) return;
    // What these clients sent is waiting because this server has too much to do: they are not silent.
    for (const { isHeldBack, session } of this.#connections.heldBack) {
      if (isHeldBack && session !== null && !session.isClosing) serving.sessions.touch(session, nowMs);
    }
    serving.onTick(nowMs, this.wallMs());
  }

  /** What begins something by itself as time goes by; nothing while a leader hands over. */
  get #tickingServing(): Serving | null {
    return this.#phase === 'serving' && !this.#member.isLeaving ? this.#serving : null;
  }

  /** The end of a turn: what was proposed goes to the disk together, what was answered leaves together. */
  onTurnEnd(): void {
    this.#runDeferred();
    if (this.isServing) this.#connections.onServing();
    this.#connections.goOn(this.work);
    this.#watches.sweep();
    this.#serving?.database.tree.quotas.goOn();
    this.#member.onTurnEnd();
    // Followers write what they are sent while this server writes it.
    const links = this.#linksWithOutput;
    this.#linksWithOutput = [];
    for (const link of links) link.flush();
    this.#storage.flush();
    this.#connections.flush();
    this.#connections.flushEvents(this.#phase === 'stopping' ? Number.POSITIVE_INFINITY : undefined);
    this.#connections.onTurnEnd();
    this.work.onTurnEnd();
    this.#turn++;
    this.#turnMs = -1;
    this.#turnWallMs = -1;
    if (this.#phase === 'stopping') this.#maybeStopStorage();
  }

  /** Work that no client waits for, of which a part is done in each turn. */
  get #hasChores(): boolean {
    return this.#watches.hasGone || this.#serving?.database.tree.quotas.isCounting === true;
  }

  #runDeferred(): void {
    for (let round = 0; this.#deferred.length > 0; round++) {
      assert(round < DEFERRED_ROUNDS_MAX, 'what is deferred comes to an end');
      const actions = this.#deferred;
      this.#deferred = [];
      for (const action of actions) action();
    }
  }

  /* --------------------------------------------------------------------------------------- administration ---- */

  /**
   * Ends a session now, as if nothing had been heard of it for its timeout. The trace tells `session-closed` once its
   * closeSession is applied: then its ephemerals are gone and their watchers told.
   *
   * @returns false when there is no such session
   */
  expireSession(id: bigint): boolean {
    return this.isServing && this.#current.expireSession(id, this.wallMs());
  }

  get #current(): Serving {
    if (this.#serving === null) throw new Error('the server serves nobody at the moment');
    return this.#serving;
  }

  #partsFor(database: Database): ServingParts {
    const { options, permission, authenticator, trace } = this;
    return {
      options,
      database,
      permission,
      authenticator,
      watches: this.#watches,
      sessionIds: this.#sessionIds,
      work: this.work,
      trace,
      onApplied: this.#onApplied,
    };
  }

  /** While stopping: once nothing is in flight any more, connections end and the storage closes. */
  #maybeStopStorage(): void {
    if (this.#phase !== 'stopping' || !this.#member.isReadyToStop()) return;
    this.#connections.closeAfterReplies('the server is stopping');
    this.#storage.stop();
  }
}

/** A deadline that has passed: the host ends another turn once it has looked at everybody else. */
const AT_ONCE = 0;

const DEFERRED_ROUNDS_MAX = 1000;

const CROWDED = 'there are as many connections of clients as the descriptors of this process allow';

/** The events of a stream that was refused go nowhere. */
const REFUSED: StreamEvents = {
  onBytes() {},
  onDrain() {},
  onClosed() {},
};
