import { type Acl, type ConnectRequest, OPEN_ACL, type Zxid } from '@meerkat/protocol';
import { CoreView } from './core-view.ts';
import { ClientConnection } from './links/client-connection.ts';
import type { ConnectionHost } from './links/connection-host.ts';
import { OutputPool } from './links/output-pool.ts';
import type { CoreOptions } from './options.ts';
import type { Authenticator, ByteStream, Ports, StreamEvents, Trace } from './ports.ts';
import { LeaderServing } from './request/leader-serving.ts';
import { Permission } from './request/permission.ts';
import type { Pipeline } from './request/pipeline.ts';
import { ServerStats } from './server-stats.ts';
import type { FourLetterWords, ServerView } from './server-view.ts';
import type { Serving } from './serving.ts';
import { type ConnectDecision, decideConnect } from './session/session-door.ts';
import { SessionIds } from './session/session-ids.ts';
import type { Durable } from './storage/durable.ts';
import { Storage, type StorageEvents } from './storage/storage.ts';
import { OPEN_ACL_ID } from './tree/acl-table.ts';
import type { Database } from './tree/database.ts';
import { WatchManager } from './watch/watch-manager.ts';
import { SoloBroadcast } from './zab/solo.ts';

/** What the core tells its host. */
export interface ServerCoreEvents {
  /** The database is there; connections may come. */
  onServing(): void;
  /** Everything is finished, synced and released after `stop`. */
  onStopped(): void;
  /** The server cannot go on. It acknowledges nothing more; the host ends it. */
  onFailed(error: Error): void;
}

export interface ServerCoreParts {
  readonly fourLetterWords: (view: ServerView) => FourLetterWords;
}

/**
 * One server: the one door of the core. Events in, effects out.
 *
 * The host delivers events (`onStreamOpened`, the events of streams and files, `onTick`) and calls `onTurnEnd` after
 * each batch of them. It asks `nextDeadlineMs` when to call `onTick`.
 *
 *     start ──► recovering ──► onServing ──► serving ──► stop ──► stopping ──► onStopped
 */
export class ServerCore implements StorageEvents, ConnectionHost {
  readonly stats: ServerStats = new ServerStats();
  readonly outputPool: OutputPool = new OutputPool();
  readonly permission: Permission;
  readonly fourLetterWords: FourLetterWords;
  readonly view: ServerView;
  readonly #ports: Ports;
  readonly #options: CoreOptions;
  readonly #events: ServerCoreEvents;
  readonly #storage: Storage;
  readonly #connections = new Set<ClientConnection>();
  readonly #connectionsOfHost = new Map<string, number>();
  readonly #watches = new WatchManager();
  /** Connections with output of this turn. */
  #withOutput: ClientConnection[] = [];
  /** Connections that stopped reading until there is less to do. */
  readonly #heldBack = new Set<ClientConnection>();
  /** Filled their output in this turn and have room again: they go on in the next one, after everybody else. */
  #withRoom: ClientConnection[] = [];
  #phase: 'new' | 'recovering' | 'serving' | 'stopping' | 'stopped' | 'failed' = 'new';
  #serving: LeaderServing | null = null;
  #solo: SoloBroadcast | null = null;
  #nextTickMs = 0;
  /** The clock at the first event of this turn; −1 between turns. */
  #turnMs = -1;
  #turnWallMs = -1;

  constructor(ports: Ports, options: CoreOptions, parts: ServerCoreParts, events: ServerCoreEvents) {
    this.#ports = ports;
    this.#options = options;
    this.#events = events;
    this.permission = new Permission(ports.authenticator, options.skipAcl);
    this.#storage = new Storage(ports, options, this);
    this.view = new CoreView({
      options,
      stats: this.stats,
      watches: this.#watches,
      connections: this.#connections,
      clock: ports.clock,
      serving: () => this.#serving,
      isServing: () => this.isServing,
    });
    this.fourLetterWords = parts.fourLetterWords(this.view);
  }

  /* ---------------------------------------------------------------------------------- life of the server ---- */

  start(): void {
    this.#phase = 'recovering';
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
    this.#maybeStopStorage();
  }

  onRecovered(database: Database): void {
    const { trace, authenticator } = this.#ports;
    const options = this.#options;
    const nowMs = this.nowMs();
    const broadcast = new SoloBroadcast(this.#storage, database.lastZxid);
    this.#solo = broadcast;
    this.#serving = new LeaderServing(
      {
        options,
        database,
        broadcast,
        permission: this.permission,
        authenticator,
        watches: this.#watches,
        sessionIds: new SessionIds(options.serverId, this.#ports.clock.wallMs()),
        trace,
      },
      nowMs,
    );
    this.#nextTickMs = nowMs + options.tickTimeMs;
    if (this.#phase !== 'recovering') {
      this.#maybeStopStorage();
      return;
    }
    this.#serving.endOrphans(this.wallMs());
    this.#phase = 'serving';
    this.#events.onServing();
  }

  onLogSynced(durable: Durable<Zxid>): void {
    const serving = this.#serving;
    const solo = this.#solo;
    if (serving === null || solo === null || this.#phase === 'failed') return;
    serving.onCommitted(solo.onLogSynced(durable), this.nowMs());
    serving.onSynced(solo.lastSynced);
  }

  onStorageFailed(error: Error): void {
    if (this.#phase === 'failed' || this.#phase === 'stopped') return;
    this.#phase = 'failed';
    for (const connection of [...this.#connections]) connection.close('the server cannot go on');
    this.#ports.trace.emit({ kind: 'failed', error });
    this.#events.onFailed(error);
  }

  onEpochDurable(): void {}

  onTruncateRefused(): void {}

  onSnapshotInstalled(): void {}

  onStorageStopped(): void {
    this.#phase = 'stopped';
    this.#events.onStopped();
  }

  /* ------------------------------------------------------------------------------------------ connections ---- */

  onStreamOpened(stream: ByteStream): StreamEvents {
    const { host } = stream.remote;
    const count = (this.#connectionsOfHost.get(host) ?? 0) + 1;
    const reason = this.#refusalOf(count);
    if (reason !== null) {
      this.stats.connectionsRefused++;
      this.#ports.trace.emit({ kind: 'connection-refused', remote: stream.remote, reason });
      stream.destroy();
      return REFUSED;
    }
    const connection = new ClientConnection(stream, this);
    this.#connections.add(connection);
    this.#connectionsOfHost.set(host, count);
    this.#ports.trace.emit({ kind: 'connection-opened', remote: stream.remote });
    return connection;
  }

  onClosed(connection: ClientConnection): void {
    this.#connections.delete(connection);
    this.#heldBack.delete(connection);
    const { host } = connection.remote;
    const count = (this.#connectionsOfHost.get(host) ?? 1) - 1;
    if (count === 0) this.#connectionsOfHost.delete(host);
    else this.#connectionsOfHost.set(host, count);
  }

  onOutput(connection: ClientConnection): void {
    this.#withOutput.push(connection);
  }

  onHeldBack(connection: ClientConnection): void {
    this.#heldBack.add(connection);
  }

  decideConnect(request: ConnectRequest): ConnectDecision {
    const { pipeline, sessions } = this.#current;
    return decideConnect(request, sessions, pipeline.lastApplied, this.#options, this.nowMs());
  }

  get pipeline(): Pipeline {
    return this.#current.pipeline;
  }

  get authenticator(): Authenticator {
    return this.#ports.authenticator;
  }

  get trace(): Trace {
    return this.#ports.trace;
  }

  get frameBytesMax(): number {
    return this.#options.frameBytesMax;
  }

  get isServing(): boolean {
    return this.#phase === 'serving';
  }

  get isStopping(): boolean {
    return this.#phase === 'stopping';
  }

  get isOverloaded(): boolean {
    return this.#current.pipeline.inFlightCount > this.#options.globalOutstandingLimit;
  }

  aclOf(aclId: number): readonly Acl[] {
    return aclId === OPEN_ACL_ID ? OPEN_ACL : this.#current.database.tree.acls.get(aclId);
  }

  nowMs(): number {
    if (this.#turnMs < 0) this.#turnMs = Math.floor(this.#ports.clock.monotonicMs());
    return this.#turnMs;
  }

  wallMs(): number {
    if (this.#turnWallMs < 0) this.#turnWallMs = this.#ports.clock.wallMs();
    return this.#turnWallMs;
  }

  /* ------------------------------------------------------------------------------------------ time, turns ---- */

  /** Monotonic milliseconds at which `onTick` has something to do, at the latest. */
  nextDeadlineMs(): number {
    if (this.#withRoom.length > 0) return AT_ONCE;
    const serving = this.#serving;
    const storageMs = this.#storage.nextDeadlineMs();
    if (serving === null || this.#phase !== 'serving') return storageMs;
    return Math.min(storageMs, this.#nextTickMs, serving.nextDeadlineMs);
  }

  onTick(): void {
    const nowMs = this.nowMs();
    this.#storage.onTick(nowMs);
    const serving = this.#serving;
    if (serving === null || this.#phase !== 'serving') return;
    // What these clients sent is waiting because this server has too much to do: they are not silent.
    for (const { isHeldBack, session } of this.#heldBack) {
      if (isHeldBack && session !== null && !session.isClosing) serving.sessions.touch(session, nowMs);
    }
    serving.onTick(nowMs, this.wallMs());
    if (nowMs < this.#nextTickMs) return;
    this.#nextTickMs = nowMs + Math.min(this.#options.tickTimeMs, this.#options.sessionlessTimeoutMs);
    for (const connection of this.#connections) connection.onTick(nowMs, this.#options.sessionlessTimeoutMs);
  }

  /** The end of a turn: what was proposed goes to the disk together, what was answered leaves together. */
  onTurnEnd(): void {
    const withRoom = this.#withRoom;
    if (withRoom.length > 0) {
      this.#withRoom = [];
      for (const connection of withRoom) connection.goOn();
    }
    for (const connection of this.#heldBack) {
      connection.resumeReading();
      if (connection.isReading) this.#heldBack.delete(connection);
    }
    this.#storage.flush();
    const withOutput = this.#withOutput;
    this.#withOutput = [];
    for (const connection of withOutput) if (connection.flush()) this.#withRoom.push(connection);
    this.#turnMs = -1;
    this.#turnWallMs = -1;
    if (this.#phase === 'stopping') this.#maybeStopStorage();
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
    if (this.#serving === null) throw new Error('the server has not recovered its database yet');
    return this.#serving;
  }

  #refusalOf(connectionsOfHost: number): string | null {
    const { connectionsPerHostMax, connectionsMax } = this.#options;
    if (connectionsPerHostMax > 0 && connectionsOfHost > connectionsPerHostMax) {
      return `its address has ${connectionsPerHostMax} connections, as many as maxClientCnxns allows`;
    }
    if (connectionsMax > 0 && this.#connections.size >= connectionsMax) {
      return `there are ${connectionsMax} connections, as many as maxCnxns allows`;
    }
    if (this.#phase === 'stopping' || this.#phase === 'failed') return 'the server is stopping';
    return null;
  }

  /** While stopping: once nothing is in flight any more, connections end and the storage closes. */
  #maybeStopStorage(): void {
    const inFlight = this.#serving?.pipeline.inFlightCount ?? 0;
    if (inFlight > 0 || this.#phase !== 'stopping') return;
    for (const connection of [...this.#connections]) connection.closeAfterReplies('the server is stopping');
    this.#storage.stop();
  }
}

/** A deadline that has passed: the host ends another turn once it has looked at everybody else. */
const AT_ONCE = 0;

/** The events of a stream that was refused go nowhere. */
const REFUSED: StreamEvents = {
  onBytes() {},
  onDrain() {},
  onClosed() {},
};
