import { makeProposal, makeZxid, OPEN_ACL, OpCode, PacketType, type Txn } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { commitOf, LinkPair, makeDatabase, stubbedLearnerLink, zxidsOf } from '../testing/link-pair.ts';
import { TestRandom } from '../testing/memory-network.ts';
import { SILENT_EVENTS } from '../tree/data-tree.ts';
import type { Database } from '../tree/database.ts';

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
    'and the txns sent after it produce the tree of the leader, which keeps changing (seed %i)',
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

      const at = pair.atLearner.findIndex((event) => typeof event === 'object' && 'database' in event);
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

  it('leaves over many turns even if the stream takes all of it at once', () => {
    const database = makeDatabase();
    for (let i = 1; i <= 12; i++) {
      const data = new Uint8Array(100_000).fill(i);
      const znode = { path: `/z${i}`, data, acl: OPEN_ACL, isEphemeral: false, parentCversion: i };
      const header = { sessionId: 7n, cxid: i, zxid: makeZxid(1, i), time: i };
      database.apply(header, { type: OpCode.create, ...znode }, SILENT_EVENTS);
    }
    const { stream, host, link, calls } = stubbedLearnerLink();
    link.sendSnapshot(database, database.lastZxid);
    link.send(commitOf(12));
    const bytesOfTurns: number[] = [];
    while (host.turn.hasWork) {
      const before = stream.written.length;
      host.endTurn();
      bytesOfTurns.push(stream.written.length - before);
    }
    expect(bytesOfTurns.length).toBeGreaterThanOrEqual(4);
    // A slice, and the znode that exceeds it.
    expect(Math.max(...bytesOfTurns)).toBeLessThan(400_000);
    expect(stream.written.length).toBeGreaterThan(1_200_000);
    expect(link.hasRoom).toBe(true);
    expect(calls).toContain('room');
  });

  /** SNAP, no sessions, no ACLs, the root, the end, and a signature. */
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

  it('with an invalid part ends the link', () => {
    const pair = new LinkPair();
    pair.streams[1].write(bytesOf((b) => b.int(15).long(5).int(-1).int(-1).int(-7)));
    pair.run();
    expect(pair.atLearner.at(-1)).toMatchObject({ closed: expect.stringContaining('the number of sessions is -7') });
  });
});
