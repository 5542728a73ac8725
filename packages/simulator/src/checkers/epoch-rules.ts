/** Epochs: E1 … E8, and D3 where it speaks of the epoch. */
import { epochOf, hexZxid, type LeaderPacket, type LearnerPacket, PacketType, type Zxid } from '@meerkat/protocol';
import type { Cluster } from './cluster.ts';
import type { ServerGhost } from './server-ghost.ts';
import type { WireEvent } from './wire.ts';

/** What a leader has received from a learner on one connection. */
interface Handshake {
  readonly learner: number;
  /** acceptedEpoch in FOLLOWERINFO; null while it has not arrived, and of OBSERVERINFO. */
  acceptedEpoch: number | null;
  /** Epoch of the LEADERINFO that was sent; null before. */
  promised: number | null;
  ackEpoch: { readonly currentEpoch: number; readonly zxid: number } | null;
  hasSyncBegun: boolean;
  /** The ACK of NEWLEADER has arrived. */
  hasAckedNewLeader: boolean;
}

/** One term of a leader. */
interface Term {
  readonly handshakes: Map<number, Handshake>;
  /** The leader's own state when it began to lead. */
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
  readonly lastZxid: number;
  epoch: number | null;
  hasSyncBegun: boolean;
}

export class EpochRules {
  readonly #cluster: Cluster;
  readonly #terms: Map<number, Term> = new Map();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  onRole(server: ServerGhost): void {
    this.#terms.delete(server.id);
    if (server.role === 'leading') this.#term(server);
  }

  onEpochDurable(server: ServerGhost, name: 'acceptedEpoch' | 'currentEpoch', epoch: number): void {
    if (epoch < server[name]) {
      this.#cluster.report(
        'E1',
        [server.id],
        `server ${server.id} has gone back from ${name} ${server[name]} to ${epoch}`,
      );
    }
    if (server.role === 'leading') this.#term(server);
    server[name] = epoch;
    this.#checkOrder(server);
    if (name === 'currentEpoch' && server.role === 'leading') this.#claim(server, epoch);
  }

  /** @param recovered what was found on the disk; the ghost still has the state before */
  onRecovered(server: ServerGhost, recovered: { acceptedEpoch: number; currentEpoch: number; lastZxid: number }): void {
    const { acceptedEpoch, currentEpoch, lastZxid } = recovered;
    for (const name of ['acceptedEpoch', 'currentEpoch'] as const) {
      if (recovered[name] >= server[name]) continue;
      const found = `${name} ${recovered[name]} is on its disk, ${server[name]} was durable`;
      this.#cluster.report('E1', [server.id], `server ${server.id} comes back with less: ${found}`);
    }
    if (epochOf(lastZxid as Zxid) > currentEpoch) {
      const found = `its log ends at ${hexZxid(lastZxid)}, and its currentEpoch is ${currentEpoch}`;
      this.#cluster.report('E3', [server.id], `server ${server.id} holds txns of an epoch that it is not in: ${found}`);
    }
    server.acceptedEpoch = acceptedEpoch;
    server.currentEpoch = currentEpoch;
    this.#checkOrder(server);
  }

  onWire(event: WireEvent): void {
    switch (event.kind) {
      case 'leader-packet':
        if (event.stage === 'sent') this.#onLeaderSends(event.connection, event.from, event.to, event.packet);
        return;
      case 'learner-packet':
        if (event.stage === 'sent') this.#onLearnerSends(event.connection, event.from, event.to, event.packet);
        else this.#onLeaderReceives(event.connection, event.from, event.to, event.packet);
        return;
      case 'closed':
        // What a learner has sent counts after it is gone, until the term ends.
        return;
      default:
        return;
    }
  }

  /** A leader reports that its quorum has synchronized. */
  onEstablished(server: ServerGhost, epoch: number): void {
    const { id } = server;
    this.#claim(server, epoch);
    if (server.currentEpoch !== epoch) {
      const found = `its durable currentEpoch is ${server.currentEpoch}`;
      this.#cluster.report('D3', [id], `leader ${id} counts itself as synchronized in epoch ${epoch}, but ${found}`);
    }
    const synchronized = [id];
    for (const { learner, hasAckedNewLeader } of this.#term(server).handshakes.values()) {
      if (hasAckedNewLeader) synchronized.push(learner);
    }
    this.#needQuorum(server, synchronized, `establishes epoch ${epoch} with the ACKs of NEWLEADER`);
  }

  #checkOrder(server: ServerGhost): void {
    if (server.currentEpoch <= server.acceptedEpoch) return;
    const found = `currentEpoch ${server.currentEpoch} is above acceptedEpoch ${server.acceptedEpoch}`;
    this.#cluster.report('E2', [server.id], `server ${server.id} is in an epoch that it has not promised: ${found}`);
  }

  /** A server acts as the leader that a quorum has promised an epoch: no other server may ever do so. */
  #claim(server: ServerGhost, epoch: number): void {
    const { id, term } = server;
    const leader = this.#cluster.leaders.get(epoch);
    if (leader === undefined) {
      this.#cluster.leaders.set(epoch, { server: id, term });
      return;
    }
    if (leader.server === id && leader.term === term) return;
    const other = leader.server === id ? 'itself in an earlier term' : `server ${leader.server}`;
    this.#cluster.report('E4', [id, leader.server], `server ${id} leads epoch ${epoch}, which ${other} has led`);
  }

  #onLeaderSends(connection: number, from: number, to: number, packet: LeaderPacket): void {
    const leader = this.#cluster.server(from);
    const handshake = this.#handshake(leader, connection, to);
    switch (packet.type) {
      case PacketType.leaderInfo:
        this.#onLeaderInfo(leader, handshake, epochOf(packet.zxid));
        return;
      case PacketType.diff:
      case PacketType.trunc:
      case PacketType.snap:
        this.#onSyncStart(leader, handshake);
        return;
      default:
        return;
    }
  }

  #onLeaderInfo(leader: ServerGhost, handshake: Handshake, epoch: number): void {
    handshake.promised = epoch;
    if (leader.acceptedEpoch < epoch) {
      const found = `its durable acceptedEpoch is ${leader.acceptedEpoch}`;
      this.#cluster.report('E5', [leader.id], `leader ${leader.id} announces epoch ${epoch}, but ${found}`);
    }
    const term = this.#term(leader);
    if (term.epoch === null) {
      term.epoch = epoch;
      // A learner with a higher promise does not count for this epoch; the others must be a quorum.
      const below = term.acceptedEpoch < epoch ? [leader.id] : [];
      const reported: string[] = [`${leader.id}: ${term.acceptedEpoch}`];
      for (const { learner, acceptedEpoch } of term.handshakes.values()) {
        if (acceptedEpoch === null) continue;
        reported.push(`${learner}: ${acceptedEpoch}`);
        if (acceptedEpoch < epoch) below.push(learner);
      }
      if (!this.#cluster.isQuorum(below)) {
        const found = `acceptedEpochs told to it are ${reported.join(', ')}`;
        this.#cluster.report(
          'E6',
          [leader.id],
          `leader ${leader.id} chooses epoch ${epoch} without a quorum below it: ${found}`,
        );
      }
    } else if (term.epoch !== epoch) {
      this.#cluster.report(
        'E4',
        [leader.id],
        `leader ${leader.id} announces epoch ${epoch} in its term of epoch ${term.epoch}`,
      );
    }
  }

  #onSyncStart(leader: ServerGhost, handshake: Handshake): void {
    handshake.hasSyncBegun = true;
    const term = this.#term(leader);
    if (handshake.promised !== null) this.#claim(leader, handshake.promised);
    if (term.hasSyncBegun) return;
    term.hasSyncBegun = true;
    // The first learner is sent its history: the epoch-ack phase is over, and these were counted.
    const counted = [leader.id];
    const ahead: { readonly learner: number; readonly at: string }[] = [];
    for (const { learner, ackEpoch } of term.handshakes.values()) {
      if (ackEpoch === null || ackEpoch.currentEpoch === -1 || ackEpoch.zxid === -1) continue;
      const isNewer =
        ackEpoch.currentEpoch > term.currentEpoch ||
        (ackEpoch.currentEpoch === term.currentEpoch && ackEpoch.zxid > term.lastZxid);
      if (!isNewer || !this.#cluster.server(learner).isVoter) counted.push(learner);
      else ahead.push({ learner, at: `epoch ${ackEpoch.currentEpoch}, ${hexZxid(ackEpoch.zxid)}` });
    }
    // A learner that is ahead may have been refused. It was counted if the others are too few.
    if (ahead.length > 0 && !this.#cluster.isQuorum(counted)) {
      const theirs = ahead.map(({ learner, at }) => `server ${learner} is at ${at}`).join(', ');
      const ours = `epoch ${term.currentEpoch}, ${hexZxid(term.lastZxid)}`;
      const learners = ahead.map(({ learner }) => learner);
      this.#cluster.report('E7', [leader.id, ...learners], `leader ${leader.id} leads from ${ours} although ${theirs}`);
    } else this.#needQuorum(leader, counted, 'begins to synchronize with the ACKEPOCHs');
  }

  #onLearnerSends(connection: number, from: number, to: number, packet: LearnerPacket): void {
    if (packet.type !== PacketType.ackEpoch) return;
    const learner = this.#cluster.server(from);
    const { promised } = this.#handshake(this.#cluster.server(to), connection, from);
    if (promised === null || learner.acceptedEpoch === promised) return;
    // An observer may follow although it has promised a later epoch, and announces that it must not be counted.
    if (packet.currentEpoch === -1 && learner.acceptedEpoch > promised && !this.#cluster.voters.includes(from)) return;
    const found = `its durable acceptedEpoch is ${learner.acceptedEpoch}`;
    this.#cluster.report('E5', [from, to], `server ${from} sends ACKEPOCH for epoch ${promised}, but ${found}`);
  }

  #onLeaderReceives(connection: number, from: number, to: number, packet: LearnerPacket): void {
    const handshake = this.#handshake(this.#cluster.server(to), connection, from);
    switch (packet.type) {
      case PacketType.followerInfo:
        handshake.acceptedEpoch = epochOf(packet.zxid);
        return;
      case PacketType.ackEpoch:
        handshake.ackEpoch = { currentEpoch: packet.currentEpoch, zxid: packet.zxid };
        return;
      case PacketType.ack:
        if (packet.zxid % 0x100000000 === 0 && epochOf(packet.zxid) === handshake.promised)
          handshake.hasAckedNewLeader = true;
        return;
      default:
        return;
    }
  }

  #needQuorum(leader: ServerGhost, counted: readonly number[], what: string): void {
    if (this.#cluster.isQuorum(counted)) return;
    const whom = `of ${counted.join(', ')}, which is no quorum of ${this.#cluster.voters.join(', ')}`;
    this.#cluster.report('E8', [leader.id], `leader ${leader.id} ${what} ${whom}`);
  }

  #term(server: ServerGhost): Term {
    let term = this.#terms.get(server.id);
    if (term === undefined) {
      const { acceptedEpoch, log } = server;
      term = {
        handshakes: new Map(),
        acceptedEpoch,
        // Recovery treats the epoch of the last txn as adopted, see E3.
        currentEpoch: Math.max(server.currentEpoch, epochOf(log.last as Zxid)),
        lastZxid: log.last,
        epoch: null,
        hasSyncBegun: false,
      };
      this.#terms.set(server.id, term);
    }
    return term;
  }

  #handshake(leader: ServerGhost, connection: number, learner: number): Handshake {
    const { handshakes } = this.#term(leader);
    let handshake = handshakes.get(connection);
    if (handshake === undefined) {
      handshake = {
        learner,
        acceptedEpoch: null,
        promised: null,
        ackEpoch: null,
        hasSyncBegun: false,
        hasAckedNewLeader: false,
      };
      handshakes.set(connection, handshake);
    }
    return handshake;
  }
}
