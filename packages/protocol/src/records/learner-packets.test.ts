import { describe, expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { type ByteList, bytesOf } from '../testing/byte-list.ts';
import type { Zxid } from '../zxid.ts';
import { type LearnerPacket, readLearnerPacket, writeLearnerPacket } from './learner-packets.ts';
import { PacketType, QUORUM_PROTOCOL_VERSION, type UnknownPacket } from './quorum.ts';

const ZXID = 0x300000004 as Zxid;

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

const read = (bytes: Uint8Array) => readLearnerPacket(new JuteReader(bytes));

const PACKETS: readonly (readonly [string, Exclude<LearnerPacket, UnknownPacket>, Uint8Array])[] = [
  [
    'FOLLOWERINFO',
    {
      type: PacketType.followerInfo,
      zxid: 0x300000000 as Zxid,
      serverId: 2,
      protocolVersion: QUORUM_PROTOCOL_VERSION,
      configVersion: 0x200000001 as Zxid,
      announces: 0,
    },
    packetOf(11, 0x300000000, (b) => b.long(2).int(0x10000).long(0x200000001)),
  ],
  [
    'FOLLOWERINFO of ours',
    {
      type: PacketType.followerInfo,
      zxid: ZXID,
      serverId: 2,
      protocolVersion: QUORUM_PROTOCOL_VERSION,
      configVersion: 0 as Zxid,
      announces: 2,
    },
    packetOf(11, ZXID, (b) => b.long(2).int(0x10000).long(0).int(0x4d4b4154).int(2)),
  ],
  [
    'OBSERVERINFO of a server from before 3.5',
    {
      type: PacketType.observerInfo,
      zxid: ZXID,
      serverId: 2,
      protocolVersion: 0x10000,
      configVersion: null,
      announces: 0,
    },
    packetOf(16, ZXID, (b) => b.long(2).int(0x10000)),
  ],
  ['ACKEPOCH', { type: PacketType.ackEpoch, zxid: ZXID, currentEpoch: 3 }, packetOf(18, ZXID, (b) => b.int(3))],
  [
    'ACKEPOCH that is not to be counted, of a server that does not trust its data',
    { type: PacketType.ackEpoch, zxid: -1 as Zxid, currentEpoch: -1 },
    packetOf(18, -1, (b) => b.int(-1)),
  ],
  ['ACK', { type: PacketType.ack, zxid: ZXID }, packetOf(3, ZXID, null)],
  [
    'PING',
    {
      type: PacketType.ping,
      zxid: ZXID,
      sessions: [
        { sessionId: -2n, timeoutMs: 4000 },
        { sessionId: 0x100000abcdef0000n, timeoutMs: 30_000 },
      ],
    },
    packetOf(5, ZXID, (b) => b.long(-2).int(4000).long(0x100000abcdef0000n).int(30_000)),
  ],
  [
    'PING of a server without clients, whose data are empty and not null',
    { type: PacketType.ping, zxid: ZXID, sessions: [] },
    packetOf(5, ZXID, (b) => b),
  ],
  [
    'REVALIDATE',
    { type: PacketType.revalidate, sessionId: -2n, timeoutMs: 4000 },
    packetOf(6, -1, (b) => b.long(-2).int(4000)),
  ],
  [
    'REQUEST',
    {
      type: PacketType.request,
      sessionId: -2n,
      cxid: 7,
      op: 2,
      body: bytesOf((b) => b.text('/a').int(-1)),
      authInfo: [
        { scheme: 'ip', id: '::1' },
        { scheme: null, id: null },
      ],
    },
    bytesOf((b) =>
      b
        .int(1)
        .long(-1)
        .buffer(bytesOf((data) => data.long(-2).int(7).int(2).text('/a').int(-1)))
        .int(2)
        .text('ip')
        .text('::1')
        .text(null)
        .text(null),
    ),
  ],
  [
    'REQUEST without a body',
    {
      type: PacketType.request,
      sessionId: 1n,
      cxid: 0,
      op: -11,
      body: new Uint8Array(0),
      authInfo: [],
    },
    bytesOf((b) =>
      b
        .int(1)
        .long(-1)
        .buffer(bytesOf((data) => data.long(1).int(0).int(-11)))
        .int(0),
    ),
  ],
];

test.each(PACKETS)('%s is read and written field by field', (_name, packet, bytes) => {
  expect(read(bytes)).toEqual(packet);
  const writer = new JuteWriter(1);
  writeLearnerPacket(writer, packet);
  expect(writer.toBytes()).toEqual(bytes);
});

test.each(PACKETS)('%s that ends early is refused', (_name, _packet, bytes) => {
  for (let length = 0; length < bytes.length; length++) expect(read(bytes.subarray(0, length))).toBeNull();
});

describe('FOLLOWERINFO', () => {
  test('without data is of an observer that does not send its id, and older than every version', () => {
    expect(read(packetOf(16, ZXID, null))).toEqual({
      type: PacketType.observerInfo,
      zxid: ZXID,
      serverId: null,
      protocolVersion: 1,
      configVersion: null,
      announces: 0,
    });
  });

  test('of an Apache server without data that is not new (db.autocreate=false) has accepted the epoch −1', () => {
    expect(read(packetOf(11, -0x100000000n, (b) => b.long(3).int(0x10000).long(0)))).toMatchObject({
      zxid: -1,
      serverId: 3,
    });
  });

  test('of the oldest servers has the id alone', () => {
    expect(read(packetOf(11, ZXID, (b) => b.long(4)))).toMatchObject({ serverId: 4, protocolVersion: 1 });
  });

  test('with an id or a config version that is no exact number is refused', () => {
    expect(
      read(
        packetOf(11, ZXID, (b) =>
          b
            .long(2n ** 53n)
            .int(0x10000)
            .long(0),
        ),
      ),
    ).toBeNull();
    expect(
      read(
        packetOf(11, ZXID, (b) =>
          b
            .long(1)
            .int(0x10000)
            .long(2n ** 53n),
        ),
      ),
    ).toBeNull();
    expect(read(packetOf(11, ZXID, (b) => b.long(1).int(0x10000).long(-2)))).toBeNull();
    expect(read(packetOf(11, ZXID, (b) => b.int(1)))).toBeNull();
  });
});

describe('a packet is refused', () => {
  test('when its zxid is no exact number, or below −1', () => {
    for (const zxid of [2n ** 53n, -2n, -(2n ** 63n)]) expect(read(packetOf(3, zxid, null)), String(zxid)).toBeNull();
    expect(read(packetOf(3, 2n ** 53n - 1n, null))).not.toBeNull();
  });

  test('when its data are too short for its fields', () => {
    expect(read(packetOf(18, ZXID, null))).toBeNull();
    expect(read(packetOf(18, ZXID, (b) => b.raw([1, 2, 3])))).toBeNull();
    expect(read(packetOf(6, -1, (b) => b.long(1)))).toBeNull();
    expect(read(packetOf(1, -1, (b) => b.long(1).int(2)))).toBeNull();
    expect(read(packetOf(5, ZXID, (b) => b.long(1).int(2).raw([1])))).toBeNull();
  });
});

test('bytes behind the fields of the data are ignored', () => {
  expect(read(packetOf(18, ZXID, (b) => b.int(3).int(9)))).toEqual({
    type: PacketType.ackEpoch,
    zxid: ZXID,
    currentEpoch: 3,
  });
  expect(read(packetOf(3, ZXID, (b) => b.int(9)))).toEqual({ type: PacketType.ack, zxid: ZXID });
});

test('a packet of an unknown type, or one that only leaders send, is read as unknown', () => {
  for (const type of [0, 2, 4, 8, 17, 20, -1]) {
    expect(read(packetOf(type, ZXID, (b) => b.int(1)))).toEqual({ type: null, typeNumber: type });
  }
});
