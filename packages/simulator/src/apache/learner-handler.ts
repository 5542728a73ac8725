import {
  counterOf,
  epochOf,
  type ForwardedRequestPacket,
  JuteWriter,
  type LeaderPacket,
  type LearnerInfoPacket,
  type LearnerPacket,
  makeZxid,
  PacketType,
  QUORUM_PROTOCOL_VERSION,
  type RevalidateRequestPacket,
  readLearnerPacket,
  type SessionTimeout,
  type UnknownPacket,
  writeLeaderPacket,
  writeQuorumPacket,
  writeSnapSignature,
  ZXID_NONE,
  type Zxid,
} from '@meerkat/protocol';
import type { VirtualEnd } from '../virtual-network.ts';
import type { LogRecord } from './apache-disk.ts';
import { type ApacheHost, memberOf } from './apache-host.ts';
import { nameOf } from './packet-name.ts';
import { PacketSocket } from './packet-socket.ts';

type Phase = 'learner-info' | 'ack-epoch' | 'new-leader-ack' | 'serving' | 'over';

/** Where the history of a leader or a learner ends (`StateSummary`). */
export interface StateSummary {
  readonly currentEpoch: number;
  readonly lastZxid: Zxid;
}

/** The leader, as its learner threads see it. */
interface HandlersLeader {
  readonly tick: number;
  readonly lastProposed: Zxid;
  readonly newLeaderZxid: Zxid;
  getEpochToPropose(serverId: number, acceptedEpoch: number, fail: () => void, go: (epoch: number) => void): void;
  waitForEpochAck(serverId: number, summary: StateSummary, fail: () => void, go: () => void): boolean;
  waitForNewLeaderAck(serverId: number, zxid: Zxid, fail: () => void, go: () => void): void;
  waitForStart(go: () => void): void;
  startForwarding(handler: LearnerHandler, from: Zxid): void;
  removeHandler(handler: LearnerHandler): void;
  processAck(serverId: number, zxid: Zxid): void;
  onRequest(from: LearnerHandler, request: ForwardedRequestPacket): void;
  onRevalidate(from: LearnerHandler, request: RevalidateRequestPacket): void;
  onTouched(sessions: readonly SessionTimeout[]): void;
}

/** The thread of a leader of 3.8.0 that serves one learner (LearnerHandler). */
export class LearnerHandler {
  serverId = -1;
  isObserver = false;
  /** How the learner caught up. */
  mode: 'diff' | 'trunc' | 'snap' | null = null;
  readonly #host: ApacheHost;
  readonly #leader: HandlersLeader;
  readonly #socket: PacketSocket<LearnerPacket>;
  #phase: Phase = 'learner-info';
  /** Packets queued until the sending thread starts. */
  #queue: Uint8Array[] | null = [];
  #ackDeadlineTick: number;
  readonly #limit: SyncLimitCheck;

  constructor(host: ApacheHost, leader: HandlersLeader) {
    this.#host = host;
    this.#leader = leader;
    const { timings, timeline } = host;
    this.#ackDeadlineTick = leader.tick + timings.initLimit + timings.syncLimit;
    this.#limit = new SyncLimitCheck(timings.tickTimeMs * timings.syncLimit, () => timeline.nowMs);
    this.#socket = new PacketSocket(timeline, readLearnerPacket, {
      onPacket: (packet, raw) => this.#onPacket(packet, raw),
      onSocketClosed: (reason) => this.close(reason),
    });
  }

  open(end: VirtualEnd): void {
    this.#socket.open(end);
    this.#socket.setTimeout(this.#host.timings.tickTimeMs * this.#host.timings.initLimit);
    end.listen(this.#socket);
  }

  /** Any connected voter counts, even one that is still catching up. */
  get isSynced(): boolean {
    return this.#phase !== 'over' && !this.isObserver && this.#leader.tick <= this.#ackDeadlineTick;
  }

  close(reason: string): void {
    if (this.#phase === 'over') return;
    this.#phase = 'over';
    this.#host.warn(`the connection of server ${this.serverId} ends: ${reason}`);
    this.#socket.close();
    this.#leader.removeHandler(this);
  }

  queue(packet: Exclude<LeaderPacket, UnknownPacket>): void {
    const writer = new JuteWriter();
    writeLeaderPacket(writer, packet);
    this.#send(writer.toBytes());
  }

  queueProposal(type: typeof PacketType.proposal | typeof PacketType.inform, { zxid, payload }: LogRecord): void {
    const writer = new JuteWriter();
    writeQuorumPacket(writer, type, zxid, payload);
    if (type === PacketType.proposal) this.#limit.onProposal(zxid);
    this.#send(writer.toBytes());
  }

  ping(): void {
    if (this.#queue !== null || this.#phase === 'over') return;
    if (this.#limit.isKept()) this.queue({ type: PacketType.ping, zxid: this.#leader.lastProposed });
    else this.close('a proposal was not acknowledged within syncLimit');
  }

  #send(bytes: Uint8Array): void {
    if (this.#phase === 'over') return;
    if (this.#queue === null) this.#socket.write(bytes);
    else this.#queue.push(bytes);
  }

  /** Bypasses the queue, before the sending thread starts. */
  #writeNow(write: (writer: JuteWriter) => void): void {
    const writer = new JuteWriter();
    write(writer);
    this.#socket.write(writer.toBytes());
  }

  #onPacket(packet: LearnerPacket | null, raw: Uint8Array): void {
    if (packet === null) {
      this.#drop(`${raw.length} bytes that are no packet`);
      return;
    }
    switch (this.#phase) {
      case 'learner-info':
        this.#onLearnerInfo(packet);
        return;
      case 'ack-epoch':
        this.#onAckEpoch(packet);
        return;
      case 'new-leader-ack':
        this.#onNewLeaderAck(packet);
        return;
      case 'serving':
        this.#onServingPacket(packet);
        return;
      case 'over':
        return;
    }
  }

  #onLearnerInfo(packet: LearnerPacket): void {
    if (packet.type !== PacketType.followerInfo && packet.type !== PacketType.observerInfo) {
      this.#drop(`${nameOf(packet)} as the first packet`);
      return;
    }
    const { membership } = this.#host;
    this.serverId = packet.serverId ?? -1;
    if (!this.#isAcceptable(packet)) return;
    this.isObserver = packet.type === PacketType.observerInfo;
    const role = memberOf(membership, this.serverId)?.role;
    if (role === 'observer' && !this.isObserver)
      this.#host.complain(`FOLLOWERINFO of server ${this.serverId}, an observer`);
    this.#socket.block();
    const fail = () => this.close('no quorum of FOLLOWERINFO within initLimit');
    this.#leader.getEpochToPropose(this.serverId, epochOf(packet.zxid), fail, (epoch) => {
      if (this.#phase === 'over') return;
      this.#phase = 'ack-epoch';
      const type = PacketType.leaderInfo;
      const zxid = makeZxid(epoch, 0);
      this.#writeNow((writer) =>
        writeLeaderPacket(writer, { type, zxid, protocolVersion: QUORUM_PROTOCOL_VERSION, announces: 0 }),
      );
      this.#socket.unblock();
    });
  }

  #isAcceptable(packet: LearnerInfoPacket): boolean {
    if (packet.serverId === null) this.#host.complain('LearnerInfo without a server id, as before 3.4');
    if (packet.protocolVersion < QUORUM_PROTOCOL_VERSION) {
      this.#drop(`the protocol version 0x${packet.protocolVersion.toString(16)}`);
      return false;
    }
    if (packet.configVersion !== null && packet.configVersion > this.#host.membership.version) {
      this.#drop('a configuration that is newer than the leader has');
      return false;
    }
    if (counterOf(packet.zxid) !== 0)
      this.#host.complain(`LearnerInfo of server ${packet.serverId} with the zxid 0x${packet.zxid.toString(16)}`);
    return true;
  }

  #onAckEpoch(packet: LearnerPacket): void {
    if (packet.type !== PacketType.ackEpoch) {
      this.#drop(`${nameOf(packet)} in the place of ACKEPOCH`);
      return;
    }
    this.#socket.block();
    const summary = { currentEpoch: packet.currentEpoch, lastZxid: packet.zxid };
    const fail = () => this.close('no quorum of ACKEPOCH within initLimit');
    const isAccepted = this.#leader.waitForEpochAck(this.serverId, summary, fail, () => {
      if (this.#phase === 'over') return;
      this.#syncFollower(packet.zxid);
      this.#phase = 'new-leader-ack';
      this.queue({ type: PacketType.newLeader, zxid: this.#leader.newLeaderZxid, configText: this.#host.configText });
      this.#startSending();
      this.#socket.unblock();
    });
    if (!isAccepted) this.close(`its history ends behind the leader's: ${JSON.stringify(summary)}`);
  }

  /** Queues the history that the learner lacks (`syncFollower`). */
  #syncFollower(peer: Zxid): void {
    const { database, disk, isLogSyncEnabled } = this.#host;
    const log = database.committedLog;
    const last = database.lastProcessedZxid;
    const min = log[0]?.zxid ?? last;
    const max = log.at(-1)?.zxid ?? last;
    const isPeerEpochStart = counterOf(peer) === 0;
    let from: Zxid | null = last;
    if (peer === last) {
      this.#start('diff', peer);
      from = peer;
    } else if (peer > max && !isPeerEpochStart) {
      this.#start('trunc', max);
      from = max;
    } else if (min <= peer && peer <= max) {
      from = this.#queueCommitted(log, peer, null, max);
    } else if (peer < min && isLogSyncEnabled && (disk.log[0]?.zxid ?? Number.POSITIVE_INFINITY) <= peer) {
      const queued = this.#queueCommitted(disk.log, peer, min, max);
      if (queued !== null && queued >= min) from = this.#queueCommitted(log, queued, null, max);
      else {
        this.#queue = [];
        this.mode = null;
      }
    }
    if (this.mode === null) {
      this.#sendSnapshot();
      from = last;
    }
    this.#leader.startForwarding(this, from ?? last);
  }

  /** `queueCommittedProposals` @returns the zxid queued last; null when the learner's epoch is not the log's */
  #queueCommitted(log: readonly LogRecord[], peer: Zxid, limit: Zxid | null, diffZxid: Zxid): Zxid | null {
    const isPeerEpochStart = counterOf(peer) === 0;
    let needsStart = this.mode === null;
    let previous = ZXID_NONE;
    let queued = peer;
    for (const proposal of log) {
      const { zxid } = proposal;
      if (limit !== null && zxid > limit) break;
      if (zxid < peer) {
        previous = zxid;
        continue;
      }
      if (needsStart) {
        if (zxid === peer) {
          this.#start('diff', diffZxid);
          needsStart = false;
          continue;
        }
        if (isPeerEpochStart) this.#start('diff', diffZxid);
        else if (epochOf(zxid) !== epochOf(peer)) return null;
        else this.#start('trunc', previous);
        needsStart = false;
      }
      if (zxid <= queued) continue;
      this.queueProposal(PacketType.proposal, proposal);
      this.queue({ type: PacketType.commit, zxid });
      queued = zxid;
    }
    if (needsStart && isPeerEpochStart) this.#start('diff', diffZxid);
    return queued;
  }

  #start(mode: 'diff' | 'trunc', zxid: Zxid): void {
    this.mode = mode;
    this.queue({ type: mode === 'diff' ? PacketType.diff : PacketType.trunc, zxid });
  }

  #sendSnapshot(): void {
    const { database } = this.#host;
    this.mode = 'snap';
    this.#writeNow((writer) => {
      writeLeaderPacket(writer, { type: PacketType.snap, zxid: database.lastProcessedZxid });
      database.writeSnapshot(writer);
      writeSnapSignature(writer);
    });
  }

  #startSending(): void {
    const queue = this.#queue ?? [];
    this.#queue = null;
    for (const bytes of queue) this.#socket.write(bytes);
  }

  #onNewLeaderAck(packet: LearnerPacket): void {
    if (packet.type !== PacketType.ack) {
      this.#drop(`${nameOf(packet)} between ACKEPOCH and the ACK of NEWLEADER`);
      return;
    }
    const { timings } = this.#host;
    this.#socket.block();
    const fail = () => this.close('no quorum of ACKs of NEWLEADER within initLimit');
    this.#leader.waitForNewLeaderAck(this.serverId, packet.zxid, fail, () => {
      this.#limit.start();
      this.#leader.waitForStart(() => {
        if (this.#phase === 'over') return;
        this.#phase = 'serving';
        this.#socket.setTimeout(timings.tickTimeMs * timings.syncLimit);
        this.queue({ type: PacketType.upToDate });
        this.#socket.unblock();
      });
    });
  }

  #onServingPacket(packet: LearnerPacket): void {
    this.#ackDeadlineTick = this.#leader.tick + this.#host.timings.syncLimit;
    switch (packet.type) {
      case PacketType.ack:
        this.#limit.onAck(packet.zxid);
        this.#leader.processAck(this.serverId, packet.zxid);
        return;
      case PacketType.ping:
        this.#leader.onTouched(packet.sessions);
        return;
      case PacketType.revalidate:
        this.#leader.onRevalidate(this, packet);
        return;
      case PacketType.request:
        this.#leader.onRequest(this, { ...packet, body: packet.body.slice() });
        return;
      default:
        this.#host.complain(
          `${nameOf(packet)} of server ${this.serverId} while it is served: 3.8.0 warns and ignores it`,
        );
        return;
    }
  }

  #drop(what: string): void {
    this.#host.complain(`${what} from server ${this.serverId}: 3.8.0 closes the connection`);
    this.close(what);
  }
}

/** Monitors the oldest proposal being tracked and the last one sent, but none in between. */
class SyncLimitCheck {
  readonly #limitMs: number;
  readonly #nowMs: () => number;
  #isStarted = false;
  #current: { readonly zxid: Zxid; readonly sinceMs: number } | null = null;
  #next: { readonly zxid: Zxid; readonly sinceMs: number } | null = null;

  constructor(limitMs: number, nowMs: () => number) {
    this.#limitMs = limitMs;
    this.#nowMs = nowMs;
  }

  start(): void {
    this.#isStarted = true;
  }

  onProposal(zxid: Zxid): void {
    if (!this.#isStarted) return;
    const proposal = { zxid, sinceMs: this.#nowMs() };
    if (this.#current === null) this.#current = proposal;
    else this.#next = proposal;
  }

  onAck(zxid: Zxid): void {
    if (this.#current?.zxid === zxid) {
      this.#current = this.#next;
      this.#next = null;
    } else if (this.#next?.zxid === zxid) this.#next = null;
  }

  isKept(): boolean {
    return this.#current === null || this.#nowMs() - this.#current.sinceMs < this.#limitMs;
  }
}
