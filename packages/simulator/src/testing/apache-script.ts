import {
  JuteReader,
  JuteWriter,
  type LeaderPacket,
  type LearnerPacket,
  makeZxid,
  PacketType,
  parseMembership,
  QuorumPacketScanner,
  readLeaderPacket,
  readLearnerPacket,
  ServerState,
  type UnknownPacket,
  writeElectionNotification,
  writeLeaderPacket,
  writeLearnerPacket,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import type { ApacheTimings } from '../apache/apache-host.ts';
import { ApachePeer } from '../apache/apache-peer.ts';
import { SeededRandom } from '../seeded-random.ts';
import { Timeline } from '../timeline.ts';
import { type VirtualEnd, VirtualNetwork } from '../virtual-network.ts';

const MEMBERSHIP_TEXT = [1, 2, 3].map((id) => `server.${id}=zk${id}:2888:3888:participant`).join('\n');
const VERSION = 0x10000;
const { ack, ackEpoch, commit, diff, followerInfo, leaderInfo, newLeader, upToDate } = PacketType;

type Packet = LeaderPacket | LearnerPacket;

/** One end of a connection of the quorum port, moved by the script. */
export class ScriptedEnd {
  readonly received: Packet[] = [];
  isClosed = false;
  readonly #script: Script;
  readonly #end: VirtualEnd;
  readonly #read: (reader: JuteReader) => Packet | null;
  #bytes = new Uint8Array(0);
  readonly #scanner = new QuorumPacketScanner();

  constructor(script: Script, end: VirtualEnd, read: (reader: JuteReader) => Packet | null) {
    this.#script = script;
    this.#end = end;
    this.#read = read;
  }

  onBytes(chunk: Uint8Array): void {
    this.#bytes = Uint8Array.from([...this.#bytes, ...chunk]);
    for (;;) {
      const length = this.#scanner.scan(this.#bytes, 0, this.#bytes.length);
      if (length <= 0) return;
      const packet = this.#read(new JuteReader(this.#bytes.slice(0, length)));
      if (packet !== null) this.received.push(packet);
      this.#bytes = this.#bytes.slice(length);
    }
  }

  onDrain(): void {}

  onClosed(): void {
    this.isClosed = true;
  }

  /** In one write. */
  lead(...packets: readonly Exclude<LeaderPacket, UnknownPacket>[]): void {
    const writer = new JuteWriter();
    for (const packet of packets) writeLeaderPacket(writer, packet);
    this.#end.write(writer.toBytes());
  }

  learn(...packets: readonly Exclude<LearnerPacket, UnknownPacket>[]): void {
    const writer = new JuteWriter();
    for (const packet of packets) writeLearnerPacket(writer, packet);
    this.#end.write(writer.toBytes());
  }

  get types(): readonly (number | null)[] {
    return this.received.map((packet) => packet.type);
  }

  /** zxids of the ACKs, in order. */
  get acks(): readonly Zxid[] {
    return this.received.flatMap((packet) => (packet.type === ack ? [packet.zxid] : []));
  }

  get commits(): readonly Zxid[] {
    return this.received.flatMap((packet) => (packet.type === commit ? [packet.zxid] : []));
  }

  until(type: number): void {
    this.#script.until(() => this.types.includes(type));
  }
}

/** Server 1 is of 3.8.0; what 2 and 3 say is the test's. */
export class Script {
  readonly timeline: Timeline = new Timeline();
  readonly network: VirtualNetwork;
  readonly peer: ApachePeer;

  constructor(timings: Partial<ApacheTimings> = {}) {
    const random = new SeededRandom(1, 'script');
    const quality = { delayMinMs: 0.1, delayMaxMs: 0.5, splitChance: 0, mergeChance: 0 };
    this.network = new VirtualNetwork(this.timeline, random.fork('network'), quality);
    const membership = parseMembership(MEMBERSHIP_TEXT);
    if ('fault' in membership) throw new Error(membership.fault);
    const { timeline, network } = this;
    this.peer = new ApachePeer({ serverId: 1, membership, timeline, network, random: random.fork('peer'), timings });
  }

  /** Server 1 follows server 3, which is the script. @returns the connection, LEADERINFO having been answered */
  follow(epoch = 1): ScriptedEnd {
    let accepted: ScriptedEnd | null = null;
    this.network.listen('zk3', 2888, (end) => {
      accepted = new ScriptedEnd(this, end, readLearnerPacket);
      end.listen(accepted);
    });
    this.#vote(2, ServerState.following, 3);
    this.#vote(3, ServerState.leading, 3);
    this.peer.start();
    this.until(() => accepted !== null);
    const end = accepted as unknown as ScriptedEnd;
    end.until(followerInfo);
    end.lead({ type: leaderInfo, zxid: makeZxid(epoch, 0), protocolVersion: VERSION, announces: 0 });
    end.until(ackEpoch);
    return end;
  }

  /** Server 1 follows and serves. */
  serve(): ScriptedEnd {
    const end = this.follow();
    end.lead({ type: diff, zxid: ZXID_ZERO }, NEW_LEADER);
    end.until(ack);
    end.lead({ type: upToDate });
    this.until(() => this.peer.isServing);
    return end;
  }

  /** Server 1 leads, elected by the script. */
  startLeader(): void {
    this.#vote(2, ServerState.looking, 1);
    this.#vote(3, ServerState.looking, 1);
    this.peer.start();
    this.until(() => this.network.isListening('zk1', 2888));
  }

  /** A follower of server 1, ACKEPOCH having been answered. */
  join(serverId: number, lastZxid: Zxid = ZXID_ZERO): ScriptedEnd {
    const end = this.#register(serverId);
    end.until(leaderInfo);
    end.learn({ type: ackEpoch, zxid: lastZxid, currentEpoch: 0 });
    return end;
  }

  /** A follower that is served. */
  joinAndServe(serverId: number, lastZxid: Zxid = ZXID_ZERO): ScriptedEnd {
    const end = this.join(serverId, lastZxid);
    end.until(newLeader);
    end.learn({ type: ack, zxid: makeZxid(1, 0) });
    end.until(upToDate);
    return end;
  }

  #register(serverId: number): ScriptedEnd {
    const connected = this.#connect(`zk${serverId}`, 2888);
    const configVersion = ZXID_ZERO;
    connected.learn({
      type: followerInfo,
      zxid: ZXID_ZERO,
      serverId,
      protocolVersion: VERSION,
      configVersion,
      announces: 0,
    });
    return connected;
  }

  #connect(host: string, port: number): ScriptedEnd {
    let opened = false;
    let scripted: ScriptedEnd | null = null;
    const end = this.network.connect(host, 'zk1', port, {
      onBytes: (chunk) => scripted?.onBytes(chunk),
      onDrain: () => {},
      onClosed: () => scripted?.onClosed(),
      onFailed: () => {
        throw new Error(`${host} was not let in`);
      },
      onOpen: () => {
        opened = true;
      },
    });
    scripted = new ScriptedEnd(this, end, readLeaderPacket);
    this.until(() => opened);
    return scripted;
  }

  /** A server dials the election port as soon as that is open, and says one thing. */
  #vote(from: number, state: ServerState, leader: number): void {
    const hello = helloOf(from);
    const vote = new JuteWriter();
    const at = vote.beginFrame();
    const words = { leader, zxid: ZXID_ZERO, electionEpoch: 1, peerEpoch: 0, version: 2 };
    writeElectionNotification(vote, { state, ...words, configText: MEMBERSHIP_TEXT, announces: 0 });
    vote.endFrame(at);
    this.timeline.after(0, () => {
      const end = this.network.connect(`zk${from}`, 'zk1', 3888, {
        onBytes: () => {},
        onDrain: () => {},
        onClosed: () => {},
        onFailed: () => {},
        onOpen: () => {
          end.write(hello);
          end.write(vote.toBytes());
        },
      });
    });
  }

  until(what: () => boolean): void {
    const endMs = this.timeline.nowMs + 60_000;
    while (!what()) if (!this.timeline.step(endMs)) throw new Error('it did not happen');
  }

  advance(ms: number): void {
    const endMs = this.timeline.nowMs + ms;
    while (this.timeline.step(endMs));
  }
}

export const NEW_LEADER: Exclude<LeaderPacket, UnknownPacket> = {
  type: newLeader,
  zxid: makeZxid(1, 0),
  configText: MEMBERSHIP_TEXT,
};

export function helloOf(serverId: number): Uint8Array {
  const hello = new JuteWriter();
  hello.long(-65536);
  hello.long(serverId);
  hello.ustring(`zk${serverId}:3888`);
  return hello.toBytes();
}
