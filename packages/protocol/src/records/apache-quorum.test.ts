import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { OpCode } from '../op-code.ts';
import { readElectionNotification, writeElectionNotification } from './election.ts';
import { measureElectionHello, readElectionHello, writeElectionHello } from './election-hello.ts';
import { type LeaderPacket, readLeaderPacket, writeLeaderPacket } from './leader-packets.ts';
import { type LearnerPacket, readLearnerPacket, writeLearnerPacket } from './learner-packets.ts';
import { findMembershipFault, formatMembership, parseMembership } from './membership.ts';
import { PacketType, readQuorumPacket, writeQuorumPacket } from './quorum.ts';
import { QuorumPacketScanner } from './quorum-packet-scanner.ts';
import { readRequest } from './requests.ts';
import { isSnapSignatureAt, SNAP_SIGNATURE_BYTES } from './snap-stream.ts';

/** Words of each line, the last of which are the bytes in hexadecimal. */
const LINES = readFileSync(new URL('apache-quorum.txt', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .filter((line) => !line.startsWith('#'))
  .map((line) => line.split(' '));

const linesOf = (kind: string) => LINES.filter(([first]) => first === kind).map(([, ...rest]) => rest);
const bytesOfHex = (hex: string | undefined) => Uint8Array.from(Buffer.from(hex ?? '', 'hex'));
const hexOf = (write: (writer: JuteWriter) => void) => {
  const writer = new JuteWriter(1);
  write(writer);
  return Buffer.from(writer.toBytes()).toString('hex');
};

function readLearner(hex: string): Exclude<LearnerPacket, { type: null }> {
  const packet = readLearnerPacket(new JuteReader(bytesOfHex(hex)));
  if (packet === null || packet.type === null) throw new Error('this is no packet of a learner');
  return packet;
}

function readLeader(hex: string): Exclude<LeaderPacket, { type: null }> {
  const packet = readLeaderPacket(new JuteReader(bytesOfHex(hex)));
  if (packet === null || packet.type === null) throw new Error('this is no packet of a leader');
  return packet;
}

test.each(linesOf('hello'))("Apache's hello %# is measured, read and written again byte for byte", (hex) => {
  const bytes = bytesOfHex(hex);
  expect(measureElectionHello(bytes, 0, bytes.length)).toBe(bytes.length);
  const hello = readElectionHello(new JuteReader(bytes));
  if (hello === null || hello.version === null || hello.serverId === null) throw new Error('this is no hello');
  const { version, serverId, addresses } = hello;
  expect(addresses).toHaveLength(version === -65535 ? 2 : 1);
  expect(hexOf((writer) => writeElectionHello(writer, { version, serverId, addresses }))).toBe(hex);
});

test.each(linesOf('notification'))("Apache's notification %# is read, and written again byte for byte", (hex) => {
  const notification = readElectionNotification(new JuteReader(bytesOfHex(hex)));
  if (notification === null) throw new Error('this is no notification');
  // The one without a config is written with the version that it has on the wire, which its reader ignores.
  const version = notification.configText === null ? 1 : notification.version;
  expect(hexOf((writer) => writeElectionNotification(writer, { ...notification, version }))).toBe(hex);
});

test("the config of Apache's notifications and NEWLEADER packets is read, and written again as it was", () => {
  const notifications = linesOf('notification').map(
    ([hex]) => readElectionNotification(new JuteReader(bytesOfHex(hex)))?.configText,
  );
  const newLeaders = linesOf('leader')
    .map(([, hex]) => readLeader(hex as string))
    .map((packet) => (packet.type === PacketType.newLeader ? packet.configText : null));
  const texts = [...notifications, ...newLeaders].filter((text): text is string => text?.includes('version') ?? false);
  expect(texts.length).toBeGreaterThan(6);
  expect(texts.some((text) => text.includes('|'))).toBe(true);
  for (const text of texts) {
    const membership = parseMembership(text);
    if ('fault' in membership) throw new Error(membership.fault);
    expect(formatMembership(membership)).toBe(text);
    const rules = { isStandaloneEnabled: true, isMultiAddressEnabled: text.includes('|') };
    expect(findMembershipFault(membership, rules)).toBeNull();
  }
});

test.each(linesOf('packet'))("Apache's packet %# is read, and written again byte for byte", (hex) => {
  const packet = readQuorumPacket(new JuteReader(bytesOfHex(hex)));
  if (packet === null) throw new Error('this is no packet');
  const { zxid, data, authInfo } = packet;
  expect(hexOf((writer) => writeQuorumPacket(writer, packet.type as PacketType, zxid, data, authInfo))).toBe(hex);
});

test.each(linesOf('learner'))("%s from Apache's learner is read, and written again byte for byte", (name, hex) => {
  const packet = readLearner(hex as string);
  expect(packet.type).toBe(typeOf(name));
  const written = hexOf((writer) => writeLearnerPacket(writer, packet));
  // Apache's learner requests a session with a null vector of identities, ours with an empty one.
  const isBare = packet.type === PacketType.request && packet.authInfo.length === 0;
  expect(written).toBe(isBare ? hex?.replace(/ffffffff$/, '00000000') : hex);
});

test.each(linesOf('leader'))("%s from Apache's leader is read, and written again byte for byte", (name, hex) => {
  const packet = readLeader(hex as string);
  expect(packet.type).toBe(typeOf(name));
  expect(hexOf((writer) => writeLeaderPacket(writer, packet))).toBe(hex);
});

/** `COMMITANDACTIVATE` is `commitAndActivate`. */
function typeOf(name: string | undefined): number | undefined {
  return Object.entries(PacketType).find(([key]) => key.toUpperCase() === name)?.[1];
}

test('every packet that Apache sends has been recorded', () => {
  const recorded = new Set([...linesOf('learner'), ...linesOf('leader')].map(([name]) => name));
  const { handOver, ...ofApache } = PacketType;
  expect(linesOf('leader').some(([, hex]) => readLeader(hex as string).type === handOver)).toBe(false);
  expect(recorded.size).toBe(Object.keys(ofApache).length);
});

test('the body of a forwarded request is the record of the request that the client sent', () => {
  const requests = linesOf('learner').flatMap(([, hex]) => {
    const packet = readLearner(hex as string);
    return packet.type === PacketType.request ? [packet] : [];
  });
  const create = requests.find((packet) => packet.op === OpCode.create);
  expect(create && readRequest(create.op, new JuteReader(create.body))).toMatchObject({ path: '/o', flags: 0 });
  expect(create?.authInfo).toEqual([{ scheme: 'ip', id: '127.0.0.1' }]);
  const session = requests.find((packet) => packet.op === OpCode.createSession);
  expect(session && new JuteReader(session.body).int()).toBe(20_000);
});

describe('a whole connection', () => {
  const [learner, leader] = linesOf('stream').map(([, hex]) => bytesOfHex(hex)) as [Uint8Array, Uint8Array];

  test.each([1, 2, 3, 7, 100, 4096])('of a learner is split into packets when %i bytes arrive at a time', (step) => {
    const lengths = splitPackets(learner, step);
    expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(learner.length);
    let at = 0;
    const types = lengths.map((length) => {
      const reader = new JuteReader(learner.subarray(at, at + length));
      const packet = readLearnerPacket(reader);
      expect(reader.remaining).toBe(0);
      at += length;
      return packet?.type;
    });
    const { followerInfo, ackEpoch, ack } = PacketType;
    expect(types.slice(0, 4)).toEqual([followerInfo, ackEpoch, ack, ack]);
    expect(types).not.toContain(null);
    expect(types).not.toContain(undefined);
  });

  test('of a leader continues with packets behind the signature of a snapshot', () => {
    const scanner = new QuorumPacketScanner();
    const types: unknown[] = [];
    let at = 0;
    while (at < leader.length) {
      const length = scanner.scan(leader, at, leader.length);
      expect(length).toBeGreaterThan(0);
      const packet = readLeaderPacket(new JuteReader(leader.subarray(at, at + length)));
      types.push(packet?.type);
      at += length;
      if (packet?.type !== PacketType.snap) continue;
      while (!isSnapSignatureAt(leader, at)) at++;
      at += SNAP_SIGNATURE_BYTES;
    }
    const { leaderInfo, snap, newLeader, upToDate } = PacketType;
    expect(types.slice(0, 4)).toEqual([leaderInfo, snap, newLeader, upToDate]);
    expect(types).not.toContain(null);
    expect(types).not.toContain(undefined);
  });
});

/** Lengths of the packets, found by a scanner that sees `step` more bytes at each call. */
function splitPackets(bytes: Uint8Array, step: number): readonly number[] {
  const scanner = new QuorumPacketScanner();
  const lengths: number[] = [];
  let start = 0;
  for (let end = step; start < bytes.length; end = Math.min(end + step, bytes.length)) {
    // Bytes that have not arrived yet must not be read.
    const there = bytes.slice(0, end);
    for (;;) {
      const length = scanner.scan(there, start, there.length);
      if (length === 0) break;
      expect(length).toBeGreaterThan(0);
      lengths.push(length);
      start += length;
    }
  }
  return lengths;
}
