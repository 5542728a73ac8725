/** What a server of 3.8.0 is known for, each shown against two servers that follow a script. */
import {
  JuteReader,
  JuteWriter,
  type LeaderPacket,
  type LearnerPacket,
  makeProposal,
  makeZxid,
  OPEN_ACL,
  OpCode,
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
import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../seeded-random.ts';
import { Timeline } from '../timeline.ts';
import { type VirtualEnd, VirtualNetwork } from '../virtual-network.ts';
import type { ApacheTimings } from './apache-host.ts';
import { ApachePeer } from './apache-peer.ts';

const MEMBERSHIP_TEXT = [1, 2, 3].map((id) => `server.${id}=zk${id}:2888:3888:participant`).join('\n');
const VERSION = 0x10000;
const { ack, ackEpoch, commit, diff, followerInfo, leaderInfo, newLeader, ping, proposal, sync, trunc, upToDate } =
  PacketType;

type Packet = LeaderPacket | LearnerPacket;

/** One end of a connection of the quorum port, moved by the script. */
class ScriptedEnd {
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
class Script {
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

const NEW_LEADER = { type: newLeader, zxid: makeZxid(1, 0), configText: MEMBERSHIP_TEXT };

function helloOf(serverId: number): Uint8Array {
  const hello = new JuteWriter();
  hello.long(-65536);
  hello.long(serverId);
  hello.ustring(`zk${serverId}:3888`);
  return hello.toBytes();
}

function proposalOf(counter: number) {
  const header = { sessionId: 0n, cxid: 0, zxid: makeZxid(1, counter), time: 1 };
  const txn = { type: OpCode.create, path: `/n${counter}`, data: null, acl: OPEN_ACL, isEphemeral: false };
  return makeProposal(proposal, { header, txn: { ...txn, parentCversion: counter }, digest: null });
}

function commitOf(counter: number) {
  return { type: commit, zxid: makeZxid(1, counter) };
}

describe('the hello', () => {
  test.each([
    { what: 'is taken as a whole', sizes: [100], warnings: 0 },
    { what: 'is taken when only its header comes first', sizes: [20, 100], warnings: 0 },
    { what: 'is refused when its address comes in pieces', sizes: [22, 100], warnings: 1 },
  ])('$what', ({ sizes, warnings }) => {
    const script = new Script();
    script.peer.start();
    let isClosed = false;
    const hello = helloOf(3);
    const end = script.network.connect('zk3', 'zk1', 3888, {
      onBytes: () => {},
      onDrain: () => {},
      onFailed: () => {},
      onClosed: () => {
        isClosed = true;
      },
      onOpen: () => {
        let at = 0;
        for (const size of sizes) {
          end.write(hello.slice(at, at + size));
          at += size;
        }
      },
    });
    script.advance(100);
    expect(script.peer.warnings).toHaveLength(warnings);
    expect(isClosed).toBe(warnings > 0);
  });
});

describe('a follower of 3.8.0', () => {
  test('may acknowledge a proposal before NEWLEADER, and has adopted the epoch before its history is safe', () => {
    const script = new Script({ newLeaderPauseMaxMs: 1000, logSyncMaxMs: 0 });
    const end = script.follow();
    end.lead({ type: diff, zxid: makeZxid(1, 1) }, proposalOf(1), commitOf(1), NEW_LEADER);
    script.until(() => end.acks.length === 2);
    expect(end.acks).toEqual([makeZxid(1, 1), makeZxid(1, 0)]);
  });

  test('acknowledges NEWLEADER without waiting for its log, which a loss of power shows', () => {
    const script = new Script({ newLeaderPauseMaxMs: 0, logSyncMinMs: 50, logSyncMaxMs: 50 });
    const end = script.follow();
    end.lead({ type: diff, zxid: makeZxid(1, 1) }, proposalOf(1), commitOf(1), NEW_LEADER);
    end.until(ack);
    expect(end.acks).toEqual([makeZxid(1, 0)]);
    script.peer.powerOff();
    expect(script.peer.disk.currentEpoch).toBe(1);
    expect(script.peer.disk.log).toHaveLength(0);
  });

  test('ends its role when a COMMIT between NEWLEADER and UPTODATE finds its proposal gone', () => {
    const script = new Script();
    const end = script.follow();
    end.lead({ type: diff, zxid: ZXID_ZERO }, proposalOf(1), NEW_LEADER, commitOf(1));
    script.until(() => end.isClosed);
    expect(script.peer.complaints).toEqual([expect.stringContaining('between NEWLEADER and UPTODATE')]);
    expect(script.peer.isServing).toBe(false);
    expect(script.peer.exited).toBeNull();
  });

  test('applies that COMMIT when it comes behind UPTODATE', () => {
    const script = new Script();
    const end = script.follow();
    end.lead({ type: diff, zxid: ZXID_ZERO }, proposalOf(1), NEW_LEADER, { type: upToDate }, commitOf(1));
    script.until(() => script.peer.applied.length === 1);
    expect(script.peer.database.znodes.has('/n1')).toBe(true);
    expect(script.peer.complaints).toEqual([]);
  });

  test('exits with 12 when a COMMIT is not that of its oldest proposal', () => {
    const script = new Script();
    const end = script.serve();
    end.lead(proposalOf(1), proposalOf(2), commitOf(2));
    script.until(() => script.peer.exited !== null);
    expect(script.peer.exited).toBe(12);
    expect(script.peer.isRunning).toBe(false);
    expect(script.peer.complaints).toEqual([expect.stringContaining('exits with 12')]);
    expect(script.peer.complaintsAbout(3)).toEqual(script.peer.complaints);
    expect(script.peer.complaintsAbout(1, 2)).toEqual([]);
  });

  test('ignores a COMMIT while it waits for none', () => {
    const script = new Script();
    const end = script.serve();
    end.lead(proposalOf(1), commitOf(1), commitOf(1));
    script.advance(100);
    expect(script.peer.isServing).toBe(true);
    expect(script.peer.complaints).toEqual([expect.stringContaining('without a proposal')]);
  });

  test('exits with 13 when the history begins with anything but DIFF, TRUNC or SNAP', () => {
    const script = new Script();
    script.follow().lead(proposalOf(1));
    script.until(() => script.peer.exited !== null);
    expect(script.peer.exited).toBe(13);
  });

  test('exits with 13 when it is to truncate its log where that has nothing', () => {
    const script = new Script();
    script.follow().lead({ type: trunc, zxid: makeZxid(1, 1) });
    script.until(() => script.peer.exited !== null);
    expect(script.peer.exited).toBe(13);
  });

  test('answers no ping before it serves, and then with the sessions that it heard of', () => {
    const script = new Script();
    const end = script.follow();
    end.lead({ type: ping, zxid: ZXID_ZERO }, { type: diff, zxid: ZXID_ZERO });
    script.advance(100);
    // In the place of DIFF a ping is as unexpected as anything else.
    expect(script.peer.exited).toBe(13);

    const other = new Script();
    const late = other.follow();
    late.lead({ type: diff, zxid: ZXID_ZERO }, { type: ping, zxid: ZXID_ZERO }, NEW_LEADER, {
      type: ping,
      zxid: ZXID_ZERO,
    });
    late.until(ack);
    other.advance(100);
    expect(late.types).not.toContain(ping);
    late.lead({ type: upToDate });
    other.until(() => other.peer.isServing);
    const { sessionId } = other.peer.createSession(20_000);
    late.lead({ type: ping, zxid: makeZxid(1, 0) });
    late.until(ping);
    expect(late.received.at(-1)).toEqual({
      type: ping,
      zxid: makeZxid(1, 0),
      sessions: [{ sessionId, timeoutMs: 20_000 }],
    });
  });

  test('waits initLimit for its history, and syncLimit for whatever comes behind it', () => {
    const script = new Script();
    const end = script.follow();
    const followedMs = script.timeline.nowMs;
    script.until(() => end.isClosed);
    expect(script.timeline.nowMs - followedMs).toBeCloseTo(20_000, -2);

    const other = new Script();
    const served = other.serve();
    const servedMs = other.timeline.nowMs;
    other.until(() => served.isClosed);
    expect(other.timeline.nowMs - servedMs).toBeCloseTo(10_000, -2);
  });

  test('tells a leader that it has met before not to count it again', () => {
    const script = new Script();
    const end = script.follow();
    expect(end.received.at(-1)).toMatchObject({ type: ackEpoch, currentEpoch: 0 });
    script.peer.kill();
    script.network.closeHost('zk3');
    const again = script.follow();
    expect(again.received.at(-1)).toMatchObject({ type: ackEpoch, currentEpoch: -1 });
  });

  test('waits for ever for a request whose txn has another cxid', () => {
    const script = new Script();
    const end = script.serve();
    const request = script.peer.create(7n, '/n1', new Uint8Array(0));
    const { entry } = proposalOf(1);
    const header = { ...entry.header, sessionId: 7n, cxid: request.cxid + 1 };
    end.lead(makeProposal(proposal, { ...entry, header }), commitOf(1));
    script.advance(1000);
    expect(request.outcome).toBeNull();
    expect(script.peer.warnings).toEqual([expect.stringContaining("another server's")]);
  });

  test('never answers a request whose COMMIT comes before the SYNC of an older sync', () => {
    const script = new Script();
    const end = script.serve();
    const older = script.peer.sync(7n);
    const write = script.peer.create(8n, '/n1', new Uint8Array(0));
    const { entry } = proposalOf(1);
    const header = { ...entry.header, sessionId: 8n, cxid: write.cxid };
    end.lead(makeProposal(proposal, { ...entry, header }), commitOf(1), { type: sync });
    script.advance(1000);
    expect(older.outcome).not.toBeNull();
    expect(write.outcome).toBeNull();
    expect(script.peer.complaints).toEqual([expect.stringContaining('answers no write any more')]);
  });
});

describe('a leader of 3.8.0', () => {
  test('does not count the ACK of a proposal in the place of that of NEWLEADER, nor the right one behind it', () => {
    const script = new Script();
    script.startLeader();
    const end = script.join(2);
    end.until(newLeader);
    end.learn({ type: ack, zxid: makeZxid(1, 1) }, { type: ack, zxid: makeZxid(1, 0) });
    script.advance(19_000);
    expect(end.types).not.toContain(upToDate);
    expect(script.peer.isServing).toBe(false);
    script.until(() => script.peer.leader === null);
    expect(script.peer.complaints).toEqual([expect.stringContaining('in the place of the ACK of NEWLEADER')]);
  });

  test.each([
    { what: 'an answer to a ping', packet: { type: ping, zxid: ZXID_ZERO, sessions: [] } },
    { what: 'a revalidation', packet: { type: PacketType.revalidate, sessionId: 1n, timeoutMs: 1 } },
  ])('drops a learner that sends $what before the ACK of NEWLEADER', ({ packet }) => {
    const script = new Script();
    script.startLeader();
    const end = script.join(2);
    end.until(newLeader);
    end.learn(packet, { type: ack, zxid: makeZxid(1, 0) });
    script.until(() => end.isClosed);
    expect(script.peer.complaints).toEqual([expect.stringContaining('between ACKEPOCH and the ACK of NEWLEADER')]);
  });

  test('counts an ACK for exactly its zxid', () => {
    const script = new Script();
    script.startLeader();
    const end = script.joinAndServe(2);
    const txn = { type: OpCode.error, error: -1 } as const;
    const first = script.peer.propose(txn)!;
    const second = script.peer.propose(txn)!;
    script.advance(100);
    end.learn({ type: ack, zxid: second });
    script.advance(100);
    expect(end.commits).toEqual([]);
    expect(script.peer.complaints).toEqual([expect.stringContaining('for 3.8.0 it never has')]);
    // Nobody looks at the second one again, although its quorum is there.
    end.learn({ type: ack, zxid: first });
    script.advance(100);
    expect(end.commits).toEqual([first]);
    end.learn({ type: ack, zxid: second });
    script.advance(100);
    expect(end.commits).toEqual([first, second]);
  });

  test('answers a sync when everything that was proposed before it is committed', () => {
    const script = new Script();
    script.startLeader();
    const end = script.joinAndServe(2);
    const request = { type: PacketType.request, sessionId: 5n, cxid: 1, op: OpCode.sync, body: new Uint8Array(0) };
    end.learn({ ...request, authInfo: [] });
    end.until(sync);
    const zxid = script.peer.propose({ type: OpCode.error, error: -1 })!;
    end.learn({ ...request, authInfo: [] });
    script.advance(100);
    expect(end.types.filter((type) => type === sync)).toHaveLength(1);
    end.learn({ type: ack, zxid });
    script.advance(100);
    expect(end.types.slice(-2)).toEqual([commit, sync]);
  });

  test('closes a follower that answers pings and acknowledges nothing', () => {
    const script = new Script();
    script.startLeader();
    const end = script.joinAndServe(2);
    const other = script.joinAndServe(3, makeZxid(1, 0));
    script.peer.propose({ type: OpCode.error, error: -1 });
    for (let answered = 0, i = 0; i < 20; i++) {
      script.advance(1000);
      const pings = end.received.filter((packet) => packet.type === ping);
      for (; answered < pings.length; answered++) end.learn({ type: ping, zxid: ZXID_ZERO, sessions: [] });
      other.learn({ type: ack, zxid: makeZxid(1, 1) });
    }
    expect(end.isClosed).toBe(true);
    expect(other.isClosed).toBe(false);
    expect(script.peer.warnings).toContainEqual(expect.stringContaining('not acknowledged within syncLimit'));
  });

  test('ends its role when too few followers have been heard of', () => {
    const script = new Script();
    script.startLeader();
    script.joinAndServe(2);
    script.until(() => script.peer.leader === null);
    expect(script.timeline.nowMs).toBeLessThan(16_000);
    expect(script.peer.isServing).toBe(false);
  });
});
