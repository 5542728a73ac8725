import {
  counterOf,
  type LeaderPacket,
  type LearnerPacket,
  makeProposal,
  makeZxid,
  OpCode,
  PacketType,
  QUORUM_PROTOCOL_VERSION,
  type TxnEntry,
  type UnknownPacket,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import { LearnerLease } from '../zab/answer-lease.ts';
import type { Committed } from '../zab/committed.ts';
import { Learner } from '../zab/learner.ts';
import type { LearnerEffects, LearnerOptions } from '../zab/learner-host.ts';
import { LearnerDisk } from './learner-disk.ts';
import { ManualClock } from './test-server.ts';

export type Sent = Exclude<LearnerPacket, UnknownPacket>;

/** A request of a learner to its host. */
export type Asked =
  | { readonly kind: 'send'; readonly packet: Sent }
  | { readonly kind: 'append' | 'proposed' | 'truncate' | 'committed' | 'pinged'; readonly zxid: Zxid }
  | { readonly kind: 'write'; readonly name: 'acceptedEpoch' | 'currentEpoch'; readonly epoch: number }
  | { readonly kind: 'pause' | 'resume' | 'keep' | 'install' | 'handed-over' }
  | { readonly kind: 'serve'; readonly epoch: number }
  | { readonly kind: 'filled'; readonly first: Zxid; readonly last: Zxid }
  | { readonly kind: 'synced'; readonly count: number }
  | { readonly kind: 'membership'; readonly what: string; readonly zxid: Zxid | null }
  | { readonly kind: 'revalidated'; readonly sessionId: bigint; readonly isValid: boolean }
  | { readonly kind: 'stop'; readonly reason: string };

export const TICK_MS = 2000;
export const INIT_LIMIT = 10;
export const SYNC_LIMIT = 5;

export interface TestLearnerShape {
  readonly kind: 'follower' | 'observer';
  readonly logsInforms: boolean;
  readonly isCounted: boolean;
  /** null: the epoch of the learner's own history. */
  readonly leaderHistoryEpoch: number | null;
  readonly leaderChecksPromises: boolean;
  readonly leaseMs: number;
  readonly lastZxid: Zxid;
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
  /** The txns of the log; without them the history is a snapshot. */
  readonly log: readonly Zxid[];
}

/** A single learner: the test plays the leader, and decides when the disk has completed a request. */
export class TestLearner implements LearnerEffects {
  readonly clock: ManualClock = new ManualClock();
  readonly disk: LearnerDisk;
  /** Called synchronously with every request of the learner. */
  onAsked: (asked: Asked) => void = () => {};
  learner: Learner;
  /** Of the current role. */
  lease: LearnerLease = new LearnerLease();
  readonly #options: Omit<LearnerOptions, 'leaderHistoryEpoch'>;
  readonly #leaderHistoryEpoch: number | null;
  /** How the leader has said that it synchronizes. */
  readonly synchronizations: { readonly mode: 'diff' | 'trunc' | 'snap'; readonly zxid: Zxid }[] = [];
  #asked: Asked[] = [];
  #isPaused = false;
  /** Packets that arrived on a paused link. */
  #kept: LeaderPacket[] = [];
  #snapshotZxid: Zxid = ZXID_ZERO;

  constructor({
    kind = 'follower',
    logsInforms = true,
    lastZxid = ZXID_ZERO,
    log = [],
    acceptedEpoch = 0,
    currentEpoch = 0,
    isCounted = true,
    leaderHistoryEpoch = null,
    leaderChecksPromises = true,
    leaseMs = 0,
  }: Partial<TestLearnerShape> = {}) {
    const limits = { tickTimeMs: TICK_MS, initLimit: INIT_LIMIT, syncLimit: SYNC_LIMIT, leaseMs };
    const rest = { epochTxnsMax: 1000, commitLogCount: 500, txnBytesMax: 1_000_000, configVersion: ZXID_ZERO };
    this.#options = { serverId: 2, kind, logsInforms, isCounted, leaderChecksPromises, ...limits, ...rest };
    this.#leaderHistoryEpoch = leaderHistoryEpoch;
    this.disk = new LearnerDisk({ lastZxid, acceptedEpoch, currentEpoch }, log);
    this.learner = this.#makeLearner();
  }

  /* --------------------------------------------------------------------------------------- input of the test ---- */

  /** Another role begins, with what is durable. */
  restart(): void {
    this.disk.lose();
    this.#isPaused = false;
    this.#kept = [];
    this.learner = this.#makeLearner();
  }

  /** A packet arrives. */
  receive(...packets: readonly LeaderPacket[]): void {
    this.#kept.push(...packets);
    this.#deliver();
  }

  snapshotArrives(): void {
    this.learner.onSnapshotReceived();
  }

  /** The disk completes all requests, including those that result from them. */
  diskDoesAll(): void {
    while (!this.disk.isIdle) this.diskDoesOne();
  }

  diskDoesOne(): void {
    if (this.disk.change !== null) this.finishChange();
    else if (this.disk.unsynced.length > 0) this.disk.sync(this.learner);
    else if (this.disk.epochWrites.length > 0) this.disk.finishEpoch(this.learner);
  }

  finishChange(): void {
    this.disk.finishChange(this.learner);
    this.#deliver();
  }

  advance(ms: number): void {
    this.clock.nowMs += ms;
    if (this.learner.nextDeadlineMs <= this.clock.nowMs) this.learner.onTick();
  }

  /** Up to the point where the leader's history begins, by DIFF, in this epoch. */
  beginDiff(epoch: number, leader: LeaderPacket = leaderInfo(epoch)): void {
    this.learner.onConnected();
    this.receive(leader);
    this.diskDoesAll();
    this.receive({ type: PacketType.diff, zxid: this.disk.lastZxid });
    this.diskDoesAll();
  }

  /** Up to the point where clients are served, with nothing new in the leader's history. */
  synchronize(epoch: number, leader: LeaderPacket = leaderInfo(epoch)): void {
    this.beginDiff(epoch, leader);
    this.receive(newLeader(epoch));
    this.diskDoesAll();
    this.receive({ type: PacketType.upToDate });
  }

  /** All requests since the last call. */
  takeAsked(): readonly Asked[] {
    const asked = this.#asked;
    this.#asked = [];
    return asked;
  }

  /** The packets among them. */
  takeSent(): readonly Sent[] {
    return this.takeAsked().flatMap((asked) => (asked.kind === 'send' ? [asked.packet] : []));
  }

  /** The zxids of the ACKs among them. */
  takeAcks(): readonly Zxid[] {
    return this.takeSent().flatMap((packet) => (packet.type === PacketType.ack ? [packet.zxid] : []));
  }

  #makeLearner(): Learner {
    const history = this.disk.recover();
    const leaderHistoryEpoch = this.#leaderHistoryEpoch ?? history.currentEpoch;
    this.lease = new LearnerLease();
    return new Learner({ ...this.#options, leaderHistoryEpoch }, this.clock, history, this, this.lease);
  }

  #deliver(): void {
    while (!this.#isPaused) {
      const packet = this.#kept.shift();
      if (packet === undefined) return;
      if (packet.type === PacketType.snap) this.#snapshotZxid = packet.zxid;
      this.learner.onPacket(packet);
    }
  }

  #ask(asked: Asked): void {
    this.#asked.push(asked);
    this.onAsked(asked);
  }

  /* ----------------------------------------------------------------------------------------------- effects ---- */

  send(packet: Sent): void {
    this.#ask({ kind: 'send', packet });
  }

  pauseLink(): void {
    this.#isPaused = true;
    this.#ask({ kind: 'pause' });
  }

  resumeLink(): void {
    this.#isPaused = false;
    this.#ask({ kind: 'resume' });
  }

  acceptEpoch(epoch: number): void {
    this.#writeEpoch('acceptedEpoch', epoch);
  }

  adoptEpoch(epoch: number): void {
    this.#writeEpoch('currentEpoch', epoch);
  }

  #writeEpoch(name: 'acceptedEpoch' | 'currentEpoch', epoch: number): void {
    this.disk.epochWrites.push({ name, epoch });
    this.#ask({ kind: 'write', name, epoch });
  }

  append(zxid: Zxid): void {
    this.disk.unsynced.push(zxid);
    this.#ask({ kind: 'append', zxid });
  }

  synchronizing(mode: 'diff' | 'trunc' | 'snap', zxid: Zxid): void {
    this.synchronizations.push({ mode, zxid });
  }

  truncate(zxid: Zxid): void {
    const { base, log } = this.disk;
    const kept = log.filter((z) => z <= zxid);
    this.disk.change = { what: 'truncated', base: base > zxid ? zxid : base, log: kept };
    this.#ask({ kind: 'truncate', zxid });
  }

  installSnapshot(): void {
    this.disk.change = { what: 'snapshot installed', base: this.#snapshotZxid, log: [] };
    this.#ask({ kind: 'install' });
  }

  keepHistory(): void {
    this.disk.change = { what: 'history kept', base: this.disk.base, log: this.disk.log };
    this.#ask({ kind: 'keep' });
  }

  proposed({ header }: TxnEntry): void {
    this.#ask({ kind: 'proposed', zxid: header.zxid });
  }

  filled(first: Zxid, last: Zxid): void {
    this.#ask({ kind: 'filled', first, last });
  }

  committed(watermark: Committed<Zxid>): void {
    this.#ask({ kind: 'committed', zxid: watermark });
  }

  serve(epoch: number): void {
    this.#ask({ kind: 'serve', epoch });
  }

  synced(count: number): void {
    this.#ask({ kind: 'synced', count });
  }

  revalidated(sessionId: bigint, isValid: boolean): void {
    this.#ask({ kind: 'revalidated', sessionId, isValid });
  }

  pinged(zxid: Zxid): void {
    this.#ask({ kind: 'pinged', zxid });
  }

  membershipAgreed(): void {}
  membershipProposed(zxid: Zxid): void {
    this.#ask({ kind: 'membership', what: 'proposed', zxid });
  }

  membershipAnnounced(_configText: string, pending: Zxid | null): void {
    this.#ask({ kind: 'membership', what: 'announced', zxid: pending });
  }

  membershipCommitted(zxid: Zxid): void {
    this.#ask({ kind: 'membership', what: 'committed', zxid });
  }

  handedOver(): void {
    this.#ask({ kind: 'handed-over' });
  }

  stop(reason: string): void {
    this.#ask({ kind: 'stop', reason });
  }
}

/* ------------------------------------------------------------------------------------------ packets of leaders ---- */

/** @param announces 0 like Apache leaders */
export function leaderInfo(
  epoch: number,
  protocolVersion: number = QUORUM_PROTOCOL_VERSION,
  announces = 0,
): LeaderPacket {
  return { type: PacketType.leaderInfo, zxid: makeZxid(epoch, 0), protocolVersion, announces };
}

export function newLeader(epoch: number): LeaderPacket {
  return { type: PacketType.newLeader, zxid: makeZxid(epoch, 0), configText: null };
}

export function proposal(zxid: Zxid): LeaderPacket {
  return makeProposal(PacketType.proposal, makeEntry(zxid));
}

export function inform(zxid: Zxid): LeaderPacket {
  return makeProposal(PacketType.inform, makeEntry(zxid));
}

export function commit(zxid: Zxid): LeaderPacket {
  return { type: PacketType.commit, zxid };
}

export function makeEntry(zxid: Zxid): TxnEntry {
  const header = { sessionId: 1n, cxid: counterOf(zxid) % 1000, zxid, time: 0 };
  return { header, txn: { type: OpCode.error, error: -101 }, digest: null };
}
