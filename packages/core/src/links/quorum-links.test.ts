/** Both ends of the stream between a leader and a learner, with each other and with strangers. */
import { makeZxid, PacketType, type Zxid } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { anyLeaderPacket, anyLearnerPacket } from '../../../protocol/src/testing/quorum-arbitraries.ts';
import type { StreamEvents } from '../base/ports.ts';
import { commitOf, LinkPair, makeDatabase, stubbedLearnerLink, TestLinkHost, zxidsOf } from '../testing/link-pair.ts';
import { StubStream } from '../testing/stub-stream.ts';
import { LeaderLink } from './leader-link.ts';
import { LearnerLink, LINK_OUTPUT_BYTES_MAX } from './learner-link.ts';
import type { LinkHost } from './link-host.ts';

it('every packet arrives unchanged and in order, in pieces of any size', () => {
  const leaderPackets = fc.array(
    anyLeaderPacket.filter(({ type }) => type !== PacketType.snap),
    { maxLength: 15, size: 'max' },
  );
  fc.assert(
    fc.property(
      fc.nat(),
      fc.constantFrom(1, 7, 60, 10_000),
      fc.constantFrom(1, 100, 100_000),
      leaderPackets,
      fc.array(anyLearnerPacket, { maxLength: 15, size: 'max' }),
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

describe('a link that is paused', () => {
  it('has no events until it is resumed, not even for packets received with the current one', () => {
    const pair = new LinkPair(1, { chunkBytesMax: 10_000 });
    for (let i = 1; i <= 10; i++) pair.learnerLink.send(commitOf(i));
    pair.onPacketAtLearner = (packet) => {
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

  it('reports its end after everything received before it', () => {
    const pair = new LinkPair(1, { chunkBytesMax: 10_000 });
    pair.learnerLink.send(commitOf(1));
    pair.learnerLink.send(commitOf(2));
    pair.onPacketAtLearner = () => pair.leaderLink.pause();
    pair.run();
    pair.streams[1].reset();
    pair.run();
    expect(pair.atLearner).toHaveLength(1);
    pair.onPacketAtLearner = () => {};
    pair.leaderLink.resume();
    pair.run();
    expect(zxidsOf(pair.packetsAtLearner)).toEqual([makeZxid(1, 1), makeZxid(1, 2)]);
    expect(pair.atLearner[2]).toEqual({ closed: 'reset by peer' });
    expect(pair.atLearner).toHaveLength(3);
  });

  it('that is resumed and paused again at once still has no events', () => {
    const pair = new LinkPair(1, { chunkBytesMax: 10_000 });
    for (let i = 1; i <= 3; i++) pair.learnerLink.send(commitOf(i));
    pair.onPacketAtLearner = () => pair.leaderLink.pause();
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

  it('has room again once the learner has taken it, which is reported', () => {
    const { stream, host, calls, link } = stubbedLearnerLink();
    link.sendProposal(1 as Zxid, new Uint8Array(10));
    host.endTurn();
    expect(calls).toEqual(['room']);
    link.sendProposal(2 as Zxid, new Uint8Array(2 << 20));
    expect(link.hasRoom).toBe(false);
    stream.queuedBytes = 2 << 20;
    host.endTurn();
    expect(calls).toEqual(['room']);
    stream.queuedBytes = 0;
    link.onDrain();
    expect(calls).toEqual(['room', 'progress', 'room']);
    expect(link.hasRoom).toBe(true);
    host.endTurn();
    expect(calls).toHaveLength(3);
  });

  it('that is sent in `onRoom` leaves in the same turn', () => {
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

  it('of a learner that does not read is bounded: the link ends', () => {
    const { stream, host, calls, link } = stubbedLearnerLink();
    const queuedMax = LINK_OUTPUT_BYTES_MAX + host.fieldBytesMax;
    stream.queuedBytes = queuedMax;
    link.send(commitOf(1));
    host.endTurn();
    expect(calls).toEqual([]);
    link.send(commitOf(2));
    expect(stream.calls).toEqual(['destroy']);
    expect(calls).toEqual([]);
    host.endTurn();
    link.onClosed('destroyed');
    expect(calls).toEqual([`the learner does not read: ${queuedMax + 20} bytes are queued for it`]);
  });

  it('of the turn in which a link is closed still leaves; no event follows', () => {
    const pair = new LinkPair();
    pair.learnerLink.send({ type: PacketType.handOver, zxid: makeZxid(1, 9) });
    pair.learnerLink.close();
    pair.leaderLink.send({ type: PacketType.ack, zxid: makeZxid(1, 9) });
    pair.run();
    expect(pair.atLearner).toEqual([
      { packet: { type: PacketType.handOver, zxid: makeZxid(1, 9) } },
      { closed: 'closed by peer' },
    ]);
    expect(pair.atLeader).toEqual([]);
  });

  it('of a closed link is dropped when the peer does not read', () => {
    const { stream, host, calls, link } = stubbedLearnerLink();
    stream.queuedBytes = 5;
    link.send(commitOf(1));
    host.endTurn();
    link.close();
    link.send(commitOf(2));
    host.endTurn();
    expect(stream.calls).toEqual(['destroy']);
    expect(calls).toEqual(['room']);
  });
});

describe('invalid bytes', () => {
  it.each([
    ['an HTTP request', new TextEncoder().encode('GET / HTTP/1.1\r\nHost: leader:2888\r\n\r\n')],
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
  ])('%s ends the link, and nothing after it is delivered', (_name, bytes) => {
    const pair = new LinkPair(1, { chunkBytesMax: 5 });
    pair.streams[0].write(bytes);
    pair.streams[0].write(bytesOf((b) => b.int(3).long(7).int(-1).int(-1)));
    pair.run();
    expect(pair.atLeader).toHaveLength(1);
    expect(pair.atLeader[0]).toMatchObject({ closed: expect.stringMatching(/packet/) });
    expect(pair.streams[1].isClosed).toBe(true);
  });

  it('that start a TLS handshake are reported as such', () => {
    const pair = new LinkPair();
    pair.streams[0].write(Uint8Array.of(0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0xff, 0xff, 0xff, 0xff, 0));
    pair.run();
    expect(pair.atLeader).toEqual([{ closed: expect.stringContaining('it speaks TLS, and this port does not') }]);
  });

  it('are decoded as packets or end the link, at either end', () => {
    const int = fc.constantFrom(0, 0, 1, 2, 5, 11, 15, 17, 19, 20, 44, -1, -2, 2 ** 31 - 1);
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 300, size: 'max' }),
      fc
        .array(int, { maxLength: 60, size: 'max' })
        .map((ints) => bytesOf((b) => ints.reduce((list, value) => list.int(value), b))),
    );
    const ends = (link: (stream: StubStream, host: LinkHost, calls: string[]) => StreamEvents) =>
      fc.assert(
        fc.property(bytes, fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }), (all, steps) => {
          const stream = new StubStream();
          const calls: string[] = [];
          const events = link(stream, new TestLinkHost(), calls);
          for (let at = 0, i = 0; at < all.length; i++) {
            const next = at + steps[i % steps.length]!;
            events.onBytes(all.slice(at, next));
            at = next;
          }
          const closed = calls.indexOf('closed');
          expect(closed === -1 || closed === calls.length - 1).toBe(true);
          expect(stream.calls).toEqual(closed === -1 ? [] : ['destroy']);
        }),
        { numRuns: 3000 },
      );
    ends((stream, host, calls) => {
      return new LearnerLink(stream, host, {
        onPacket: () => calls.push('packet'),
        onRoom() {},
        onProgress() {},
        onLinkClosed: () => calls.push('closed'),
      });
    });
    ends((stream, host, calls) => {
      const onSnapshot = () => calls.push('snapshot');
      const events = { onPacket: () => calls.push('packet'), onSnapshot, onLinkClosed: () => calls.push('closed') };
      return new LeaderLink(stream, host, makeDatabase, events);
    });
  });
});
