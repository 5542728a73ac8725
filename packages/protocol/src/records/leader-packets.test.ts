import { describe, expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { OpCode } from '../op-code.ts';
import { type ByteList, bytesOf } from '../testing/byte-list.ts';
import type { Zxid } from '../zxid.ts';
import { type LeaderPacket, makeProposal, readLeaderPacket, writeLeaderPacket } from './leader-packets.ts';
import { PacketType, QUORUM_PROTOCOL_VERSION, type UnknownPacket } from './quorum.ts';
import type { TxnEntry } from './txn.ts';

const ZXID = 0x300000004 as Zxid;
const EPOCH = 0x300000000 as Zxid;

/** The packet of a type and zxid whose data `build` describes; null for none. */
function packetOf(type: number, zxid: number | bigint, build: ((data: ByteList) => ByteList) | null): Uint8Array {
  return bytesOf((b) =>
    b
      .int(type)
      .long(zxid)
      .buffer(build === null ? null : bytesOf(build))
      .int(-1),
  );
}

const read = (bytes: Uint8Array) => readLeaderPacket(new JuteReader(bytes));

const ENTRY: TxnEntry = {
  header: { sessionId: -2n, cxid: 7, zxid: ZXID, time: 1_700_000_000_000 },
  txn: { type: OpCode.delete, path: '/a' },
  digest: { version: 2, treeDigest: -5n },
};
const txn = (b: ByteList) => b.long(-2).int(7).long(ZXID).long(1_700_000_000_000).int(2).text('/a').int(2).long(-5);
const PAYLOAD = bytesOf(txn);

const PACKETS: readonly (readonly [string, Exclude<LeaderPacket, UnknownPacket>, Uint8Array])[] = [
  [
    'LEADERINFO',
    { type: PacketType.leaderInfo, zxid: EPOCH, protocolVersion: QUORUM_PROTOCOL_VERSION, announces: 0 },
    packetOf(17, EPOCH, (b) => b.int(0x10000)),
  ],
  [
    'LEADERINFO of ours',
    { type: PacketType.leaderInfo, zxid: EPOCH, protocolVersion: QUORUM_PROTOCOL_VERSION, announces: 2 },
    packetOf(17, EPOCH, (b) => b.int(0x10000).int(0x4d4b4154).int(2)),
  ],
  ['HANDOVER', { type: PacketType.handOver, zxid: ZXID }, packetOf(0x4d4b01, ZXID, null)],
  ['DIFF', { type: PacketType.diff, zxid: ZXID }, packetOf(13, ZXID, null)],
  ['TRUNC', { type: PacketType.trunc, zxid: ZXID }, packetOf(14, ZXID, null)],
  ['SNAP', { type: PacketType.snap, zxid: ZXID }, packetOf(15, ZXID, null)],
  [
    'NEWLEADER',
    { type: PacketType.newLeader, zxid: EPOCH, configText: 'server.1=ö:1:2\nversion=0' },
    packetOf(10, EPOCH, (b) => b.raw(new TextEncoder().encode('server.1=ö:1:2\nversion=0'))),
  ],
  [
    'NEWLEADER of a server from before 3.5',
    { type: PacketType.newLeader, zxid: EPOCH, configText: null },
    packetOf(10, EPOCH, null),
  ],
  ['UPTODATE', { type: PacketType.upToDate }, packetOf(12, -1, null)],
  ['PROPOSAL', { type: PacketType.proposal, entry: ENTRY, payload: PAYLOAD }, packetOf(2, ZXID, txn)],
  ['INFORM', { type: PacketType.inform, entry: ENTRY, payload: PAYLOAD }, packetOf(8, ZXID, txn)],
  ['COMMIT', { type: PacketType.commit, zxid: ZXID }, packetOf(4, ZXID, null)],
  [
    'COMMITANDACTIVATE',
    { type: PacketType.commitAndActivate, zxid: ZXID, designatedLeader: 3 },
    packetOf(9, ZXID, (b) => b.long(3)),
  ],
  [
    'INFORMANDACTIVATE',
    { type: PacketType.informAndActivate, designatedLeader: 3, entry: ENTRY, payload: PAYLOAD },
    packetOf(19, ZXID, (b) => txn(b.long(3))),
  ],
  ['PING', { type: PacketType.ping, zxid: ZXID }, packetOf(5, ZXID, null)],
  ['SYNC', { type: PacketType.sync }, packetOf(7, 0, null)],
  [
    'REVALIDATE of a session that is alive',
    { type: PacketType.revalidate, sessionId: -2n, isValid: true },
    packetOf(6, -1, (b) => b.long(-2).boolean(true)),
  ],
  [
    'REVALIDATE of one that is not',
    { type: PacketType.revalidate, sessionId: 5n, isValid: false },
    packetOf(6, -1, (b) => b.long(5).boolean(false)),
  ],
];

test.each(PACKETS)('%s is read and written field by field', (_name, packet, bytes) => {
  expect(read(bytes)).toEqual(packet);
  const writer = new JuteWriter(1);
  writeLeaderPacket(writer, packet);
  expect(writer.toBytes()).toEqual(bytes);
});

test.each(PACKETS)('%s that ends early is refused', (_name, _packet, bytes) => {
  for (let length = 0; length < bytes.length; length++) expect(read(bytes.subarray(0, length))).toBeNull();
});

describe('a proposal', () => {
  test('is made with its bytes, which are those of the log', () => {
    expect(makeProposal(PacketType.proposal, ENTRY)).toEqual({
      type: PacketType.proposal,
      entry: ENTRY,
      payload: PAYLOAD,
    });
    expect(makeProposal(PacketType.inform, { ...ENTRY, digest: null }).payload).toEqual(PAYLOAD.subarray(0, -12));
  });

  test('may be larger than the usual field limit: only its packet size is limited', () => {
    const data = new Uint8Array(3 << 20);
    const setData = { type: OpCode.setData, path: '/a', data, version: 1 };
    const proposal = makeProposal(PacketType.proposal, { ...ENTRY, txn: setData });
    const writer = new JuteWriter();
    writeLeaderPacket(writer, proposal);
    const packet = readLeaderPacket(new JuteReader(writer.toBytes(), 4 << 20));
    const taken = packet?.type === PacketType.proposal ? packet.entry.txn : null;
    expect({ ...taken, data: null }).toEqual({ ...setData, data: null });
    expect(taken?.type === OpCode.setData && taken.data?.length).toBe(data.length);
    expect(read(writer.toBytes())).toBeNull();
  });

  test('whose zxid is not that of its txn is refused', () => {
    expect(read(packetOf(2, ZXID + 1, txn))).toBeNull();
    expect(read(packetOf(8, ZXID - 1, txn))).toBeNull();
    expect(read(packetOf(19, EPOCH, (b) => txn(b.long(3))))).toBeNull();
  });

  test('of an unknown txn is refused', () => {
    const unknown = (b: ByteList) => b.long(1).int(1).long(ZXID).long(0).int(999);
    expect(read(packetOf(2, ZXID, unknown))).toBeNull();
    expect(read(packetOf(2, ZXID, null))).toBeNull();
  });
});

describe('a packet is refused', () => {
  test('when its zxid is no exact number, or below −1', () => {
    for (const zxid of [2n ** 53n, -2n, -(2n ** 63n)]) expect(read(packetOf(4, zxid, null)), String(zxid)).toBeNull();
    expect(read(packetOf(4, 2n ** 53n - 1n, null))).not.toBeNull();
  });

  test('when the designated leader is no exact number', () => {
    expect(read(packetOf(9, ZXID, (b) => b.long(2n ** 53n)))).toBeNull();
    expect(read(packetOf(19, ZXID, (b) => txn(b.long(2n ** 53n))))).toBeNull();
  });

  test('when its data are too short for its fields', () => {
    expect(read(packetOf(17, EPOCH, null))).toBeNull();
    expect(read(packetOf(9, ZXID, (b) => b.int(1)))).toBeNull();
    expect(read(packetOf(6, -1, (b) => b.long(1)))).toBeNull();
  });
});

test('a packet of an unknown type, or one that only learners send, is read as unknown', () => {
  for (const type of [0, 1, 3, 11, 16, 18, 20, -1]) {
    expect(read(packetOf(type, ZXID, (b) => b.int(1)))).toEqual({ type: null, typeNumber: type });
  }
});
