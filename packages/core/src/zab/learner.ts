/**
 * Follower and observer: how a server adopts a leader's history and then keeps up with it (Learner, Follower,
 * Observer). `learner-phase.ts` shows the phases. See docs/zab.md.
 *
 * Guarantees of a learner:
 *
 * 1. ACKEPOCH(e) is sent after acceptedEpoch = e is durable; ACK(z) after z and everything before it is; ACK(e,0) after
 *    the history before NEWLEADER is and, after that, currentEpoch = e.
 * 2. Between ACKEPOCH and the first ACK(e,0) it sends nothing: Apache's leader would take any packet for that ACK.
 * 3. Watermarks reported as committed ascend, are durable here (except on an observer that does not log), and do not
 *    exceed what the leader has committed.
 * 4. A follower acknowledges each proposal at most once, oldest first; an observer none. Our leaders treat an ACK as
 *    acknowledging everything before it, so they are sent one ACK for all txns of a log sync.
 *
 * An observer differs in nothing else. INFORM is PROPOSAL and COMMIT in one. Any fault of the leader or the link ends
 * the role, and no volatile state outlives it: the next role begins with what is on disk. So the link may be cut at any
 * point, and the disk always holds a prefix of some leader's history.
 */
import {
  epochOf,
  hexZxid,
  type LeaderPacket,
  leaseMsOf,
  nextZxid,
  OpCode,
  PacketType,
  previousZxid,
  type SyncStartPacket,
  type TxnEntry,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { DurabilityEvents, Durable, EpochFileName } from '../base/durable.ts';
import type { Clock } from '../base/ports.ts';
import { ackEpoch, ackEpochUncounted, ackNewLeader } from './acknowledgement.ts';
import { LearnerLease } from './answer-lease.ts';
import { AnsweredSyncs } from './answered-syncs.ts';
import { type ControlPacket, faultOf } from './control-packets.ts';
import { EpochAdoption } from './epoch-adoption.ts';
import { findExclusion, findOwnRefusal } from './exclusion.ts';
import type { History } from './history.ts';
import { LeaderSilence } from './leader-silence.ts';
import { LearnedHistory } from './learned-history.ts';
import type { LearnerEffects, LearnerOptions } from './learner-host.ts';
import { learnerInfo } from './learner-info.ts';
import { isUpToDate, type LearnerPhase, takesTxns } from './learner-phase.ts';
import { firstMissing, makePlaceholder } from './placeholder.ts';
import { ReceivedChanges } from './received-changes.ts';
import { faultOfTxn } from './txn-fault.ts';

const SYNC_MODES = {
  [PacketType.diff]: 'diff',
  [PacketType.trunc]: 'trunc',
  [PacketType.snap]: 'snap',
} as const satisfies Readonly<Record<SyncStartPacket['type'], string>>;

export class Learner implements DurabilityEvents {
  readonly #options: LearnerOptions;
  readonly #effects: LearnerEffects;
  readonly #history: Pick<History, 'lastZxid' | 'currentEpoch' | 'acceptedEpoch'>;

  #phase: LearnerPhase = 'connecting';
  /** The leader's epoch, from LEADERINFO on. */
  #epoch = 0;
  /** The leader announces nothing, so it is an Apache server. */
  #isApaches = false;
  #syncStart: SyncStartPacket | null = null;
  readonly #learned: LearnedHistory;
  readonly #adoption: EpochAdoption;
  #hasFoundGap = false;
  #exclusion: string | null = null;
  readonly #changes = new ReceivedChanges();
  readonly #syncs = new AnsweredSyncs();
  readonly #silence: LeaderSilence;
  readonly #clock: Clock;
  readonly #lease: LearnerLease;

  /** Starts the timeout for connecting, `initLimit` ticks. @param lease is notified of answers to pings by the host */
  constructor(
    options: LearnerOptions,
    clock: Clock,
    history: History,
    effects: LearnerEffects,
    lease: LearnerLease = new LearnerLease(),
  ) {
    const { lastZxid, currentEpoch, acceptedEpoch } = history;
    this.#clock = clock;
    this.#lease = lease;
    this.#options = options;
    this.#effects = effects;
    this.#history = { lastZxid, currentEpoch, acceptedEpoch };
    const logs = options.kind === 'follower' || options.logsInforms;
    this.#learned = new LearnedHistory(lastZxid, logs, effects);
    this.#adoption = new EpochAdoption(lastZxid);
    this.#silence = new LeaderSilence(options, clock);
  }

  get phase(): LearnerPhase {
    return this.#phase;
  }

  /** The txn that was received last; before `onReady`, the last of the log. */
  get lastProposed(): Zxid {
    return this.#learned.received.last;
  }

  /** What has been reported as committed; before that, the end of the history that the leader's stream continues. */
  get lastCommitted(): Zxid {
    return this.#learned.committed;
  }

  /** True when the leader's history has a gap behind this server's: only a snapshot can synchronize the two. */
  get hasFoundGap(): boolean {
    return this.#hasFoundGap;
  }

  /** Why this server stays out beyond its next connection attempt, human-readable; null when it does not. */
  get exclusion(): string | null {
    return this.#exclusion;
  }

  /** Milliseconds of the monotonic clock; Infinity while only this server's own disk is waited for. */
  get nextDeadlineMs(): number {
    return this.#silence.nextDeadlineMs;
  }

  /* --------------------------------------------------------------------------------------------- events ---- */

  /** The link is connected. The host dials and redials. */
  onConnected(): void {
    if (this.#phase === 'stopped') return;
    assert(this.#phase === 'connecting', 'a learner has one connection');
    this.#exclusion = findOwnRefusal(this.#options, this.#history);
    if (this.#exclusion !== null) {
      this.#stop('this server stays out');
      return;
    }
    this.#enter('discovery');
    this.#effects.send(learnerInfo(this.#options, this.#history.acceptedEpoch));
  }

  /**
   * A packet of the leader; called in the order in which they were sent. Never called between `pauseLink` and
   * `resumeLink`, not even for the rest of a chunk: the owner of the link buffers it.
   */
  onPacket(packet: LeaderPacket): void {
    if (this.#phase === 'stopped') return;
    assert(this.#phase !== 'connecting', 'packets come over a link that stands');
    assert(this.#phase !== 'preparing', 'a paused link delivers no packets');
    this.#silence.begin(this.#phase);
    switch (packet.type) {
      case PacketType.proposal:
        this.#receive(packet.entry, packet.payload);
        return;
      case PacketType.commit:
        this.#commit(packet.zxid);
        return;
      case PacketType.commitAndActivate:
        this.#activate(packet.zxid, packet.designatedLeader);
        this.#commit(packet.zxid);
        return;
      case PacketType.inform:
        if (this.#receive(packet.entry, packet.payload)) this.#commit(packet.entry.header.zxid);
        return;
      case PacketType.informAndActivate:
        this.#activate(packet.entry.header.zxid, packet.designatedLeader);
        if (this.#receive(packet.entry, packet.payload)) this.#commit(packet.entry.header.zxid);
        return;
      case PacketType.ping:
        // Apache's learners answer no ping before UPTODATE either, so leaders know which of their pings are answered.
        if (!isUpToDate(this.#phase)) return;
        if (packet.zxid !== ZXID_ZERO) this.#lease.onConfirmed();
        this.#effects.pinged(packet.zxid);
        return;
      case null:
        return;
      default:
        this.#onControl(packet);
    }
  }

  #activate(zxid: Zxid, designatedLeader: number): void {
    this.#changes.activate(zxid, designatedLeader);
    this.#effects.membershipAgreed(zxid, designatedLeader);
  }

  /** Bytes of the snapshot that follows SNAP have arrived, so the leader is alive. */
  onSnapshotProgress(): void {
    if (this.#phase === 'receiving') this.#silence.begin(this.#phase);
  }

  /** The host has received the complete snapshot that follows SNAP. */
  onSnapshotReceived(): void {
    if (this.#phase === 'stopped') return;
    assert(this.#phase === 'receiving', 'a snapshot follows SNAP');
    this.#enter('preparing');
    this.#effects.pauseLink();
    this.#effects.installSnapshot();
  }

  /**
   * Answers `keepHistory`, `truncate` and `installSnapshot`: the database and everything on disk end here, durably.
   *
   * A truncation may end before the requested zxid if the files allow no other. Then the role ends; the next one
   * reports the new end to its leader.
   */
  onReady(lastZxid: Durable<Zxid>): void {
    if (this.#phase === 'stopped') return;
    assert(this.#phase === 'preparing' && this.#syncStart !== null, 'the host answers what it was asked');
    const { type, zxid } = this.#syncStart;
    const expected = type === PacketType.diff ? this.#history.lastZxid : zxid;
    if (lastZxid !== expected) {
      assert(type === PacketType.trunc && lastZxid < zxid, 'the history is what it was asked to be');
      this.#stop(`the log cannot be truncated to ${hexZxid(zxid)}: it ends with ${hexZxid(lastZxid)} now`);
      return;
    }
    this.#learned.begin(lastZxid);
    this.#enter('catching-up');
    this.#effects.resumeLink();
  }

  onEpochDurable(name: EpochFileName, epoch: Durable<number>): void {
    if (this.#phase === 'stopped') return;
    assert(epoch === this.#epoch, "no epoch is written but the leader's");
    if (name === 'acceptedEpoch') this.#acknowledgeAccepted(epoch);
    else this.#adopt(epoch);
  }

  /** Everything appended up to `durable` is on the disk. */
  onLogSynced(durable: Durable<Zxid>): void {
    if (!takesTxns(this.#phase)) return;
    this.#learned.onLogSynced(durable);
    this.#maybeWriteCurrentEpoch();
    this.#learned.acknowledge(durable);
    this.#maybeCommit();
  }

  /** @param reason human-readable, see `StreamEvents` */
  onLinkClosed(reason: string): void {
    this.#stop(`the connection to the leader has ended: ${reason}`);
  }

  onTick(): void {
    const fault = this.#silence.findFault();
    if (fault !== null) this.#stop(fault);
  }

  /* ------------------------------------------------------------------------------------------- handshake ---- */

  #onControl(packet: ControlPacket): void {
    const { acceptedEpoch, currentEpoch, lastZxid } = this.#history;
    // No leader counts an observer's promise, so an observer may ignore one made to a leader that was never
    // established. Apache's observer in that state follows no leader until there is a later epoch.
    const epochMin = this.#options.kind === 'observer' ? currentEpoch : acceptedEpoch;
    const epochKnown = Math.max(acceptedEpoch, this.#options.leaderHistoryEpoch);
    const fault = faultOf(packet, { phase: this.#phase, epoch: this.#epoch, epochMin, epochKnown, lastZxid });
    if (fault !== null) {
      if (packet.type === PacketType.leaderInfo) this.#epoch = epochOf(packet.zxid);
      this.#stop(fault);
      return;
    }
    switch (packet.type) {
      case PacketType.leaderInfo:
        this.#isApaches = packet.announces === 0;
        this.#learned.acknowledgesEach = this.#isApaches;
        this.#lease.begin(leaseMsOf(packet.announces) === this.#options.leaseMs ? this.#options.leaseMs : 0);
        this.#onLeaderInfo(epochOf(packet.zxid));
        return;
      case PacketType.diff:
      case PacketType.trunc:
      case PacketType.snap:
        this.#onSyncStart(packet);
        return;
      case PacketType.newLeader:
        this.#adoption.onNewLeader(this.#learned.received.last);
        if (packet.configText !== null) {
          this.#effects.membershipAnnounced(
            packet.configText,
            this.#changes.pendingBehind(this.#learned.received.committedUpTo),
          );
        }
        this.#enter('securing');
        this.#maybeWriteCurrentEpoch();
        return;
      case PacketType.upToDate:
        this.#silence.onUpToDate();
        this.#adoption.onUpToDate(this.#learned.received.committedUpTo);
        this.#enter('finishing');
        this.#maybeServe();
        return;
      case PacketType.sync:
        this.#syncs.add(this.#learned.received.committedUpTo);
        this.#maybeSynced();
        return;
      case PacketType.revalidate:
        this.#effects.revalidated(packet.sessionId, packet.isValid);
        return;
      case PacketType.handOver:
        this.#effects.handedOver();
    }
  }

  #onLeaderInfo(epoch: number): void {
    this.#epoch = epoch;
    if (epoch > this.#history.acceptedEpoch) {
      this.#enter('accepting');
      this.#effects.acceptEpoch(epoch);
      return;
    }
    // It may have been counted for this epoch before, and must not be counted again: its history may have changed.
    this.#enter('choosing');
    this.#effects.send(ackEpochUncounted(this.#history.lastZxid));
  }

  #acknowledgeAccepted(accepted: Durable<number>): void {
    assert(this.#phase === 'accepting', 'an epoch is accepted once');
    const { lastZxid, currentEpoch } = this.#history;
    this.#enter('choosing');
    if (this.#options.isCounted) this.#effects.send(ackEpoch(accepted, currentEpoch, lastZxid));
    else this.#effects.send(ackEpochUncounted(lastZxid));
  }

  /** The zxid of DIFF is where the history will end; it must not be taken for the state of this server. */
  #onSyncStart(packet: SyncStartPacket): void {
    this.#syncStart = packet;
    this.#effects.synchronizing(SYNC_MODES[packet.type], packet.zxid);
    if (packet.type === PacketType.snap) {
      this.#enter('receiving');
      return;
    }
    this.#enter('preparing');
    this.#effects.pauseLink();
    if (packet.type === PacketType.diff) this.#effects.keepHistory();
    else this.#effects.truncate(packet.zxid);
  }

  #maybeWriteCurrentEpoch(): void {
    if (this.#phase !== 'securing') return;
    const history = this.#adoption.takeHistory(this.#learned.durable);
    if (history !== null) this.#effects.adoptEpoch(this.#epoch, history);
  }

  #adopt(currentEpoch: Durable<number>): void {
    assert(this.#phase === 'securing', 'an epoch is adopted once');
    this.#adoption.onWritten(currentEpoch, this.#learned.durable);
    this.#enter('waiting');
    this.#silence.expectUpToDate();
    this.#lease.onAnswering(this.#clock.monotonicMs(), true);
    this.#effects.send(ackNewLeader(currentEpoch));
    if (this.#options.kind === 'observer') return;
    this.#learned.beginAcknowledging();
  }

  #maybeServe(): void {
    if (this.#phase !== 'finishing') return;
    const epoch = this.#adoption.servedBy(this.#learned.committed);
    if (epoch === null) return;
    this.#enter('broadcast');
    this.#effects.send(ackNewLeader(epoch));
    this.#effects.serve(this.#epoch);
  }

  /* ------------------------------------------------------------------------------- proposals and commits ---- */

  /** @returns false when the role is over */
  #receive(entry: TxnEntry, payload: Uint8Array): boolean {
    const { zxid } = entry.header;
    if (this.#isInSnapshot(zxid)) return true;
    this.#maybeFillGap(zxid);
    const fault = faultOfTxn(zxid, this.#phase, this.#epoch, this.#learned.received);
    if (fault !== null) {
      this.#hasFoundGap = fault.isGap;
      this.#stop(`the leader has sent txn ${hexZxid(zxid)}${fault.reason}`);
      return false;
    }
    this.#learned.received.propose(zxid);
    this.#take(entry, payload);
    return true;
  }

  #take(entry: TxnEntry, payload: Uint8Array): void {
    const { header, txn } = entry;
    this.#learned.append(entry, payload);
    this.#effects.proposed(entry);
    if (txn.type !== OpCode.reconfig) return;
    this.#changes.propose(header.zxid);
    this.#effects.membershipProposed(header.zxid, txn.data);
  }

  /**
   * An Apache leader skips the zxid of a request that it cannot decode. So a gap among the txns of its own epoch, all
   * of which it has proposed itself, hides no txn. A gap in an older epoch may: the log of a server that followed then
   * can have a hole (ZOOKEEPER-2846).
   */
  #maybeFillGap(zxid: Zxid): void {
    if (!this.#isApaches || !takesTxns(this.#phase) || epochOf(zxid) !== this.#epoch) return;
    const first = firstMissing(this.#learned.received.last, zxid);
    if (first === null) return;
    for (let missing = first; missing < zxid; missing = nextZxid(missing)) {
      const { entry, payload } = makePlaceholder(missing);
      this.#learned.received.fill(missing);
      this.#take(entry, payload);
    }
    this.#effects.filled(first, previousZxid(zxid));
  }

  /** A leader may resend txns that its snapshot holds: it continues to commit while it takes one. */
  #isInSnapshot(zxid: Zxid): boolean {
    return this.#syncStart?.type === PacketType.snap && takesTxns(this.#phase) && zxid <= this.#learned.received.base;
  }

  #commit(zxid: Zxid): void {
    if (takesTxns(this.#phase) && this.#learned.received.commit(zxid)) this.#maybeCommit();
    else this.#stop(`the leader has sent COMMIT of ${hexZxid(zxid)}, which it has not proposed`);
  }

  #maybeCommit(): void {
    const watermark = this.#learned.takeCommitted();
    if (watermark === null) return;
    this.#effects.committed(watermark);
    this.#maybeSynced();
    this.#maybeServe();
    // Last, because the host may end the role on a membership change.
    const change = this.#changes.takeCommitted(watermark);
    if (change !== null) this.#effects.membershipCommitted(change.zxid, change.designatedLeader);
  }

  #maybeSynced(): void {
    const count = this.#syncs.take(this.#learned.committed);
    if (count !== null) this.#effects.synced(count);
  }

  /* ------------------------------------------------------------------------------------ time, and the end ---- */

  #enter(phase: LearnerPhase): void {
    this.#phase = phase;
    this.#silence.begin(phase);
  }

  #stop(reason: string): void {
    if (this.#phase === 'stopped') return;
    if (this.#phase === 'discovery') this.#exclusion = findExclusion(reason, this.#epoch, this.#options, this.#history);
    this.#phase = 'stopped';
    this.#silence.end();
    this.#effects.stop(reason);
  }
}
