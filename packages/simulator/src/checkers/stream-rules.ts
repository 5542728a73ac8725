/** What a leader sends to a learner, and what the learner replies, in which order: Z13, Z14, D1 and D2, E8 of ACKs. */
import { epochOf, hexZxid, type LeaderPacket, type LearnerPacket, PacketType, type Zxid } from '@meerkat/protocol';
import type { Cluster } from './cluster.ts';
import type { ServerGhost } from './server-ghost.ts';
import type { WireEvent } from './wire.ts';

type Phase = 'start' | 'promised' | 'history' | 'new-leader' | 'up-to-date';

/** One connection of a learner. */
interface Stream {
  readonly leader: number;
  readonly learner: number;
  /** By its announced version the leader is ours: its COMMIT and ACK are cumulative. Apache's are for one txn each. */
  isLeaderOurs: boolean;
  isLearnerOurs: boolean;
  isObserver: boolean;
  phase: Phase;
  epoch: number;
  /** Where the history that is sent begins (DIFF: where the learner was). */
  start: number;
  lastProposal: number;
  lastCommit: number;
  /** Proposals without a COMMIT so far. */
  readonly open: number[];
  /** The last txn before NEWLEADER, and the last one that is known to be committed there. */
  historyEnd: number;
  committedEnd: number;
  /** What the leader had committed when it received the ACK of NEWLEADER: sent before, or directly behind UPTODATE. */
  dueCommit: number;
  /** Last zxid from the learner's ACKEPOCH. */
  learnerLast: number;
  hasAckedNewLeader: boolean;
  /** The learner's ACKs that have arrived cover everything up to here. */
  ackedUpTo: number;
  /** Proposals that a follower has received, and neither their COMMIT; until it acknowledges NEWLEADER. */
  received: number[];
  /** Of them, what its disk held by then: their ACKs follow that of NEWLEADER. */
  due: number[];
}

export class StreamRules {
  readonly #cluster: Cluster;
  readonly #streams: Map<number, Stream> = new Map();
  /** Those that were closed at the moment `#closedMs`. */
  #closed: Stream[] = [];
  #closedMs = Number.NEGATIVE_INFINITY;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  onWire(event: WireEvent): void {
    switch (event.kind) {
      case 'leader-packet':
        if (event.stage === 'sent')
          this.#onLeaderSends(this.#stream(event.connection, event.from, event.to), event.packet);
        else this.#onLearnerReceives(this.#stream(event.connection, event.from, event.to), event.packet);
        return;
      case 'learner-packet': {
        const stream = this.#stream(event.connection, event.to, event.from);
        if (event.stage === 'sent') this.#onLearnerSends(stream, event.packet);
        else this.#onLeaderReceives(stream, event.packet);
        return;
      }
      case 'closed':
        this.#onClosed(event.connection);
        return;
      default:
        return;
    }
  }

  #onClosed(connection: number): void {
    const stream = this.#streams.get(connection);
    this.#streams.delete(connection);
    const nowMs = this.#cluster.nowMs();
    if (nowMs !== this.#closedMs) this.#closed = [];
    this.#closedMs = nowMs;
    if (stream !== undefined) this.#closed.push(stream);
  }

  /**
   * E8: a leader counts proposals of its own epoch as committed; were they acknowledged by a quorum? Decisions leave at the
   * end of the leader's turn: an ACK counts that came in the same moment as the end of its connection.
   */
  onCommitted(leader: ServerGhost, zxid: number): void {
    if (epochOf(zxid as Zxid) !== leader.established) return;
    const counted: number[] = leader.log.durableLast >= zxid ? [leader.id] : [];
    const closed = this.#cluster.nowMs() === this.#closedMs ? this.#closed : [];
    for (const stream of [...this.#streams.values(), ...closed]) {
      if (stream.leader === leader.id && stream.ackedUpTo >= zxid) counted.push(stream.learner);
    }
    if (this.#cluster.isQuorum(counted)) return;
    const message = `leader ${leader.id} commits ${hexZxid(zxid)}, acknowledged by ${counted.join(', ') || 'no server'} only`;
    this.#cluster.report('E8', [leader.id], message);
  }

  #onLeaderSends(stream: Stream, packet: LeaderPacket): void {
    const isCommit = packet.type === PacketType.commit || packet.type === PacketType.commitAndActivate;
    if (stream.phase === 'up-to-date' && !isCommit) this.#expectCommitsThatWaited(stream);
    switch (packet.type) {
      case PacketType.leaderInfo:
        this.#expectPhase(stream, ['start'], 'LEADERINFO');
        stream.phase = 'promised';
        stream.isLeaderOurs = packet.announces !== 0;
        stream.epoch = epochOf(packet.zxid);
        return;
      case PacketType.diff:
      case PacketType.trunc:
      case PacketType.snap:
        this.#expectPhase(stream, ['promised'], 'the start of the history');
        stream.phase = 'history';
        stream.start = packet.type === PacketType.diff ? stream.learnerLast : packet.zxid;
        stream.lastProposal = stream.start;
        stream.lastCommit = stream.start;
        stream.committedEnd = stream.start;
        return;
      case PacketType.proposal:
        this.#onProposal(stream, packet.entry.header.zxid);
        return;
      case PacketType.inform:
      case PacketType.informAndActivate:
        this.#onProposal(stream, packet.entry.header.zxid);
        this.#onCommit(stream, packet.entry.header.zxid);
        return;
      case PacketType.commit:
      case PacketType.commitAndActivate:
        // Apache's 3.8.0 followers break when a COMMIT comes between NEWLEADER and UPTODATE; observers accept an INFORM.
        this.#expectPhase(stream, ['history', 'up-to-date'], `COMMIT ${hexZxid(packet.zxid)}`);
        this.#onCommit(stream, packet.zxid);
        return;
      case PacketType.newLeader:
        this.#expectPhase(stream, ['history'], 'NEWLEADER');
        if (epochOf(packet.zxid) !== stream.epoch || packet.zxid % 0x100000000 !== 0) {
          this.#report('Z14', stream, `sends NEWLEADER ${hexZxid(packet.zxid)} in epoch ${stream.epoch}`);
        }
        stream.phase = 'new-leader';
        stream.historyEnd = stream.lastProposal;
        stream.committedEnd = stream.lastCommit;
        return;
      case PacketType.upToDate:
        this.#expectPhase(stream, ['new-leader'], 'UPTODATE');
        stream.phase = 'up-to-date';
        return;
      case PacketType.sync:
        this.#expectPhase(stream, ['up-to-date'], 'SYNC');
        return;
      default:
        return;
    }
  }

  /** ZOOKEEPER-3023, 4394. An observer is sent each txn when it is committed. */
  #expectCommitsThatWaited(stream: Stream): void {
    const { dueCommit, lastCommit, epoch, isObserver } = stream;
    stream.dueCommit = 0;
    // What an earlier epoch has left is committed by UPTODATE itself.
    if (isObserver || lastCommit >= dueCommit || epochOf(dueCommit as Zxid) !== epoch) return;
    const what = `continues behind UPTODATE, and of the commits up to ${hexZxid(dueCommit)} has told up to ${hexZxid(lastCommit)}`;
    this.#report('Z14', stream, what);
  }

  #onProposal(stream: Stream, zxid: number): void {
    this.#expectPhase(stream, ['history', 'new-leader', 'up-to-date'], `PROPOSAL ${hexZxid(zxid)}`);
    if (zxid <= stream.lastProposal) {
      this.#report('Z14', stream, `sends PROPOSAL ${hexZxid(zxid)} after ${hexZxid(stream.lastProposal)}`);
    }
    stream.lastProposal = Math.max(stream.lastProposal, zxid);
    stream.open.push(zxid);
  }

  #onCommit(stream: Stream, zxid: number): void {
    if (zxid <= stream.lastCommit) {
      this.#report('Z14', stream, `sends COMMIT ${hexZxid(zxid)} after COMMIT ${hexZxid(stream.lastCommit)}`);
      return;
    }
    const at = stream.open.indexOf(zxid);
    if (at < 0) {
      this.#report('Z13', stream, `sends COMMIT ${hexZxid(zxid)}, which it has never sent`);
    } else {
      if (at > 0 && !stream.isLearnerOurs)
        this.#report('Z14', stream, `sends COMMIT ${hexZxid(zxid)} and leaves out ${hexZxid(stream.open[0]!)}`);
      stream.open.splice(0, at + 1);
    }
    stream.lastCommit = zxid;
  }

  #onLearnerReceives(stream: Stream, packet: LeaderPacket): void {
    if (stream.hasAckedNewLeader || !this.#cluster.server(stream.learner).isVoter) return;
    if (packet.type === PacketType.proposal) stream.received.push(packet.entry.header.zxid);
    else if (packet.type === PacketType.commit) stream.received = stream.received.filter((zxid) => zxid > packet.zxid);
  }

  #onLearnerSends(stream: Stream, packet: LearnerPacket): void {
    const due = stream.due.shift();
    if (due !== undefined && !(packet.type === PacketType.ack && packet.zxid === due)) {
      this.#reportLearner(
        'Z14',
        stream,
        `continues without the ACK of ${hexZxid(due)}, which was durable when it adopted the epoch`,
      );
      stream.due = [];
    }
    if (packet.type === PacketType.followerInfo || packet.type === PacketType.observerInfo) {
      stream.isLearnerOurs = packet.announces !== 0;
      stream.isObserver = packet.type === PacketType.observerInfo;
      return;
    }
    if (packet.type === PacketType.ackEpoch) {
      stream.learnerLast = packet.zxid;
      return;
    }
    if (packet.type !== PacketType.ack) {
      if (!stream.hasAckedNewLeader) {
        const what = `sends a packet of type ${packet.type ?? packet.typeNumber} before its ACK of NEWLEADER`;
        this.#reportLearner('Z14', stream, what);
      }
      return;
    }
    if (packet.zxid % 0x100000000 === 0) this.#onAckNewLeader(stream, packet.zxid);
    else this.#onAck(stream, packet.zxid);
  }

  #onAck(stream: Stream, zxid: number): void {
    const { log } = this.#cluster.server(stream.learner);
    if (!stream.hasAckedNewLeader) {
      this.#reportLearner('Z14', stream, `sends ACK ${hexZxid(zxid)} before its ACK of NEWLEADER`);
    }
    if (zxid <= log.durableLast && (zxid <= log.base || log.hashAt(zxid) !== null)) return;
    this.#reportLearner(
      'D1',
      stream,
      `sends ACK ${hexZxid(zxid)}, and its disk holds txns up to ${hexZxid(log.durableLast)}`,
    );
  }

  #onAckNewLeader(stream: Stream, zxid: number): void {
    const learner = this.#cluster.server(stream.learner);
    if (stream.hasAckedNewLeader) return;
    stream.hasAckedNewLeader = true;
    stream.due = stream.received.filter((txn) => txn <= learner.log.durableLast);
    if (stream.isLeaderOurs) stream.due = stream.due.slice(-1);
    stream.received = [];
    const epoch = epochOf(zxid as Zxid);
    if (learner.currentEpoch !== epoch) {
      const found = `its durable currentEpoch is ${learner.currentEpoch}`;
      this.#reportLearner('D2', stream, `sends ACK of NEWLEADER ${epoch}, and ${found}`);
    }
    if (!learner.isVoter || learner.log.durableLast >= stream.committedEnd) return;
    const found = `of the history up to ${hexZxid(stream.committedEnd)} its disk holds txns up to ${hexZxid(learner.log.durableLast)}`;
    this.#reportLearner('D2', stream, `sends ACK of NEWLEADER ${epoch}, and ${found}`);
  }

  #onLeaderReceives(stream: Stream, packet: LearnerPacket): void {
    if (packet.type === PacketType.ackEpoch) {
      // What it already has of the leader's own epoch, it has acknowledged before.
      if (epochOf(packet.zxid) === stream.epoch) stream.ackedUpTo = packet.zxid;
    } else if (packet.type === PacketType.ack) {
      const isOfNewLeader = packet.zxid % 0x100000000 === 0;
      if (isOfNewLeader) stream.dueCommit = this.#cluster.server(stream.leader).committedByMessage;
      const upTo = isOfNewLeader ? stream.historyEnd : packet.zxid;
      stream.ackedUpTo = Math.max(stream.ackedUpTo, upTo);
    }
  }

  #expectPhase(stream: Stream, phases: readonly Phase[], what: string): void {
    if (!phases.includes(stream.phase)) this.#report('Z14', stream, `sends ${what} in the phase "${stream.phase}"`);
  }

  #report(invariant: string, { leader, learner }: Stream, what: string): void {
    this.#cluster.report(invariant, [leader, learner], `leader ${leader} ${what} to server ${learner}`);
  }

  #reportLearner(invariant: string, { leader, learner }: Stream, what: string): void {
    this.#cluster.report(invariant, [learner, leader], `server ${learner} ${what} to leader ${leader}`);
  }

  #stream(connection: number, leader: number, learner: number): Stream {
    let stream = this.#streams.get(connection);
    if (stream === undefined) {
      stream = {
        leader,
        learner,
        isLeaderOurs: false,
        isLearnerOurs: false,
        isObserver: false,
        phase: 'start',
        epoch: 0,
        start: 0,
        lastProposal: 0,
        lastCommit: 0,
        open: [],
        historyEnd: 0,
        committedEnd: 0,
        dueCommit: 0,
        learnerLast: 0,
        hasAckedNewLeader: false,
        ackedUpTo: 0,
        received: [],
        due: [],
      };
      this.#streams.set(connection, stream);
    }
    return stream;
  }
}
