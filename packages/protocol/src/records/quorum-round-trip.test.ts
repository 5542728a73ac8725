/** Everything that our servers write to each other is read back unchanged; arbitrary bytes do no harm. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import {
  anyHello,
  anyLeaderPacket,
  anyLearnerPacket,
  anyMembership,
  anyNotification,
} from '../testing/quorum-arbitraries.ts';
import { readElectionNotification, writeElectionNotification } from './election.ts';
import { measureElectionHello, readElectionHello, writeElectionHello } from './election-hello.ts';
import { readLeaderPacket, writeLeaderPacket } from './leader-packets.ts';
import { readLearnerPacket, writeLearnerPacket } from './learner-packets.ts';
import { formatMembership, parseMembership } from './membership.ts';
import { readQuorumPacket } from './quorum.ts';
import { QuorumPacketScanner } from './quorum-packet-scanner.ts';

const RUNS = { numRuns: 2000 };

function bytesFrom(write: (writer: JuteWriter) => void): Uint8Array {
  const writer = new JuteWriter(1);
  write(writer);
  return writer.toBytes();
}

test('every notification that is written is read back as it was', () => {
  fc.assert(
    fc.property(anyNotification, (notification) => {
      const bytes = bytesFrom((writer) => writeElectionNotification(writer, notification));
      expect(readElectionNotification(new JuteReader(bytes))).toEqual(notification);
    }),
    RUNS,
  );
});

test('every hello that is written is measured, and read back as it was', () => {
  fc.assert(
    fc.property(anyHello, (hello) => {
      const bytes = bytesFrom((writer) => writeElectionHello(writer, hello));
      expect(measureElectionHello(bytes, 0, bytes.length)).toBe(bytes.length);
      const reader = new JuteReader(bytes);
      expect(readElectionHello(reader)).toEqual(hello);
      expect(reader.remaining).toBe(0);
    }),
    RUNS,
  );
});

test('every packet of a learner that is written is read back as it was', () => {
  fc.assert(
    fc.property(anyLearnerPacket, (packet) => {
      const reader = new JuteReader(bytesFrom((writer) => writeLearnerPacket(writer, packet)));
      expect(readLearnerPacket(reader)).toEqual(packet);
      expect(reader.remaining).toBe(0);
    }),
    RUNS,
  );
});

test('every packet of a leader that is written is read back as it was', () => {
  fc.assert(
    fc.property(anyLeaderPacket, (packet) => {
      const reader = new JuteReader(bytesFrom((writer) => writeLeaderPacket(writer, packet)));
      expect(readLeaderPacket(reader)).toEqual(packet);
      expect(reader.remaining).toBe(0);
    }),
    RUNS,
  );
});

test('every membership that is written is read back as it was', () => {
  fc.assert(
    fc.property(anyMembership, (membership) => {
      expect(parseMembership(formatMembership(membership))).toEqual(membership);
    }),
    RUNS,
  );
});

test('consecutive packets are found, in whatever pieces they arrive', () => {
  const packets = fc.array(fc.oneof(anyLearnerPacket.map(learnerBytes), anyLeaderPacket.map(leaderBytes)), {
    minLength: 1,
    maxLength: 8,
  });
  fc.assert(
    fc.property(packets, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (list, steps) => {
      const stream = Uint8Array.from(list.flatMap((bytes) => [...bytes]));
      const scanner = new QuorumPacketScanner();
      const found: Uint8Array[] = [];
      let start = 0;
      for (let end = 0, i = 0; start < stream.length; i++) {
        end = Math.min(end + steps[i % steps.length]!, stream.length);
        for (let length = 1; length > 0; ) {
          length = scanner.scan(stream, start, end);
          expect(length).toBeGreaterThanOrEqual(0);
          if (length > 0) found.push(stream.slice(start, start + length));
          start += length;
        }
      }
      expect(found).toEqual(list);
    }),
    RUNS,
  );
});

test('bytes that the scanner accepts can be read as exactly one packet', () => {
  const LIMIT = 64;
  const someBytes = fc.array(fc.constantFrom(0, 0, 0, 0, 1, 2, 5, 40, 0xff), { minLength: 20, maxLength: 120 });
  let packets = 0;
  fc.assert(
    fc.property(someBytes, (values) => {
      const bytes = Uint8Array.from(values);
      // An invalid zxid would be another reason to refuse a packet.
      bytes.fill(0, 4, 12);
      const length = new QuorumPacketScanner(LIMIT).scan(bytes, 0, bytes.length);
      expect(length).toBeLessThanOrEqual(bytes.length);
      if (length <= 0) return;
      packets++;
      const reader = new JuteReader(bytes.subarray(0, length), LIMIT);
      expect(readQuorumPacket(reader)).not.toBeNull();
      expect(reader.remaining).toBe(0);
    }),
    { numRuns: 20_000 },
  );
  expect(packets).toBeGreaterThan(100);
});

test('any text, even almost a membership, is read or refused, and what was read is written back', () => {
  const pieces = fc.constantFrom(
    ...'\n \t#!=:|;[]%.,+-09afx\\\u2028',
    'server.7=',
    'group.1=',
    'version=',
    '::',
    '',
    '',
  );
  const change = fc.record({ at: fc.nat(400), cut: fc.nat(3), piece: pieces });
  const nearly = fc.tuple(anyMembership, fc.array(change, { maxLength: 4 })).map(([membership, changes]) => {
    let text = formatMembership(membership);
    for (const { at, cut, piece } of changes) {
      const place = at % (text.length + 1);
      text = text.slice(0, place) + piece + text.slice(place + cut);
    }
    return text;
  });
  let memberships = 0;
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary', maxLength: 200 }), { arbitrary: nearly, weight: 9 }), (text) => {
      const membership = parseMembership(text);
      if ('fault' in membership) return;
      memberships++;
      expect(parseMembership(formatMembership(membership))).toEqual(membership);
    }),
    { numRuns: 5000 },
  );
  expect(memberships).toBeGreaterThan(500);
});

function learnerBytes(packet: Parameters<typeof writeLearnerPacket>[1]): Uint8Array {
  return bytesFrom((writer) => writeLearnerPacket(writer, packet));
}

function leaderBytes(packet: Parameters<typeof writeLeaderPacket>[1]): Uint8Array {
  return bytesFrom((writer) => writeLeaderPacket(writer, packet));
}
