import {
  JuteReader,
  JuteWriter,
  makeZxid,
  OpCode,
  PacketType,
  type ProposalPacket,
  previousZxid,
  readTxnEntry,
  type TxnHeader,
  writeTxn,
  ZXID_NONE,
  type Zxid,
} from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { commitOf, LinkPair } from '../testing/link-pair.ts';
import { InputBuffer } from './input-buffer.ts';
import { ReadMemory } from './read-memory.ts';

function payloadOf(zxid: Zxid, dataBytes: number): Uint8Array {
  const writer = new JuteWriter();
  const header: TxnHeader = { sessionId: 1n, cxid: 1, zxid, time: 1 };
  const data = new Uint8Array(dataBytes).map((_, i) => zxid + i);
  writeTxn(writer, header, { type: OpCode.setData, path: '/a', data, version: 1 });
  return writer.toBytes();
}

/**
 * Sends txns of these sizes; the learner applies each when `behind` more have arrived.
 *
 * @returns the memory that contained them
 */
function send(sizes: readonly number[], behind: number, chunkBytesMax: number): ReadonlySet<ArrayBufferLike> {
  const pair = new LinkPair(1, { chunkBytesMax, windowBytes: 1 << 20 });
  const memories = new Set<ArrayBufferLike>();
  const shown: ProposalPacket[] = [];
  const apply = (): void => {
    const { entry, payload } = shown.shift()!;
    const { zxid } = entry.header;
    const expected = payloadOf(zxid, sizes[zxid - makeZxid(1, 1)]!);
    expect(payload.length === expected.length && payload.every((byte, i) => byte === expected[i])).toBe(true);
    pair.leaderLink.onApplied(zxid);
  };
  pair.onPacketAtLearner = (packet) => {
    if (packet.type !== PacketType.proposal) throw new Error('only proposals are sent');
    memories.add(packet.payload.buffer);
    shown.push(packet);
    if (shown.length > behind) apply();
  };
  sizes.forEach((bytes, i) => {
    const zxid = makeZxid(1, i + 1);
    pair.learnerLink.sendProposal(zxid, payloadOf(zxid, bytes));
    pair.run();
  });
  while (shown.length > 0) apply();
  return memories;
}

describe('the memory of a link to the leader', () => {
  test('keeps each txn unchanged until it is applied, regardless of its length and of how late that is', () => {
    const size = fc.oneof(
      { arbitrary: fc.nat(300), weight: 6 },
      { arbitrary: fc.nat(9_000), weight: 6 },
      { arbitrary: fc.constant(150_000), weight: 1 },
    );
    fc.assert(
      fc.property(
        fc.array(size, { minLength: 20, maxLength: 50, size: 'max' }),
        fc.nat(15),
        fc.constantFrom(3_000, 50_000),
        (sizes, behind, chunkBytesMax) => void send(sizes, behind, chunkBytesMax),
      ),
      { numRuns: 20 },
    );
  });

  test('is reused: it is proportional to the unapplied txns, however many arrive', () => {
    const sizes = new Array<number>(1000).fill(1000);
    expect(send(sizes, 2, 100_000).size).toBeLessThan(8);
    // 100 KB of txns wait, in pieces of 32 KiB by then.
    expect(send(sizes, 100, 100_000).size).toBeLessThan(20);
  });

  test('keeps a membership change sent to an observer until it is applied', () => {
    const pair = new LinkPair(1, { windowBytes: 1 << 20 });
    const zxid = makeZxid(1, 1);
    const payload = payloadOf(zxid, 100);
    const entry = readTxnEntry(new JuteReader(payload))!;
    pair.learnerLink.send({ type: PacketType.informAndActivate, designatedLeader: 1, entry, payload });
    pair.run();
    const [arrived] = pair.packetsAtLearner;
    if (arrived?.type !== PacketType.informAndActivate) throw new Error('the change has not arrived');
    for (let i = 0; i < 2000; i++) {
      pair.leaderLink.onApplied(previousZxid(zxid));
      pair.learnerLink.send(commitOf(1));
      pair.run();
    }
    expect(arrived.payload).toEqual(payload);
  });

  test('is reused at once when it contains no txn, as in a snapshot', () => {
    const memory = new ReadMemory();
    const input = new InputBuffer();
    const rooms = new Set<ArrayBufferLike>();
    for (let i = 0; i < 1000; i++) {
      const room = memory.roomOf(input, ZXID_NONE);
      rooms.add(room.buffer);
      input.append(room);
      input.start = input.end - 3;
    }
    expect(rooms.size).toBeLessThan(4);
  });
});
