import {
  counterOf,
  epochOf,
  type ForwardedRequestPacket,
  JuteReader,
  JuteWriter,
  type LeaderPacket,
  makeProposal,
  makeZxid,
  OpCode,
  PacketType,
  type RevalidateRequestPacket,
  readTxnEntry,
  type SessionTimeout,
  type Txn,
  type TxnEntry,
  type UnknownPacket,
  writeLeaderPacket,
  ZXID_NONE,
  type Zxid,
} from '@meerkat/protocol';
import { type LogRecord, LogThread } from './apache-disk.ts';
import { Gate } from './apache-gate.ts';
import { type ApacheHost, ApacheTimers, memberOf } from './apache-host.ts';
import { ApachePreparer } from './apache-preparer.ts';
import { LearnerHandler, type StateSummary } from './learner-handler.ts';

interface Outstanding extends LogRecord {
  readonly entry: TxnEntry;
  readonly acks: Set<number>;
}

/** A leader of 3.8.0 (Leader): discovery, epoch, history, broadcast. Each zxid needs its own acknowledgements. */
export class ApacheLeader {
  readonly #host: ApacheHost;
  readonly #timers: ApacheTimers;
  readonly #log: LogThread;
  readonly #handlers = new Set<LearnerHandler>();
  readonly #forwarding = new Set<LearnerHandler>();
  readonly #observing = new Set<LearnerHandler>();
  readonly #epochGate: Gate;
  readonly #epochAckGate: Gate;
  readonly #newLeaderGate: Gate;
  readonly #startGate: Gate;
  readonly #connecting = new Set<number>();
  readonly #electing = new Set<number>();
  readonly #newLeaderAcks = new Set<number>();
  readonly #outstanding = new Map<Zxid, Outstanding>();
  readonly #parkedSyncs = new Map<Zxid, (LearnerHandler | null)[]>();
  readonly #summary: StateSummary;
  #preparer: ApachePreparer | null = null;
  #epoch = -1;
  #lastProposed: Zxid = ZXID_NONE;
  #lastCommitted: Zxid = ZXID_NONE;
  #isOver = false;
  #unlisten: () => void = () => {};
  tick = 0;
  #skipsTick = true;

  constructor(host: ApacheHost) {
    this.#host = host;
    this.#timers = new ApacheTimers(host.timeline);
    this.#log = new LogThread(host, host.disk, (zxid) => this.processAck(host.serverId, zxid));
    this.#summary = { currentEpoch: host.disk.currentEpoch, lastZxid: host.database.lastProcessedZxid };
    this.#epochGate = new Gate(host);
    this.#epochAckGate = new Gate(host);
    this.#newLeaderGate = new Gate(host);
    this.#startGate = new Gate(host);
  }

  get lastProposed(): Zxid {
    return this.#lastProposed;
  }

  /** Proposals that are not committed yet. */
  get outstandingCount(): number {
    return this.#outstanding.size;
  }

  get newLeaderZxid(): Zxid {
    return makeZxid(this.#epoch, 0);
  }

  get handlers(): readonly LearnerHandler[] {
    return [...this.#handlers];
  }

  start(): void {
    const { network, hostName, membership, serverId, disk, database } = this.#host;
    disk.save({ zxid: database.lastProcessedZxid, bytes: database.writeSnapshot() }, false);
    const port = memberOf(membership, serverId)?.addresses[0]?.quorumPort ?? 0;
    this.#unlisten = network.listen(hostName, port, (end) => {
      const handler = new LearnerHandler(this.#host, this);
      this.#handlers.add(handler);
      handler.open(end);
    });
    const fail = (what: string) => () => this.#shutDown(`no quorum within initLimit: ${what}`);
    this.getEpochToPropose(serverId, disk.acceptedEpoch, fail('FOLLOWERINFO'), () => {
      this.#lastProposed = this.newLeaderZxid;
      this.waitForEpochAck(serverId, this.#summary, fail('ACKEPOCH'), () => {
        disk.currentEpoch = this.#epoch;
        this.waitForNewLeaderAck(serverId, this.newLeaderZxid, fail('ACK of NEWLEADER'), () => this.#startServer());
      });
    });
  }

  /** The process or the role has ended. */
  kill(): void {
    this.#isOver = true;
    this.#log.kill();
    this.#timers.cancelAll();
    for (const gate of [this.#epochGate, this.#epochAckGate, this.#newLeaderGate, this.#startGate]) gate.close();
    this.#unlisten();
    for (const handler of [...this.#handlers]) handler.close('the leader ends');
  }

  /* ------------------------------------------------------------------------------------------- discovery ---- */

  getEpochToPropose(serverId: number, acceptedEpoch: number, fail: () => void, go: (epoch: number) => void): void {
    if (!this.#epochGate.isOpen) {
      if (acceptedEpoch >= this.#epoch) this.#epoch = acceptedEpoch + 1;
      if (this.#host.quorum.voters.has(serverId)) this.#connecting.add(serverId);
      if (this.#connecting.has(this.#host.serverId) && this.#host.quorum.isReachedBy(this.#connecting)) {
        this.#host.disk.acceptedEpoch = this.#epoch;
        this.#epochGate.open();
      }
    }
    this.#epochGate.wait(() => go(this.#epoch), fail);
  }

  /** @returns false when the learner has a later history than the leader, which closes the connection */
  waitForEpochAck(serverId: number, summary: StateSummary, fail: () => void, go: () => void): boolean {
    if (this.#epochAckGate.isOpen) {
      this.#epochAckGate.wait(go, fail);
      return true;
    }
    if (summary.currentEpoch !== -1) {
      const own = this.#summary;
      const isNewer =
        summary.currentEpoch > own.currentEpoch ||
        (summary.currentEpoch === own.currentEpoch && summary.lastZxid > own.lastZxid);
      if (isNewer) return false;
      if (summary.lastZxid !== -1 && this.#host.quorum.voters.has(serverId)) this.#electing.add(serverId);
    }
    if (this.#electing.has(this.#host.serverId) && this.#host.quorum.isReachedBy(this.#electing)) {
      this.#epochAckGate.open();
    }
    this.#epochAckGate.wait(go, fail);
    return true;
  }

  /** An ACK of any other zxid is not counted, but its sender continues. */
  waitForNewLeaderAck(serverId: number, zxid: Zxid, fail: () => void, go: () => void): void {
    if (!this.#newLeaderGate.isOpen) {
      if (zxid !== this.newLeaderZxid) {
        this.#host.complain(
          `ACK 0x${zxid.toString(16)} of server ${serverId} in the place of the ACK of NEWLEADER: 3.8.0 does not count it`,
        );
        go();
        return;
      }
      if (this.#host.quorum.voters.has(serverId)) this.#newLeaderAcks.add(serverId);
      if (this.#host.quorum.isReachedBy(this.#newLeaderAcks)) this.#newLeaderGate.open();
    }
    this.#newLeaderGate.wait(go, fail);
  }

  /** `waitForStartup` */
  waitForStart(go: () => void): void {
    this.#startGate.wait(go, null);
  }

  #startServer(): void {
    const { database, timings } = this.#host;
    const zxid = this.newLeaderZxid;
    this.#lastCommitted = zxid;
    database.lastProcessedZxid = zxid;
    this.#preparer = new ApachePreparer(this.#host);
    this.#startGate.open();
    this.#host.onServing(this.#epoch);
    this.#timers.after(timings.tickTimeMs / 2, () => this.#onHalfTick());
  }

  #onHalfTick(): void {
    if (this.#isOver) return;
    const { serverId, quorum, timings } = this.#host;
    this.#skipsTick = !this.#skipsTick;
    if (!this.#skipsTick) {
      this.tick++;
      const synced = [...this.#handlers].filter((handler) => handler.isSynced).map((handler) => handler.serverId);
      if (!quorum.isReachedBy([serverId, ...synced])) {
        this.#shutDown(`not enough followers: ${synced.join()}`);
        return;
      }
      this.#expireSessions();
    }
    for (const handler of [...this.#handlers]) handler.ping();
    this.#timers.after(timings.tickTimeMs / 2, () => this.#onHalfTick());
  }

  /* -------------------------------------------------------------------------------------- synchronization ---- */

  /** Queues the outstanding proposals that the learner lacks, and everything proposed from now on. */
  startForwarding(handler: LearnerHandler, from: Zxid): void {
    if (this.#lastProposed > from && !handler.isObserver) {
      for (const proposal of this.#outstanding.values()) {
        if (proposal.zxid > from) handler.queueProposal(PacketType.proposal, proposal);
      }
    }
    (handler.isObserver ? this.#observing : this.#forwarding).add(handler);
  }

  removeHandler(handler: LearnerHandler): void {
    this.#handlers.delete(handler);
    this.#forwarding.delete(handler);
    this.#observing.delete(handler);
  }

  /* -------------------------------------------------------------------------------------------- broadcast ---- */

  /** Assigns a zxid to a txn and sends it to the followers. @returns null when this leader cannot propose */
  propose(sessionId: bigint, cxid: number, txn: Txn): Zxid | null {
    if (this.#isOver || this.#preparer === null) return null;
    if (counterOf(this.#lastProposed) === COUNTER_MAX) {
      this.#shutDown('the counter of zxids is used up');
      return null;
    }
    const zxid = makeZxid(epochOf(this.#lastProposed), counterOf(this.#lastProposed) + 1);
    const time = WALL_START_MS + Math.floor(this.#host.timeline.nowMs);
    const made = makeProposal(PacketType.proposal, { header: { sessionId, cxid, zxid, time }, txn, digest: null });
    const entry = readTxnEntry(new JuteReader(made.payload));
    if (entry === null) throw new Error('what was written can be read');
    const proposal: Outstanding = { zxid, payload: made.payload, entry, acks: new Set() };
    this.#lastProposed = zxid;
    this.#outstanding.set(zxid, proposal);
    this.#preparer.onProposed(proposal, entry);
    for (const handler of this.#forwarding) handler.queueProposal(PacketType.proposal, proposal);
    this.#log.append(proposal);
    return zxid;
  }

  /** The effect of a multi with a null path: it takes a zxid, but there is no txn to propose. */
  skipZxid(): void {
    this.#lastProposed = (this.#lastProposed + 1) as Zxid;
  }

  /** Counts for exactly this zxid; a skipped zxid is never acknowledged. */
  processAck(serverId: number, zxid: Zxid): void {
    if (this.#isOver || counterOf(zxid) === 0 || this.#outstanding.size === 0 || this.#lastCommitted >= zxid) return;
    const proposal = this.#outstanding.get(zxid);
    if (proposal === undefined) {
      this.#host.complain(`ACK 0x${zxid.toString(16)} of server ${serverId} for a proposal that there is not`);
      return;
    }
    for (const earlier of this.#outstanding.values()) {
      if (earlier.zxid >= zxid) break;
      if (earlier.acks.has(serverId) || !this.#host.quorum.voters.has(serverId)) continue;
      this.#host.complain(
        `ACK 0x${zxid.toString(16)} of server ${serverId}, which has not acknowledged 0x${earlier.zxid.toString(16)}: ` +
          'for 3.8.0 it never has',
      );
      break;
    }
    proposal.acks.add(serverId);
    this.#tryToCommit(proposal);
  }

  #tryToCommit(proposal: Outstanding): void {
    const { zxid } = proposal;
    if (this.#outstanding.has((zxid - 1) as Zxid) || !this.#host.quorum.isReachedBy(proposal.acks)) return;
    this.#outstanding.delete(zxid);
    this.#lastCommitted = zxid;
    for (const handler of this.#forwarding) handler.queue({ type: PacketType.commit, zxid });
    for (const handler of this.#observing) handler.queueProposal(PacketType.inform, proposal);
    this.#host.database.apply(proposal, proposal.entry);
    this.#host.onApplied(zxid, proposal.entry);
    for (const handler of this.#parkedSyncs.get(zxid) ?? []) this.#answerSync(handler);
    this.#parkedSyncs.delete(zxid);
  }

  /** A request of a learner's client, or of this server's own (`from` null). */
  onRequest(from: LearnerHandler | null, request: ForwardedRequestPacket): void {
    if (this.#preparer === null || this.#isOver) return;
    if (request.op === OpCode.sync) {
      if (from === null || this.#outstanding.size === 0) this.#answerSync(from);
      else this.#parkedSyncs.set(this.#lastProposed, [...(this.#parkedSyncs.get(this.#lastProposed) ?? []), from]);
      return;
    }
    const txn = this.#preparer.prepare(request, from);
    if (txn !== null) this.propose(request.sessionId, request.cxid, txn);
  }

  onRevalidate(from: LearnerHandler, { sessionId, timeoutMs }: RevalidateRequestPacket): void {
    const isValid = this.#preparer?.revalidate(sessionId, timeoutMs, from) ?? false;
    from.queue({ type: PacketType.revalidate, sessionId, isValid });
  }

  onTouched(sessions: readonly SessionTimeout[]): void {
    for (const { sessionId, timeoutMs } of sessions) this.#preparer?.touch(sessionId, timeoutMs);
  }

  #answerSync(handler: LearnerHandler | null): void {
    if (handler === null) this.#host.onSynced();
    else handler.queue({ type: PacketType.sync });
  }

  #expireSessions(): void {
    this.onTouched(this.#host.takeTouched());
    for (const sessionId of this.#preparer?.takeExpired() ?? []) {
      const txn = this.#preparer?.closeSession(sessionId);
      if (txn !== undefined) this.propose(sessionId, 0, txn);
    }
  }

  #shutDown(reason: string): void {
    if (this.#isOver) return;
    this.kill();
    this.#log.drain();
    this.#host.onRoleEnded(reason);
  }
}

const COUNTER_MAX = 0xffffffff;
/** Initial wall-clock time of these servers; arbitrary. */
const WALL_START_MS = 1_700_000_000_000;

export function encode(packet: Exclude<LeaderPacket, UnknownPacket>): Uint8Array {
  const writer = new JuteWriter();
  writeLeaderPacket(writer, packet);
  return writer.toBytes();
}
