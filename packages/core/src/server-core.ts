import type { CoreOptions } from './base/options.ts';
import type { ByteStream, Ports, StreamEvents } from './base/ports.ts';
import { ServerStats } from './base/server-stats.ts';
import type { FourLetterWords, ServerView } from './base/server-view.ts';
import { Turn } from './base/turn.ts';
import { ClientHost, DRAINED } from './client-host.ts';
import { CoreView } from './core-view.ts';
import { AnswerGate } from './links/answer-gate.ts';
import { ClientConnections } from './links/client-connections.ts';
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
  /** Before they were compressed. */
  readonly bytes: number;
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
 * each batch of them. It asks `nextDeadlineMs` when to call `onTick`. What becomes of the server between `start` and
 * `onStopped` is drawn in `ServerLife`.
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
    const onApplied = parts.onApplied ?? null;
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

  /** A client, or whoever pretends to be one, has connected. */
  onStreamOpened(stream: ByteStream): StreamEvents {
    return this.#clients.accept(stream);
  }

  get isServing(): boolean {
    return this.#life.isServing;
  }

  /** Whether it has a quorum that sessions can be ended with; a leader that hands over proposes nothing more. */
  get endsSessions(): boolean {
    return this.isServing && !this.#life.isReadOnly && !this.#life.member.isLeaving;
  }

  /**
   * Ends a session now; a learner asks its leader for it. The trace tells `session-closed` once its closeSession is applied:
   * then its ephemerals are gone and their watchers told. What was asked may come to nothing when the role ends before.
   *
   * @param cause `silence`: as if nothing had been heard of it for its timeout, which the trace of a leader says
   * @returns false when this server knows no such session
   */
  expireSession(id: bigint, cause: EndCause = 'silence'): boolean {
    return this.isServing && this.#life.serving!.expireSession(id, this.#turn.wallMs(), cause);
  }

  /**
   * Writes a snapshot now, beside the service, unless the newest one has everything already.
   *
   * @param done the path of the newest snapshot, its zxid and its bytes; null when there is none to be had
   */
  takeSnapshot(done: (snapshot: SnapshotFile | null) => void): void {
    if (!this.isServing || this.#life.isReadOnly) {
      done(null);
      return;
    }
    this.#life.storage.takeSnapshot((newest) => done(newest === null ? null : this.#snapshotFile(newest)));
  }

  /**
   * Makes a snapshot the whole history of a server of its own, durably; what it replaces is set aside. Connections end, and
   * clients whose sessions are in the snapshot resume them.
   *
   * @param done once it is recovered, and before clients are served; an error: the history is the one of before, unless the
   *   server has failed by it
   */
  restore(snapshot: RestorableSnapshot, done: (error: Error | null) => void): void {
    this.#life.restore(snapshot, done);
  }

  /** Whether sessions are refused, so that clients go to other servers. */
  get isDraining(): boolean {
    return this.#clients.isDraining;
  }

  setDraining(isDraining: boolean): void {
    this.#clients.isDraining = isDraining;
  }

  /** Closes connections of so many clients, which go on elsewhere, or come back. @returns how many */
  shed(countMax: number): number {
    return this.#connections.shed(countMax, DRAINED);
  }

  /** The newest snapshot on the disk; null while there is none. */
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
    // What these clients sent is waiting because this server has too much to do: they are not silent.
    for (const { isHeldBack, session } of this.#connections.heldBack) {
      if (isHeldBack && session !== null && !session.isClosing) serving.table.touch(session, nowMs);
    }
    serving.onTick(nowMs, this.#turn.wallMs());
  }

  /** What begins something by itself as time goes by; nothing while a leader hands over. */
  get #tickingServing(): Serving | null {
    return this.isServing && !this.#life.member.isLeaving ? this.#life.serving : null;
  }

  /** The end of a turn: what was proposed goes to the disk together, what was answered leaves together. */
  onTurnEnd(): void {
    this.#turn.runDeferred();
    this.#life.serving?.pipeline.onTurnEnd(this.#turn.nowMs());
    if (this.isServing) this.#connections.onServing();
    this.#connections.goOn(this.#work);
    this.#watches.sweep();
    this.#life.serving?.database.tree.quotas.goOn();
    this.#life.member.onTurnEnd();
    // Followers write what they are sent while this server writes it.
    this.#turn.flushLinks();
    this.#life.storage.flush();
    this.#connections.flush();
    this.#connections.flushEvents(this.#life.phase === 'stopping' ? Number.POSITIVE_INFINITY : undefined);
    this.#connections.onTurnEnd();
    this.#work.onTurnEnd();
    this.#turn.end();
    this.#life.maybeStopStorage();
  }

  /** Work of which a part is done in each turn. */
  get #hasChores(): boolean {
    const { serving } = this.#life;
    if (this.#watches.hasGone) return true;
    return serving !== null && (serving.pipeline.hasWork || serving.database.tree.quotas.isCounting);
  }
}

/** A deadline that has passed: the host ends another turn once it has looked at everybody else. */
const AT_ONCE = 0;
