/**
 * The host of a follower or an observer: its way to the leader, its log, and the requests of its clients.
 *
 *     dial ─► LeaderLink ─► Learner ─► serve ─► clients are served
 *     redial ◄─┘ refused      │ ▲
 *                             ▼ └── REQUEST ◄── LearnerServing ◄── clients
 *                          log, snapshot
 *
 * A link that has stood and breaks ends the role; only the first connection is tried again.
 */
import {
  formatZxid,
  type LearnerPacket,
  PacketType,
  type TxnEntry,
  type UnknownPacket,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { type Durable, EMPTY_HISTORY } from '../base/durable.ts';
import type { EnsembleOptions } from '../base/options.ts';
import type { ByteStream, StreamEvents } from '../base/ports.ts';
import type { Decision } from '../election/election-host.ts';
import { LeaderDial } from '../links/leader-dial.ts';
import { LeaderLink } from '../links/leader-link.ts';
import { authenticated } from '../links/peer-authentication.ts';
import type { LearnerServing } from '../request/learner-serving.ts';
import type { Database } from '../tree/database.ts';
import type { Committed } from '../zab/committed.ts';
import { hasAllOf } from '../zab/history.ts';
import { Learner } from '../zab/learner.ts';
import type { LearnerEffects } from '../zab/learner-host.ts';
import type { RecoveredState } from './member.ts';
import type { Members } from './members.ts';
import type { Role } from './role.ts';
import type { RoleEvents, RoleHost } from './role-host.ts';
import { zabOptionsOf } from './zab-options-of.ts';

export class Learning implements Role, LearnerEffects {
  readonly leader: number;
  readonly #host: RoleHost;
  readonly #events: RoleEvents;
  readonly #learner: Learner;
  #database: Database;
  /** The one that a snapshot of the leader's has filled, until it is installed. */
  #received: Database | null = null;
  readonly #isAnew: boolean;
  /** Where the history on the disk ended when the role began. */
  readonly #historyEnd: Durable<Zxid>;
  #wasTruncateRefused = false;
  #serving: LearnerServing | null = null;
  #isServing = false;
  readonly #dial: LeaderDial;
  #link: LeaderLink | null = null;
  #isOver = false;

  /** @param isAnew the history on the disk cannot be brought to the leader's: it begins with nothing */
  constructor(
    host: RoleHost,
    ensemble: EnsembleOptions,
    members: Members,
    { leader, historyEpoch, historyZxid, judgesPromises }: Decision,
    state: RecoveredState,
    isAnew: boolean,
    events: RoleEvents,
  ) {
    this.#host = host;
    this.leader = leader;
    this.#events = events;
    this.#isAnew = isAnew;
    this.#historyEnd = state.history.lastZxid;
    this.#database = isAnew ? host.servings.makeDatabase() : state.database;
    const { addressTimeoutMs } = ensemble;
    const { network, clock, peerAuthentication = null } = host.ports;
    this.#dial = new LeaderDial(
      { clock, network: authenticated(network, peerAuthentication, 'quorum', host.ports.trace) },
      { addresses: members.quorumEndpointsOf(leader), addressTimeoutMs },
      {
        onConnected: (stream) => this.#onConnected(stream),
        onFailed: (reason) => this.stop(`server ${leader} cannot be reached as the leader: ${reason}`),
      },
    );
    const kind = members.isParticipant(host.options.serverId) ? 'follower' : 'observer';
    this.#learner = new Learner(
      {
        ...zabOptionsOf(host.options, ensemble),
        kind,
        configVersion: members.membership.version,
        leaderHistoryEpoch: historyEpoch,
        leaderJudgesPromises: judgesPromises,
        logsInforms: ensemble.syncEnabled,
        isCounted: !isAnew || hasAllOf({ currentEpoch: historyEpoch, lastZxid: historyZxid }, state.history),
      },
      host.ports.clock,
      isAnew ? { ...state.history, lastZxid: EMPTY_HISTORY, tail: [] } : state.history,
      this,
    );
  }

  get isEstablished(): boolean {
    return this.#isServing;
  }

  get isLeaving(): boolean {
    return this.#isOver;
  }

  /** True when this server's history and the leader's cannot be brought together: the next role begins with nothing. */
  get mustBeginAnew(): boolean {
    return this.#wasTruncateRefused || this.#learner.hasFoundGap;
  }

  /** Why this server stays out for longer than until the next try, for people; null when it need not. */
  get exclusion(): string | null {
    return this.#learner.exclusion;
  }

  start(): void {
    this.#host.storage.reportTo(this.#learner);
    this.#dial.start();
  }

  leave(reason: string): void {
    this.stop(reason);
  }

  abandon(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#host.storage.reportTo(null);
    this.#dial.cancel();
    this.#link?.close(reason);
  }

  /* --------------------------------------------------------------------------------------- events of the core ---- */

  onTick(): void {
    if (this.#host.ports.clock.monotonicMs() >= this.#dial.nextDeadlineMs) this.#dial.onTick();
    if (!this.#isOver && this.#host.ports.clock.monotonicMs() >= this.#learner.nextDeadlineMs) this.#learner.onTick();
  }

  onTurnEnd(): void {}

  nextDeadlineMs(): number {
    return Math.min(this.#dial.nextDeadlineMs, this.#learner.nextDeadlineMs);
  }

  /* --------------------------------------------------------------------------------------------------- link ---- */

  #onConnected(stream: ByteStream): StreamEvents {
    const link = new LeaderLink(stream, this.#host, () => this.#host.servings.makeDatabase(), {
      onPacket: (packet) => {
        if (!this.#isOver) this.#learner.onPacket(packet);
      },
      onSnapshot: (database) => {
        if (this.#isOver) return;
        this.#received = database;
        this.#learner.onSnapshotReceived();
      },
      onLinkClosed: (reason) => {
        if (!this.#isOver) this.#learner.onLinkClosed(reason);
      },
    });
    this.#link = link;
    if (this.#isOver) link.close('this server follows no more');
    else this.#learner.onConnected();
    return {
      onBytes: (chunk) => {
        link.onBytes(chunk);
        if (!this.#isOver) this.#learner.onSnapshotProgress();
      },
      onDrain: () => link.onDrain(),
      onClosed: (reason) => link.onClosed(reason),
    };
  }

  /* ------------------------------------------------------------------------------------ what the learner asks ---- */

  send(packet: Exclude<LearnerPacket, UnknownPacket>): void {
    this.#link?.send(packet);
  }

  pauseLink(): void {
    this.#link?.pause();
  }

  resumeLink(): void {
    this.#link?.resume();
  }

  acceptEpoch(epoch: number): void {
    this.#host.storage.writeEpoch('acceptedEpoch', epoch);
  }

  adoptEpoch(epoch: number): void {
    this.#host.storage.writeEpoch('currentEpoch', epoch);
  }

  append(zxid: Zxid, payload: Uint8Array): void {
    this.#host.storage.appendPayload(zxid, payload);
  }

  keepHistory(): void {
    // What is on the disk is of no use: an empty snapshot takes its place, and the leader sends everything.
    if (this.#isAnew) this.#install(this.#database);
    else this.#host.turn.defer(() => this.#begin(this.#database, this.#historyEnd));
  }

  truncate(zxid: Zxid): void {
    this.#host.storage.truncate(zxid, {
      onTruncated: (database, history) => this.#begin(database, history.lastZxid),
      onTruncateRefused: (reason) => {
        this.#wasTruncateRefused = true;
        this.stop(`the leader demands a truncation that cannot be done (${reason}): this server begins anew`);
      },
    });
  }

  installSnapshot(): void {
    assert(this.#received !== null, 'a snapshot is installed after it has been received');
    this.#install(this.#received);
    this.#received = null;
  }

  #install(database: Database): void {
    this.#host.storage.installSnapshot(database, (lastZxid) => this.#begin(database, lastZxid));
  }

  /** The database is as the leader wants it to begin with. */
  #begin(database: Database, lastZxid: Durable<Zxid>): void {
    if (this.#isOver) return;
    this.#database = database;
    this.#serving = this.#host.servings.makeLearnerServing(database, {
      forward: (packet) => this.send(packet),
      revalidate: (packet) => this.send(packet),
    });
    this.#learner.onReady(lastZxid);
  }

  proposed(entry: TxnEntry): void {
    this.#serving?.onProposed(entry);
  }

  filled(first: Zxid, last: Zxid): void {
    const range =
      first === last ? `zxid 0x${formatZxid(first)}` : `the zxids 0x${formatZxid(first)} to 0x${formatZxid(last)}`;
    this.#host.trace.emit({
      kind: 'warning',
      message: `server ${this.leader}, an Apache leader, has skipped ${range}, as it does when a client sends it a multi with a null path. An error txn is logged instead; nothing is lost`,
    });
  }

  committed(watermark: Committed<Zxid>): void {
    this.#host.trace.emit({ kind: 'committed', zxid: watermark });
    this.#serving?.onCommitted(watermark, this.#host.turn.nowMs());
  }

  serve(epoch: number): void {
    assert(this.#serving !== null, 'a learner serves from a database');
    this.#isServing = true;
    this.#host.storage.allowSnapshots();
    this.#events.onEstablished(epoch, this.#database.lastZxid);
    this.#host.beginServing(this.#serving);
  }

  synced(count: number): void {
    this.#serving?.onSynced(count);
  }

  revalidated(sessionId: bigint, isValid: boolean): void {
    this.#serving?.onRevalidated(sessionId, isValid, this.#host.turn.nowMs());
  }

  pinged(zxid: Zxid): void {
    this.send({ type: PacketType.ping, zxid, sessions: this.#serving?.takeTouched() ?? [] });
  }

  handedOver(): void {
    this.stop('the leader hands over');
  }

  stop(reason: string): void {
    if (this.#isOver) return;
    this.abandon(reason);
    this.#events.onEnded(reason);
  }
}
