/** Both ends of the stream between a leader and a learner, with each other and with strangers. */
import {
  type LeaderPacket,
  type LearnerPacket,
  makeProposal,
  makeZxid,
  OPEN_ACL,
  OpCode,
  PacketType,
  type Txn,
  type UnknownPacket,
  type Zxid,
} from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { anyLeaderPacket, anyLearnerPacket } from '../../../protocol/src/testing/quorum-arbitraries.ts';
import type { ByteStream, StreamEvents } from '../base/ports.ts';
import { Turn } from '../base/turn.ts';
import { MemoryNetwork, type MemoryNetworkOptions, type MemoryStream, TestRandom } from '../testing/memory-network.ts';
import { SILENT_EVENTS } from '../tree/data-tree.ts';
import { Database } from '../tree/database.ts';
import { LeaderLink } from './leader-link.ts';
import { LearnerLink, LINK_OUTPUT_BYTES_MAX } from './learner-link.ts';
import type { LinkHost } from './link-host.ts';

const TRACE = { emit() {} };
const makeDatabase = () => new Database({ extendedTypesEnabled: true, digestEnabled: true }, TRACE);

/** A server as its links see it; a turn ends when the test says so. */
class TestLinkHost implements LinkHost {
  readonly trace = TRACE;
  readonly fieldBytesMax = 1 << 21;
  readonly turn = new Turn({ monotonicMs: () => 0, wallMs: () => 0 });

  endTurn(): void {
    this.turn.runDeferred();
    this.turn.flushLinks();
    this.turn.end();
  }
}

/** What an end was told, in order. */
type Told =
  | { readonly packet: LeaderPacket | LearnerPacket }
  | { readonly database: Database }
  | { readonly closed: string }
  | 'room'
  | 'progress';

class LinkPair {
  readonly network: MemoryNetwork;
  readonly host = new TestLinkHost();
  readonly atLeader: Told[] = [];
  readonly atLearner: Told[] = [];
  readonly learnerLink: LearnerLink;
  readonly leaderLink: LeaderLink;
  readonly streams: readonly [MemoryStream, MemoryStream];
  /** Called after each packet that the learner is told. */
  onLearnerTold: (packet: LeaderPacket) => void = () => {};

  constructor(seed = 1, options: Partial<MemoryNetworkOptions> = {}) {
    this.network = new MemoryNetwork(seed, options);
    const [learner, leader] = this.network.makePair('learner', { host: 'leader', port: 2888 });
    this.streams = [learner, leader];
    this.leaderLink = new LeaderLink(learner, this.host, makeDatabase, {
      onPacket: (packet) => {
        this.atLearner.push({ packet });
        this.onLearnerTold(packet);
      },
      onSnapshot: (database) => this.atLearner.push({ database }),
      onLinkClosed: (closed) => this.atLearner.push({ closed }),
    });
    this.learnerLink = new LearnerLink(leader, this.host, {
      onPacket: (packet) => this.atLeader.push({ packet }),
      onRoom: () => this.atLeader.push('room'),
      onProgress: () => this.atLeader.push('progress'),
      onLinkClosed: (closed) => this.atLeader.push({ closed }),
    });
    learner.open(this.leaderLink);
    leader.open(this.learnerLink);
  }

  /** @returns false when nothing is under way */
  step(): boolean {
    this.host.endTurn();
    return this.network.step();
  }

  run(): void {
    while (this.step());
  }

  get packetsAtLearner(): readonly LeaderPacket[] {
    return this.atLearner.flatMap((told) =>
      typeof told === 'object' && 'packet' in told ? [told.packet as LeaderPacket] : [],
    );
  }

  get packetsAtLeader(): readonly LearnerPacket[] {
    return this.atLeader.flatMap((told) =>
      typeof told === 'object' && 'packet' in told ? [told.packet as LearnerPacket] : [],
    );
  }
}

/** A stream whose other end is the test. */
class StubStream implements ByteStream {
  readonly remote = { ip: new Uint8Array(4), host: 'peer', port: 1 };
  queuedBytes = 0;
  readonly written: number[] = [];
  readonly calls: string[] = [];

  write(bytes: Uint8Array): void {
    for (const byte of bytes) this.written.push(byte);
  }
  end(): void {
    this.calls.push('end');
  }
  destroy(): void {
    this.calls.push('destroy');
  }
  pause(): void {
    this.calls.push('pause');
  }
  resume(): void {
    this.calls.push('resume');
  }
}

function stubbedLearnerLink(): { stream: StubStream; host: TestLinkHost; told: string[]; link: LearnerLink } {
  const stream = new StubStream();
  const host = new TestLinkHost();
  const told: string[] = [];
  const link = new LearnerLink(stream, host, {
    onPacket: () => told.push('packet'),
    onRoom: () => told.push('room'),
    onProgress: () => told.push('progress'),
    onLinkClosed: (reason) => told.push(reason),
  });
  return { stream, host, told, link };
}

const commitOf = (counter: number): Exclude<LeaderPacket, UnknownPacket> => ({
  type: PacketType.commit,
  zxid: makeZxid(1, counter),
});
const zxidsOf = (packets: readonly LeaderPacket[]) => packets.map((packet) => ('zxid' in packet ? packet.zxid : null));

it('every packet arrives as it was sent and in its order, whatever the pieces in which it comes', () => {
  const leaderPackets = fc.array(
    anyLeaderPacket.filter(({ type }) => type !== PacketType.snap),
    { maxLength: 15 },
  );
  fc.assert(
    fc.property(
      fc.nat(),
      fc.constantFrom(1, 7, 60, 10_000),
      fc.constantFrom(1, 100, 100_000),
      leaderPackets,
      fc.array(anyLearnerPacket, { maxLength: 15 }),
      (seed, chunkBytesMax, windowBytes, toLearner, toLeader) => {
        const pair = new LinkPair(seed, { chunkBytesMax, windowBytes });
        for (const [i, packet] of toLearner.entries()) {
          if (packet.type === PacketType.proposal)
            pair.learnerLink.sendProposal(packet.entry.header.zxid, packet.payload);
          else if (packet.type === PacketType.inform)
            pair.learnerLink.sendInform(packet.entry.header.zxid, packet.payload);
          else pair.learnerLink.send(packet);
          const answer = toLeader[i];
          if (answer !== undefined) pair.leaderLink.send(answer);
          for (let steps = i % 3; steps > 0; steps--) pair.step();
        }
        for (const packet of toLeader.slice(toLearner.length)) pair.leaderLink.send(packet);
        pair.run();
        expect(pair.packetsAtLearner).toEqual(toLearner);
        expect(pair.packetsAtLeader).toEqual(toLeader);
      },
    ),
    { numRuns: 300 },
  );
});

describe('a snapshot', () => {
  /** Applies a random txn to a tree that has `created` below the root. */
  function changeTree(database: Database, random: TestRandom, created: string[], counter: number): Uint8Array {
    const header = { sessionId: 7n, cxid: counter, zxid: makeZxid(1, counter), time: counter };
    const txn = makeTxn(random, created, counter);
    const { payload } = makeProposal(PacketType.proposal, { header, txn, digest: null });
    database.apply(header, txn, SILENT_EVENTS);
    return payload;
  }

  function makeTxn(random: TestRandom, created: string[], counter: number): Txn {
    const data = new Uint8Array(random.below(12_000)).fill(counter);
    const at = random.below(created.length);
    switch (created.length < 20 ? 0 : random.below(5)) {
      case 0:
      case 1: {
        const path = `/z${counter}`;
        created.push(path);
        return {
          type: OpCode.create,
          path,
          data,
          acl: OPEN_ACL,
          isEphemeral: counter % 3 === 0,
          parentCversion: counter,
        };
      }
      case 2:
        return { type: OpCode.delete, path: created.splice(at, 1)[0]! };
      case 3:
        return { type: OpCode.createSession, timeoutMs: 1000 + counter };
      default:
        return { type: OpCode.setData, path: created[at]!, data, version: counter };
    }
  }

  it.each([1, 2, 3, 4])(
    'and what is sent behind it make the tree of the leader, which goes on changing (seed %i)',
    (seed) => {
      const random = new TestRandom(seed);
      const source = makeDatabase();
      const created: string[] = [];
      let counter = 1;
      while (counter < 400) changeTree(source, random, created, counter++);
      const pair = new LinkPair(seed, { chunkBytesMax: 50_000, windowBytes: 100_000 });
      const { learnerLink } = pair;
      learnerLink.send(commitOf(1));
      const zxid = source.lastZxid;
      const sent: Uint8Array[] = [];
      learnerLink.sendSnapshot(source, source.lastZxid);
      expect(learnerLink.hasRoom).toBe(false);
      for (let isGoing = true; isGoing; isGoing = pair.step()) {
        if (counter >= 600) continue;
        const payload = changeTree(source, random, created, counter);
        sent.push(payload);
        learnerLink.sendProposal(makeZxid(1, counter), payload);
        learnerLink.send(commitOf(counter++));
      }
      expect(learnerLink.hasRoom).toBe(true);
      // The learner took parts of the snapshot while the tree changed; there was no room before its end.
      expect(pair.atLeader.slice(0, 3)).toEqual(['progress', 'progress', 'room']);
      expect(zxidsOf(pair.packetsAtLearner.slice(0, 2))).toEqual([makeZxid(1, 1), zxid]);

      const at = pair.atLearner.findIndex((told) => typeof told === 'object' && 'database' in told);
      expect(at).toBe(2);
      const received = pair.atLearner[at] as { database: Database };
      expect(received.database.lastZxid).toBe(zxid);
      let proposals = 0;
      for (const packet of pair.packetsAtLearner.slice(2)) {
        if (packet.type !== PacketType.proposal) continue;
        proposals++;
        const { header, txn } = packet.entry;
        expect(Buffer.compare(packet.payload, sent[proposals - 1]!)).toBe(0);
        received.database.apply(header, txn, SILENT_EVENTS);
      }
      expect(proposals).toBe(200);
      expect(received.database.tree.count).toBe(source.tree.count);
      expect(received.database.tree.treeDigest()).toBe(source.tree.treeDigest());
      expect(received.database.sessions).toEqual(source.sessions);
      expect(received.database.lastZxid).toBe(source.lastZxid);
      for (const path of created) {
        const [here, there] = [received.database.tree, source.tree];
        expect(Buffer.compare(here.dataOf(here.znodes.find(path))!, there.dataOf(there.znodes.find(path))!)).toBe(0);
      }
    },
  );

  it('leaves in many turns also where the stream takes all of it at once', () => {
    const database = makeDatabase();
    for (let i = 1; i <= 12; i++) {
      const data = new Uint8Array(100_000).fill(i);
      const znode = { path: `/z${i}`, data, acl: OPEN_ACL, isEphemeral: false, parentCversion: i };
      const header = { sessionId: 7n, cxid: i, zxid: makeZxid(1, i), time: i };
      database.apply(header, { type: OpCode.create, ...znode }, SILENT_EVENTS);
    }
    const { stream, host, link, told } = stubbedLearnerLink();
    link.sendSnapshot(database, database.lastZxid);
    link.send(commitOf(12));
    const bytesOfTurns: number[] = [];
    while (host.turn.hasWork) {
      const before = stream.written.length;
      host.endTurn();
      bytesOfTurns.push(stream.written.length - before);
    }
    expect(bytesOfTurns.length).toBeGreaterThanOrEqual(4);
    // A slice, and the znode that goes beyond it.
    expect(Math.max(...bytesOfTurns)).toBeLessThan(400_000);
    expect(stream.written.length).toBeGreaterThan(1_200_000);
    expect(link.hasRoom).toBe(true);
    expect(told).toContain('room');
  });

  /** SNAP, no sessions, no ACLs, the root, the end, and what stands in the place of the signature. */
  function snapBytes(signature: string): Uint8Array {
    return bytesOf((b) =>
      b
        .int(15)
        .long(0x100000005)
        .int(-1)
        .int(-1)
        .int(0)
        .int(0)
        .text('')
        .buffer([])
        .long(-1)
        .raw(new Uint8Array(60))
        .text('/')
        .text(signature)
        .int(12)
        .long(-1)
        .int(-1)
        .int(-1),
    );
  }

  it('is a SNAP packet, the body of a snapshot file and a signature; a packet follows', () => {
    const pair = new LinkPair(1, { chunkBytesMax: 3 });
    pair.streams[1].write(snapBytes('BenWasHere'));
    pair.run();
    expect(pair.atLearner).toMatchObject([
      { packet: { type: PacketType.snap, zxid: 0x100000005 } },
      { database: { lastZxid: 0x100000005 } },
      { packet: { type: PacketType.upToDate } },
    ]);
  });

  it('without its signature ends the link', () => {
    const pair = new LinkPair();
    pair.streams[1].write(snapBytes('BenWasThere'));
    pair.run();
    expect(pair.atLearner.at(-1)).toEqual({ closed: "the leader's snapshot does not end with its signature" });
  });

  it('of which something cannot be read ends the link', () => {
    const pair = new LinkPair();
    pair.streams[1].write(bytesOf((b) => b.int(15).long(5).int(-1).int(-1).int(-7)));
    pair.run();
    expect(pair.atLearner.at(-1)).toMatchObject({ closed: expect.stringContaining('the number of sessions is -7') });
  });
});

describe('a link that is paused', () => {
  it('tells nothing, not even what came with the packet that is being told, until it is resumed', () => {
    const pair = new LinkPair(1, { chunkBytesMax: 10_000 });
    for (let i = 1; i <= 10; i++) pair.learnerLink.send(commitOf(i));
    pair.onLearnerTold = (packet) => {
      if (zxidsOf([packet])[0] === makeZxid(1, 3)) pair.leaderLink.pause();
    };
    pair.run();
    expect(pair.atLearner).toHaveLength(3);
    pair.learnerLink.send(commitOf(11));
    pair.run();
    expect(pair.atLearner).toHaveLength(3);

    pair.leaderLink.resume();
    expect(pair.atLearner).toHaveLength(3);
    pair.run();
    expect(zxidsOf(pair.packetsAtLearner)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map((i) => makeZxid(1, i)));
  });

  it('tells of its end behind all that came before it', () => {
    const pair = new LinkPair(1, { chunkBytesMax: 10_000 });
    pair.learnerLink.send(commitOf(1));
    pair.learnerLink.send(commitOf(2));
    pair.onLearnerTold = () => pair.leaderLink.pause();
    pair.run();
    pair.streams[1].reset();
    pair.run();
    expect(pair.atLearner).toHaveLength(1);
    pair.onLearnerTold = () => {};
    pair.leaderLink.resume();
    pair.run();
    expect(zxidsOf(pair.packetsAtLearner)).toEqual([makeZxid(1, 1), makeZxid(1, 2)]);
    expect(pair.atLearner[2]).toEqual({ closed: 'reset by peer' });
    expect(pair.atLearner).toHaveLength(3);
  });

  it('that is resumed and paused again at once goes on telling nothing', () => {
    const pair = new LinkPair(1, { chunkBytesMax: 10_000 });
    for (let i = 1; i <= 3; i++) pair.learnerLink.send(commitOf(i));
    pair.onLearnerTold = () => pair.leaderLink.pause();
    pair.run();
    pair.leaderLink.resume();
    pair.leaderLink.pause();
    pair.run();
    expect(pair.atLearner).toHaveLength(1);
    pair.leaderLink.resume();
    pair.run();
    expect(pair.atLearner).toHaveLength(2);
  });
});

describe('output', () => {
  it('of a turn leaves in one write at its end', () => {
    const { stream, host, link } = stubbedLearnerLink();
    link.send({ type: PacketType.commit, zxid: 5 as Zxid });
    link.sendProposal(6 as Zxid, new Uint8Array([1, 2]));
    expect(stream.written).toEqual([]);
    host.endTurn();
    expect(Uint8Array.from(stream.written)).toEqual(
      bytesOf((b) => b.int(4).long(5).int(-1).int(-1).int(2).long(6).buffer([1, 2]).int(-1)),
    );
  });

  it('has room again once the learner has taken it, which is told', () => {
    const { stream, host, told, link } = stubbedLearnerLink();
    link.sendProposal(1 as Zxid, new Uint8Array(10));
    host.endTurn();
    expect(told).toEqual(['room']);
    link.sendProposal(2 as Zxid, new Uint8Array(2 << 20));
    expect(link.hasRoom).toBe(false);
    stream.queuedBytes = 2 << 20;
    host.endTurn();
    expect(told).toEqual(['room']);
    stream.queuedBytes = 0;
    link.onDrain();
    expect(told).toEqual(['room', 'progress', 'room']);
    expect(link.hasRoom).toBe(true);
    host.endTurn();
    expect(told).toHaveLength(3);
  });

  it('that is sent in answer to room leaves in the same turn', () => {
    const stream = new StubStream();
    const host = new TestLinkHost();
    let left = 3;
    const link = new LearnerLink(stream, host, {
      onPacket() {},
      onRoom: () => {
        if (left-- > 0) link.send(commitOf(left));
      },
      onProgress() {},
      onLinkClosed() {},
    });
    link.send(commitOf(9));
    host.endTurn();
    expect(stream.written).toHaveLength(4 * 20);
  });

  it('of a learner that takes nothing is bounded: the link ends', () => {
    const { stream, host, told, link } = stubbedLearnerLink();
    const queuedMax = LINK_OUTPUT_BYTES_MAX + host.fieldBytesMax;
    stream.queuedBytes = queuedMax;
    link.send(commitOf(1));
    host.endTurn();
    expect(told).toEqual([]);
    link.send(commitOf(2));
    expect(stream.calls).toEqual(['destroy']);
    expect(told).toEqual([]);
    host.endTurn();
    link.onClosed('destroyed');
    expect(told).toEqual([`the learner does not take what it is sent: ${queuedMax + 20} bytes wait for it`]);
  });

  it('of the turn in which a link is closed still leaves; nothing is told', () => {
    const pair = new LinkPair();
    pair.learnerLink.send({ type: PacketType.handOver, zxid: makeZxid(1, 9) });
    pair.learnerLink.close('this server steps down');
    pair.leaderLink.send({ type: PacketType.ack, zxid: makeZxid(1, 9) });
    pair.run();
    expect(pair.atLearner).toEqual([
      { packet: { type: PacketType.handOver, zxid: makeZxid(1, 9) } },
      { closed: 'closed by peer' },
    ]);
    expect(pair.atLeader).toEqual([]);
  });

  it('of a link that is closed is not waited for when the peer takes nothing', () => {
    const { stream, host, told, link } = stubbedLearnerLink();
    stream.queuedBytes = 5;
    link.send(commitOf(1));
    host.endTurn();
    link.close('it is silent');
    link.send(commitOf(2));
    host.endTurn();
    expect(stream.calls).toEqual(['destroy']);
    expect(told).toEqual(['room']);
  });
});

describe('bytes that nobody should send', () => {
  it.each([
    ['a request of HTTP', new TextEncoder().encode('GET / HTTP/1.1\r\nHost: leader:2888\r\n\r\n')],
    ['a negative length', bytesOf((b) => b.int(11).long(0).int(-2))],
    [
      'a length beyond every limit',
      bytesOf((b) =>
        b
          .int(11)
          .long(0)
          .int(2 ** 31 - 1),
      ),
    ],
    ['a packet that is shorter than its fields', bytesOf((b) => b.int(18).long(0).buffer([1]).int(-1))],
  ])('%s ends the link, and nothing that follows is told', (_name, bytes) => {
    const pair = new LinkPair(1, { chunkBytesMax: 5 });
    pair.streams[0].write(bytes);
    pair.streams[0].write(bytesOf((b) => b.int(3).long(7).int(-1).int(-1)));
    pair.run();
    expect(pair.atLeader).toHaveLength(1);
    expect(pair.atLeader[0]).toMatchObject({ closed: expect.stringMatching(/packet/) });
    expect(pair.streams[1].isClosed).toBe(true);
  });

  it('that begin a handshake of TLS are told of as such', () => {
    const pair = new LinkPair();
    pair.streams[0].write(Uint8Array.of(0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0xff, 0xff, 0xff, 0xff, 0));
    pair.run();
    expect(pair.atLeader).toEqual([{ closed: expect.stringContaining('it speaks TLS, and this port does not') }]);
  });

  it('are packets or the end of the link, at either end', () => {
    const int = fc.constantFrom(0, 0, 1, 2, 5, 11, 15, 17, 19, 20, 44, -1, -2, 2 ** 31 - 1);
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.array(int, { maxLength: 60 }).map((ints) => bytesOf((b) => ints.reduce((list, value) => list.int(value), b))),
    );
    const ends = (link: (stream: StubStream, host: LinkHost, told: string[]) => StreamEvents) =>
      fc.assert(
        fc.property(bytes, fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }), (all, steps) => {
          const stream = new StubStream();
          const told: string[] = [];
          const events = link(stream, new TestLinkHost(), told);
          for (let at = 0, i = 0; at < all.length; i++) {
            const next = at + steps[i % steps.length]!;
            events.onBytes(all.slice(at, next));
            at = next;
          }
          const closed = told.indexOf('closed');
          expect(closed === -1 || closed === told.length - 1).toBe(true);
          expect(stream.calls).toEqual(closed === -1 ? [] : ['destroy']);
        }),
        { numRuns: 3000 },
      );
    ends((stream, host, told) => {
      return new LearnerLink(stream, host, {
        onPacket: () => told.push('packet'),
        onRoom() {},
        onProgress() {},
        onLinkClosed: () => told.push('closed'),
      });
    });
    ends((stream, host, told) => {
      const onSnapshot = () => told.push('snapshot');
      const events = { onPacket: () => told.push('packet'), onSnapshot, onLinkClosed: () => told.push('closed') };
      return new LeaderLink(stream, host, makeDatabase, events);
    });
  });
});
