import {
  counterOf,
  epochOf,
  hexZxid,
  isSnapSignatureAt,
  JuteWriter,
  type LeaderPacket,
  type LearnerPacket,
  makeZxid,
  PacketType,
  parseMembership,
  QUORUM_PROTOCOL_VERSION,
  readLeaderPacket,
  SNAP_SIGNATURE_BYTES,
  type UnknownPacket,
  writeLearnerPacket,
  type Zxid,
} from '@meerkat/protocol';
import { type ApacheHost, ApacheTimers, memberOf } from './apache-host.ts';
import { LearnerTxns, type Received, receive } from './learner-txns.ts';
import { nameOf } from './packet-name.ts';
import { PacketSocket } from './packet-socket.ts';

type Phase = 'connecting' | 'discovery' | 'sync-start' | 'history' | 'acknowledged' | 'serving' | 'over';

/**
 * A follower or observer of 3.8.0 (Learner, Follower, Observer), with the known defects of this release:
 *
 * - on NEWLEADER it writes currentEpoch first, passes all buffered txns to the logging thread, and acknowledges without
 *   waiting for it, so that the ACK of a proposal may precede that of NEWLEADER;
 * - a COMMIT after NEWLEADER finds the buffer empty, and the role ends;
 * - once it serves, a COMMIT of anything but the oldest proposal ends the process.
 */
export class ApacheLearner {
  readonly leaderId: number;
  readonly #host: ApacheHost;
  readonly #isObserver: boolean;
  readonly #timers: ApacheTimers;
  readonly #socket: PacketSocket<LeaderPacket>;
  readonly #txns: LearnerTxns;
  #phase: Phase = 'connecting';
  #attempts = 0;
  #epoch = 0;
  #isSnapshotNeeded = false;
  /** `writeToTxnLog`: until then committed txns go straight into memory, unless the learner began with DIFF. */
  #isLogging = false;
  #notCommitted: Received[] = [];
  #committed: Zxid[] = [];
  #pendingSyncs = 0;

  constructor(host: ApacheHost, leader: number, isObserver: boolean) {
    this.#host = host;
    this.leaderId = leader;
    this.#isObserver = isObserver;
    this.#timers = new ApacheTimers(host.timeline);
    this.#txns = new LearnerTxns(
      host,
      (zxid) => this.#onLogged(zxid),
      (what) => this.#complain(what),
    );
    this.#socket = new PacketSocket(host.timeline, readLeaderPacket, {
      onPacket: (packet, raw) => this.#onPacket(packet, raw),
      onSocketClosed: (reason) => this.#end(`the connection to the leader: ${reason}`),
    });
  }

  /** How this learner caught up. */
  mode: 'diff' | 'trunc' | 'snap' | null = null;

  start(): void {
    const { timings } = this.#host;
    this.#timers.after(timings.tickTimeMs * timings.initLimit, () => {
      if (this.#phase === 'connecting') this.#end('the leader could not be reached within initLimit');
    });
    this.#connect();
  }

  /** The process or the server has ended. */
  kill(): void {
    this.#phase = 'over';
    this.#txns.kill();
    this.#timers.cancelAll();
    this.#socket.close();
  }

  send(packet: Exclude<LearnerPacket, UnknownPacket>): void {
    const writer = new JuteWriter();
    writeLearnerPacket(writer, packet);
    this.#socket.write(writer.toBytes());
  }

  /** Bytes of a REQUEST, which only a serving learner sends. */
  forward(bytes: Uint8Array, isSync: boolean): void {
    if (isSync) this.#pendingSyncs++;
    this.#socket.write(bytes);
  }

  #connect(): void {
    const { network, hostName, membership, timings } = this.#host;
    const address = memberOf(membership, this.leaderId)?.addresses[0];
    if (address === undefined) {
      this.#end('the leader is in no configuration');
      return;
    }
    this.#attempts++;
    const end = network.connect(hostName, address.host, address.quorumPort, {
      onBytes: (chunk) => this.#socket.onBytes(chunk),
      onDrain: () => {},
      onClosed: (reason) => this.#socket.onClosed(reason),
      onOpen: () => {
        if (this.#phase === 'over') {
          end.end();
          return;
        }
        this.#socket.open(end);
        this.#register();
      },
      onFailed: () => {
        if (this.#phase === 'over') return;
        if (this.#attempts >= CONNECT_ATTEMPTS_MAX) this.#end('the leader could not be reached');
        else this.#timers.after(timings.leaderConnectPauseMs, () => this.#connect());
      },
    });
  }

  /** `registerWithLeader` */
  #register(): void {
    const { serverId, disk, membership, timings } = this.#host;
    this.#phase = 'discovery';
    this.#socket.setTimeout(timings.tickTimeMs * timings.initLimit);
    this.send({
      type: this.#isObserver ? PacketType.observerInfo : PacketType.followerInfo,
      zxid: makeZxid(disk.acceptedEpoch, 0),
      serverId,
      protocolVersion: QUORUM_PROTOCOL_VERSION,
      configVersion: membership.version,
      announces: 0,
    });
  }

  #onPacket(packet: LeaderPacket | null, raw: Uint8Array): void {
    if (packet === null) {
      this.#fail(`bytes that 3.8.0 cannot read as a packet: ${Buffer.from(raw.slice(0, 64)).toString('hex')}`);
      return;
    }
    switch (this.#phase) {
      case 'discovery':
        this.#onLeaderInfo(packet);
        return;
      case 'sync-start':
        this.#onSyncStart(packet);
        return;
      case 'history':
      case 'acknowledged':
        this.#onSyncPacket(packet);
        return;
      case 'serving':
        if (this.#isObserver) this.#onObserverPacket(packet);
        else this.#onFollowerPacket(packet);
        return;
      case 'connecting':
      case 'over':
        return;
    }
  }

  #onLeaderInfo(packet: LeaderPacket): void {
    const { disk, database } = this.#host;
    if (packet.type !== PacketType.leaderInfo) {
      this.#fail(`${nameOf(packet)} in the place of LEADERINFO`);
      return;
    }
    if (packet.protocolVersion < QUORUM_PROTOCOL_VERSION) this.#complain('LEADERINFO of an old protocol');
    const epoch = epochOf(packet.zxid);
    if (counterOf(packet.zxid) !== 0) this.#complain(`LEADERINFO has the zxid ${hexZxid(packet.zxid)}`);
    if (epoch < disk.acceptedEpoch) {
      this.#end(`the leader's epoch ${epoch} is below ${disk.acceptedEpoch}, which was accepted`);
      return;
    }
    // An epoch that was accepted before is acknowledged, but must not be counted again.
    const currentEpoch = epoch > disk.acceptedEpoch ? disk.currentEpoch : -1;
    disk.acceptedEpoch = epoch;
    this.#epoch = epoch;
    this.#phase = 'sync-start';
    this.send({ type: PacketType.ackEpoch, zxid: database.lastProcessedZxid, currentEpoch });
  }

  /** The first packet of `syncWithLeader`. */
  #onSyncStart(packet: LeaderPacket): void {
    const { disk, database } = this.#host;
    this.#phase = 'history';
    switch (packet.type) {
      case PacketType.diff:
        this.mode = 'diff';
        this.#isLogging = true;
        break;
      case PacketType.snap: {
        this.mode = 'snap';
        this.#isSnapshotNeeded = true;
        this.#socket.expectRaw((bytes) => this.#takeSnapshot(bytes, packet.zxid));
        return;
      }
      case PacketType.trunc:
        this.mode = 'trunc';
        this.#isSnapshotNeeded = true;
        if (!disk.truncate(packet.zxid)) {
          this.#complain(`TRUNC to ${hexZxid(packet.zxid)}, behind which this log has nothing: 3.8.0 exits with 13`);
          this.#host.exit(13, 'the log could not be truncated');
          return;
        }
        if (disk.log.at(-1)?.zxid !== packet.zxid) {
          this.#complain(`TRUNC to ${hexZxid(packet.zxid)}, which is not in this log: 3.8.0 keeps the txn behind it`);
        }
        database.load(disk);
        database.lastProcessedZxid = packet.zxid;
        break;
      default:
        this.#complain(`${nameOf(packet)} after ACKEPOCH, in the place of DIFF, TRUNC or SNAP: 3.8.0 exits with 13`);
        this.#host.exit(13, 'the leader sent something unexpected');
        return;
    }
    database.initConfig();
  }

  #takeSnapshot(bytes: Uint8Array, zxid: Zxid): number {
    const { database } = this.#host;
    const length = database.readSnapshot(bytes);
    if (length === 0 || bytes.length < length + SNAP_SIGNATURE_BYTES) return 0;
    if (!isSnapSignatureAt(bytes, length)) {
      this.#fail('a snapshot without its signature');
      return bytes.length;
    }
    database.lastProcessedZxid = zxid;
    database.initConfig();
    return length + SNAP_SIGNATURE_BYTES;
  }

  /** The loop of `syncWithLeader`. */
  #onSyncPacket(packet: LeaderPacket): void {
    switch (packet.type) {
      case PacketType.proposal: {
        const { zxid } = packet.entry.header;
        this.#txns.checkOrder(zxid, this.mode === 'snap');
        this.#notCommitted.push(receive(packet));
        return;
      }
      case PacketType.commit:
      case PacketType.commitAndActivate:
        this.#onSyncCommit(packet.zxid);
        return;
      case PacketType.inform:
      case PacketType.informAndActivate: {
        const received = receive(packet);
        this.#txns.checkOrder(received.zxid, this.mode === 'snap');
        if (this.#isLogging) {
          this.#notCommitted.push(received);
          this.#committed.push(received.zxid);
        } else this.#txns.apply(received);
        return;
      }
      case PacketType.newLeader:
        this.#onNewLeader(packet.zxid, packet.configText);
        return;
      case PacketType.upToDate:
        this.#onUpToDate();
        return;
      default:
        // PING too: it is not answered here.
        return;
    }
  }

  #onSyncCommit(zxid: Zxid): void {
    const head = this.#notCommitted[0];
    if (head === undefined) {
      const when = this.#phase === 'acknowledged' ? 'between NEWLEADER and UPTODATE' : 'before NEWLEADER';
      this.#complain(`COMMIT ${hexZxid(zxid)} ${when} with no proposal in the buffer: 3.8.0 throws and disconnects`);
      this.#end('a COMMIT found no proposal');
      return;
    }
    if (this.#isLogging) this.#committed.push(zxid);
    else if (head.zxid === zxid) {
      this.#notCommitted.shift();
      this.#txns.apply(head);
    } else {
      this.#complain(
        `COMMIT ${hexZxid(zxid)} while the next proposal is ${hexZxid(head.zxid)}: 3.8.0 warns and skips it`,
      );
    }
  }

  #onNewLeader(zxid: Zxid, configText: string | null): void {
    const host = this.#host;
    if (this.#phase === 'acknowledged') this.#complain('NEWLEADER a second time: 3.8.0 acknowledges it again');
    if (zxid !== makeZxid(this.#epoch, 0)) this.#complain(`NEWLEADER ${hexZxid(zxid)} in the epoch ${this.#epoch}`);
    this.#checkConfig(configText);
    if (this.#isSnapshotNeeded) this.#saveSnapshot();
    host.disk.currentEpoch = this.#epoch;
    this.#isSnapshotNeeded = false;
    this.#isLogging = true;
    this.#phase = 'acknowledged';
    this.#socket.setTimeout(host.timings.tickTimeMs * host.timings.syncLimit);
    if (!this.#isObserver) {
      for (const received of this.#notCommitted) this.#txns.log(received);
      this.#notCommitted = [];
    }
    const pauseMs = host.random.fraction() * host.timings.newLeaderPauseMaxMs;
    this.#socket.block();
    this.#timers.after(pauseMs, () => {
      this.send({ type: PacketType.ack, zxid: makeZxid(this.#epoch, 0) });
      this.#socket.unblock();
    });
  }

  #checkConfig(configText: string | null): void {
    if (configText === null || configText.length <= 1) return;
    const membership = parseMembership(configText);
    const fault = 'fault' in membership ? membership.fault : null;
    if (fault !== null) this.#complain(`NEWLEADER has a configuration that 3.8.0 cannot read: ${fault}`);
  }

  #saveSnapshot(): void {
    const { disk, database } = this.#host;
    disk.save({ zxid: database.lastProcessedZxid, bytes: database.writeSnapshot() }, this.mode === 'snap');
  }

  #onUpToDate(): void {
    if (this.#phase === 'history') {
      this.#complain('UPTODATE without NEWLEADER, as before Zab 1.0: 3.8.0 takes a snapshot and serves');
      this.#saveSnapshot();
      this.#host.disk.currentEpoch = this.#epoch;
    }
    this.#phase = 'serving';
    this.send({ type: PacketType.ack, zxid: makeZxid(this.#epoch, 0) });
    this.#host.onServing(this.#epoch);
    const received = this.#notCommitted;
    const committed = this.#committed;
    this.#notCommitted = [];
    this.#committed = [];
    this.#txns.onQueued(received.at(-1));
    if (this.#isObserver) {
      for (const txn of received) {
        if (committed[0] !== txn.zxid) {
          this.#host.warn(`an observer skips ${hexZxid(txn.zxid)}, of which it has no COMMIT`);
          continue;
        }
        committed.shift();
        this.#txns.inform(txn);
      }
      return;
    }
    for (const txn of received) this.#txns.log(txn);
    for (const zxid of committed) this.#txns.commit(zxid);
  }

  /** `Follower.processPacket` */
  #onFollowerPacket(packet: LeaderPacket): void {
    switch (packet.type) {
      case PacketType.ping:
        this.#answerPing(packet.zxid);
        return;
      case PacketType.proposal:
        this.#txns.checkOrder(packet.entry.header.zxid, this.mode === 'snap');
        this.#txns.log(receive(packet));
        return;
      case PacketType.commit:
      case PacketType.commitAndActivate:
        this.#txns.commit(packet.zxid);
        return;
      case PacketType.revalidate:
        this.#host.onRevalidated(packet.sessionId, packet.isValid);
        return;
      case PacketType.sync:
        this.#onSync();
        return;
      case PacketType.upToDate:
        this.#complain('UPTODATE a second time: 3.8.0 logs an error');
        return;
      default:
        this.#complain(`${nameOf(packet)} to a serving follower: 3.8.0 warns and ignores it`);
        return;
    }
  }

  /** `Observer.processPacket` */
  #onObserverPacket(packet: LeaderPacket): void {
    switch (packet.type) {
      case PacketType.ping:
        this.#answerPing(packet.zxid);
        return;
      case PacketType.inform:
      case PacketType.informAndActivate: {
        const received = receive(packet);
        this.#txns.checkOrder(received.zxid, this.mode === 'snap');
        this.#txns.inform(received);
        return;
      }
      case PacketType.revalidate:
        this.#host.onRevalidated(packet.sessionId, packet.isValid);
        return;
      case PacketType.sync:
        this.#onSync();
        return;
      default:
        this.#complain(`${nameOf(packet)} to a serving observer: 3.8.0 ignores it, and what it carries is lost`);
        return;
    }
  }

  #answerPing(zxid: Zxid): void {
    this.send({ type: PacketType.ping, zxid, sessions: this.#host.takeTouched() });
  }

  #onSync(): void {
    if (this.#pendingSyncs === 0) {
      this.#complain('SYNC without a sync that waits: 3.8.0 warns and ignores it');
      return;
    }
    this.#pendingSyncs--;
    this.#host.onSynced();
  }

  /** `SendAckRequestProcessor` */
  #onLogged(zxid: Zxid): void {
    if (!this.#isObserver && this.#phase !== 'over') this.send({ type: PacketType.ack, zxid });
  }

  #complain(what: string): void {
    this.#host.complain(`server ${this.leaderId}, the leader: ${what}`);
  }

  #fail(what: string): void {
    this.#complain(`${what}: 3.8.0 disconnects`);
    this.#end(what);
  }

  #end(reason: string): void {
    if (this.#phase === 'over') return;
    const wasSnapshot = this.mode === 'snap' && (this.#phase === 'history' || this.#phase === 'sync-start');
    this.kill();
    this.#txns.drain();
    // An incomplete snapshot is not kept in memory (ZOOKEEPER-3642).
    if (wasSnapshot) this.#host.database.load(this.#host.disk);
    this.#host.onRoleEnded(reason);
  }
}

const CONNECT_ATTEMPTS_MAX = 5;
