import type { CoreOptions } from './base/options.ts';
import type { ByteStream, Ports, StreamEvents } from './base/ports.ts';
import { ServerStats } from './base/server-stats.ts';
import type { FourLetterWords, ServerView } from './base/server-view.ts';
import { Turn } from './base/turn.ts';
import { ClientHost, DRAINED } from './client-host.ts';
import { CoreView } from './core-view.ts';
import { AnswerGate } from './links/answer-gate.ts';
import { ClientConnections } from './links/client-connections.ts';
import type { PaceLimits } from './request/apply-pace.ts';
import { AuditTrail } from './request/audit-trail.ts';
import type { EndCause } from './request/leader-serving.ts';
import { Permission } from './request/permission.ts';
import type { OnApplied } from './request/pipeline.ts';
import type { LeaseKnowledge } from './request/read.ts';
import { ServingLimits } from './request/serving-limits.ts';
import { WorkMeter } from './request/work-meter.ts';
import { type RestorableSnapshot, type ServerCoreEvents, ServerLife } from './server-life.ts';
import { type Serving, ServingFactory } from './serving.ts';
import { SessionIds } from './session/session-ids.ts';
import { snapshotName } from './storage/file-names.ts';
import type { NewestSnapshotFile } from './storage/upkeep.ts';
import { WatchManager } from './watch/watch-manager.ts';

/** A snapshot on the disk. */
export interface SnapshotFile {
  readonly path: string;
  readonly zxid: number;
  /** Uncompressed size. */
  readonly bytes: number;
}

export interface ServerCoreParts {
  readonly fourLetterWords: (view: ServerView) => FourLetterWords;
  /** For checkers of a whole ensemble. Default: none. */
  readonly onApplied?: OnApplied | null;
  /** Default: about two milliseconds of work in a turn. */
  readonly pace?: PaceLimits;
}

/**
 * One server: the only entry point of the core. Events in, effects out.
 *
 * The host delivers events (`onStreamOpened`, the events of streams and files, `onTick`) and calls `onTurnEnd` after
 * each batch of them. It asks `nextDeadlineMs` when to call `onTick`. `ServerLife` shows the states between `start` and
 * `onStopped`.
 */
export class ServerCore {
  readonly stats: ServerStats = new ServerStats();
  readonly view: ServerView;
  readonly limits: ServingLimits;
  readonly #turn: Turn;
  readonly #life: ServerLife;
  readonly #clients: ClientHost;
  readonly #connections: ClientConnections;
  readonly #watches = new WatchManager();
  readonly #work = new WorkMeter();
  readonly #snapshotDirectory: string;

  constructor(ports: Ports, options: CoreOptions, parts: ServerCoreParts, events: ServerCoreEvents) {
    const { stats } = this;
    this.#snapshotDirectory = options.snapshotDirectory;
    const turn = new Turn(ports.clock);
    const work = this.#work;
    const { meters } = turn;
    const watches = this.#watches;
    const connections = new ClientConnections(options, new AnswerGate(ports.clock));
    const { authenticator, trace } = ports;
    const limits = new ServingLimits(options.limits, watches, trace);
    const permission = new Permission(authenticator, options.skipAcl, work);
    const sessionIds = new SessionIds(options.serverId, ports.clock.wallMs());
    const { onApplied = null, pace } = parts;
    const audit = ports.audit == null ? null : new AuditTrail(ports.audit, authenticator);
    const knowledge: LeaseKnowledge = {
      get sharedLeaseMs(): number | null {
        return life.isReadOnly ? null : life.member.sharedLeaseMs;
      },
    };
    const servings = new ServingFactory(
      {
        options,
        permission,
        authenticator,
        watches,
        sessionIds,
        work,
        limits,
        meters,
        trace,
        onApplied,
        audit,
        knowledge,
        ...(pace === undefined ? {} : { pace }),
      },
      turn,
    );
    const life: ServerLife = new ServerLife({ ports, options, turn, servings, connections, events });
    this.view = new CoreView({
      options,
      stats,
      meters,
      limits,
      watches,
      connections: connections.all,
      clock: ports.clock,
      life,
    });
    const fourLetterWords = parts.fourLetterWords(this.view);
    this.#clients = new ClientHost({
      ports,
      options,
      turn,
      life,
      connections,
      permission,
      fourLetterWords,
      stats,
      work,
      limits,
    });
    this.limits = limits;
    this.#turn = turn;
    this.#life = life;
    this.#connections = connections;
  }

  start(): void {
    this.#life.start();
  }

  /** Accepts nothing more, finishes what is in flight, syncs and releases everything; then `onStopped`. */
  stop(): void {
    this.#life.stop();
  }

  /** A peer has connected to the client port. */
  onStreamOpened(stream: ByteStream): StreamEvents {
    return this.#clients.accept(stream);
  }

  get isServing(): boolean {
    return this.#life.isServing;
  }

  /** Whether sessions can be ended: needs a quorum, and a leader that hands over proposes nothing more. */
  get endsSessions(): boolean {
    return this.isServing && !this.#life.isReadOnly && !this.#life.member.isLeaving;
  }

  /**
   * Ends a session now; a learner asks its leader to. The trace emits `session-closed` once the closeSession is
   * applied, with the ephemerals deleted and their watches fired. The request is lost if the role ends first.
   *
   * @param cause `silence`: as if the session had timed out; a leader's trace reports it as expired
   * @returns false when this server knows no such session
   */
  expireSession(id: bigint, cause: EndCause = 'silence'): boolean {
    return this.isServing && this.#life.serving!.expireSession(id, this.#turn.wallMs(), cause);
  }

  /**
   * Writes a snapshot now, while serving, unless the newest one is up to date.
   *
   * @param done receives the newest snapshot; null when none could be taken
   */
  takeSnapshot(done: (snapshot: SnapshotFile | null) => void): void {
    if (!this.isServing || this.#life.isReadOnly) {
      done(null);
      return;
    }
    this.#life.storage.takeSnapshot((newest) => done(newest === null ? null : this.#snapshotFile(newest)));
  }

  /**
   * Durably replaces the whole history of a standalone server by a snapshot; the old history is set aside. Connections
   * are closed, and clients whose sessions are in the snapshot resume them.
   *
   * @param done called once the snapshot is recovered, before clients are served. On an error the old history remains,
   *   unless the server has failed
   */
  restore(snapshot: RestorableSnapshot, done: (error: Error | null) => void): void {
    this.#life.restore(snapshot, done);
  }

  /** Whether connect requests are refused, so that clients connect to other servers. */
  get isDraining(): boolean {
    return this.#clients.isDraining;
  }

  setDraining(isDraining: boolean): void {
    this.#clients.isDraining = isDraining;
  }

  /** Closes up to `countMax` client connections; the clients reconnect, here or elsewhere. @returns how many */
  shed(countMax: number): number {
    return this.#connections.shed(countMax, DRAINED);
  }

  /** null while there is no snapshot on disk. */
  newestSnapshot(): SnapshotFile | null {
    const { newestSnapshot } = this.#life.storage;
    return newestSnapshot.zxid < 0 ? null : this.#snapshotFile(newestSnapshot);
  }

  #snapshotFile({ zxid, compression, bytes }: NewestSnapshotFile): SnapshotFile {
    return { path: `${this.#snapshotDirectory}/${snapshotName(zxid, compression)}`, zxid, bytes };
  }

  /* ------------------------------------------------------------------------------------------ time, turns ---- */

  /** Monotonic milliseconds at which `onTick` has something to do, at the latest. */
  nextDeadlineMs(): number {
    const { storage, member } = this.#life;
    if (this.#connections.hasWork || this.#hasChores || this.#turn.hasWork) return AT_ONCE;
    const servingMs = this.#tickingServing?.nextDeadlineMs ?? Number.POSITIVE_INFINITY;
    const memberMs = member.nextDeadlineMs();
    return Math.min(storage.nextDeadlineMs(), memberMs, this.#connections.nextDeadlineMs, servingMs);
  }

  onTick(): void {
    const { phase } = this.#life;
    if (phase === 'failed' || phase === 'stopped') return;
    const nowMs = this.#turn.nowMs();
    this.#life.storage.onTick(nowMs);
    this.#connections.onTick(nowMs);
    this.#life.member.onTick();
    const serving = this.#tickingServing;
    if (serving === null) return;
    // Requests of these clients wait because this server is overloaded: the clients are not silent.
    for (const { isHeldBack, session } of this.#connections.heldBack) {
      if (isHeldBack && session !== null && !session.isClosing) serving.table.touch(session, nowMs);
    }
    serving.onTick(nowMs, this.#turn.wallMs());
  }

  /** The serving whose timers run; null while a leader hands over. */
  get #tickingServing(): Serving | null {
    return this.isServing && !this.#life.member.isLeaving ? this.#life.serving : null;
  }

  /** Ends a turn: writes its proposals to disk in one batch, then sends its replies in one batch. */
  onTurnEnd(): void {
    this.#turn.runDeferred();
    this.#life.serving?.pipeline.onTurnEnd(this.#turn.nowMs());
    if (this.isServing) this.#connections.onServing();
    this.#connections.advance(this.#work);
    this.#watches.sweep();
    this.#life.serving?.database.tree.quotas.advance();
    this.#life.member.onTurnEnd();
    // Before the local write, so that followers write the proposals at the same time.
    this.#turn.flushLinks();
    this.#life.storage.flush();
    this.#connections.flush();
    this.#connections.flushEvents(this.#life.phase === 'stopping' ? Number.POSITIVE_INFINITY : undefined);
    this.#connections.onTurnEnd();
    this.#work.onTurnEnd();
    this.#turn.end();
    this.#life.maybeStopStorage();
  }

  /** Background work that is done in parts, one per turn. */
  get #hasChores(): boolean {
    const { serving } = this.#life;
    if (this.#watches.hasGone) return true;
    return serving !== null && (serving.pipeline.hasWork || serving.database.tree.quotas.isCounting);
  }
}

/** A deadline that has passed: the host runs another turn after it has polled for other events. */
const AT_ONCE = 0;
