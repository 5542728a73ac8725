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
  type LearnerPacket,
  PacketType,
  type TxnEntry,
  type UnknownPacket,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../assert.ts';
import { LeaderLink } from '../links/leader-link.ts';
import type { EnsembleOptions } from '../options.ts';
import type { LearnerServing } from '../request/learner-serving.ts';
import type { Durable } from '../storage/durable.ts';
import type { EpochFileName } from '../storage/epoch-files.ts';
import type { Database } from '../tree/database.ts';
import type { Committed } from '../zab/committed.ts';
import { Learner } from '../zab/learner.ts';
import type { LearnerEffects } from '../zab/learner-host.ts';
import type { RecoveredState } from './member.ts';
import type { Members } from './members.ts';
import type { Role } from './role.ts';
import type { RoleEvents, RoleHost } from './role-host.ts';
import { zabOptionsOf } from './zab-options-of.ts';

/** Pauses before the attempts to connect, in milliseconds: a new leader opens its port within moments. */
const REDIAL_MS: readonly number[] = [5, 10, 20, 40, 80, 100, 100, 100, 100, 100];

const NEVER = Number.POSITIVE_INFINITY;

export class Learning implements Role, LearnerEffects {
  readonly leader: number;
  readonly #host: RoleHost;
  readonly #members: Members;
  readonly #events: RoleEvents;
  readonly #learner: Learner;
  #database: Database;
  /** The one that a snapshot of the leader's has filled, until it is installed. */
  #received: Database | null = null;
  readonly #isAnew: boolean;
  #wasTruncateRefused = false;
  #serving: LearnerServing | null = null;
  #isServing = false;
  #dial: { cancel(): void } | null = null;
  #attempts = 0;
  #redialMs = NEVER;
  #link: LeaderLink | null = null;
  #isOver = false;

  /** @param isAnew the history on the disk cannot be brought to the leader's: it begins with nothing */
  constructor(
    host: RoleHost,
    ensemble: EnsembleOptions,
    members: Members,
    leader: number,
    state: RecoveredState,
    isAnew: boolean,
    events: RoleEvents,
  ) {
    this.#host = host;
    this.#members = members;
    this.leader = leader;
    this.#events = events;
    this.#isAnew = isAnew;
    this.#database = isAnew ? host.makeDatabase() : state.database;
    const kind = members.isParticipant(host.options.serverId) ? 'follower' : 'observer';
    this.#learner = new Learner(
      {
        ...zabOptionsOf(host.options, ensemble),
        kind,
        configVersion: members.membership.version,
        logsInforms: ensemble.syncEnabled,
        isAnew,
      },
      host.ports.clock,
      isAnew ? { ...state.history, lastZxid: ZXID_ZERO, tail: [] } : state.history,
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

  start(): void {
    this.#connect();
  }

  leave(reason: string): void {
    this.stop(reason);
  }

  abandon(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#dial?.cancel();
    this.#link?.close(reason);
  }

  /* --------------------------------------------------------------------------------------- events of the core ---- */

  onLogSynced(durable: Durable<Zxid>): void {
    this.#learner.onLogSynced(durable);
  }

  onEpochDurable(name: EpochFileName, epoch: Durable<number>): void {
    this.#learner.onEpochDurable(name, epoch);
  }

  onRecovered({ database }: RecoveredState): void {
    this.#begin(database);
  }

  onTruncateRefused(reason: string): void {
    this.#wasTruncateRefused = true;
    this.stop(`the leader demands a truncation that cannot be done (${reason}): this server begins anew`);
  }

  onSnapshotInstalled(): void {
    const database = this.#received ?? this.#database;
    this.#received = null;
    this.#begin(database);
  }

  onTick(): void {
    if (this.#host.nowMs() >= this.#redialMs) this.#connect();
    if (!this.#isOver && this.#host.ports.clock.monotonicMs() >= this.#learner.nextDeadlineMs) this.#learner.onTick();
  }

  onTurnEnd(): void {}

  nextDeadlineMs(): number {
    return Math.min(this.#redialMs, this.#learner.nextDeadlineMs);
  }

  /* --------------------------------------------------------------------------------------------------- link ---- */

  #connect(): void {
    this.#redialMs = NEVER;
    this.#dial = this.#host.ports.network.connect(this.#members.quorumEndpointOf(this.leader), {
      onConnected: (stream) => {
        this.#dial = null;
        const link = new LeaderLink(stream, this.#host, () => this.#host.makeDatabase(), {
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
      },
      onConnectFailed: (reason) => {
        this.#dial = null;
        if (this.#isOver) return;
        const pauseMs = REDIAL_MS[this.#attempts++];
        if (pauseMs === undefined) this.stop(`server ${this.leader} cannot be reached as the leader: ${reason}`);
        else this.#redialMs = this.#host.nowMs() + pauseMs;
      },
    });
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

  writeEpoch(name: EpochFileName, epoch: number): void {
    this.#host.storage.writeEpoch(name, epoch);
  }

  append(zxid: Zxid, payload: Uint8Array): void {
    this.#host.storage.appendPayload(zxid, payload);
  }

  keepHistory(): void {
    // What is on the disk is of no use: an empty snapshot takes its place, and the leader sends everything.
    if (this.#isAnew) this.#host.storage.installSnapshot(this.#database);
    else this.#host.defer(() => this.#begin(this.#database));
  }

  truncate(zxid: Zxid): void {
    this.#host.storage.truncate(zxid);
  }

  installSnapshot(): void {
    assert(this.#received !== null, 'a snapshot is installed after it has been received');
    this.#host.storage.installSnapshot(this.#received);
  }

  /** The database is as the leader wants it to begin with. */
  #begin(database: Database): void {
    if (this.#isOver) return;
    this.#database = database;
    this.#serving = this.#host.makeLearnerServing(database, {
      forward: (packet) => this.send(packet),
      revalidate: (packet) => this.send(packet),
    });
    this.#learner.onReady(database.lastZxid);
  }

  proposed(entry: TxnEntry): void {
    this.#serving?.onProposed(entry);
  }

  committed(watermark: Committed<Zxid>): void {
    this.#host.trace.emit({ kind: 'committed', zxid: watermark });
    this.#serving?.onCommitted(watermark, this.#host.nowMs());
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
    this.#serving?.onRevalidated(sessionId, isValid, this.#host.nowMs());
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
