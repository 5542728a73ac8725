/** For any bytes, no reader throws, reads beyond its record, or builds more than the bytes can hold. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { OpCode } from '../op-code.ts';
import { anyRequest, anyTxn, anyTxnHeader } from '../testing/arbitraries.ts';
import { bytesOf } from '../testing/byte-list.ts';
import { anyLeaderPacket, anyLearnerPacket, anyNotification } from '../testing/quorum-arbitraries.ts';
import { readConnectRequest, readConnectResponse } from './connect.ts';
import { readAclList, readPersistedStat, readStat } from './data.ts';
import { readElectionNotification, writeElectionNotification } from './election.ts';
import { readElectionHello } from './election-hello.ts';
import { readLeaderPacket, writeLeaderPacket } from './leader-packets.ts';
import { readLearnerPacket, writeLearnerPacket } from './learner-packets.ts';
import { readQuorumPacket } from './quorum.ts';
import { readRequest, writeRequest } from './requests.ts';
import { readReplyHeader, readWatcherEvent } from './responses.ts';
import { readTxnEntry, writeTxn } from './txn.ts';

type Read = (reader: JuteReader) => unknown;
type Write = (writer: JuteWriter) => void;

const READERS: readonly (readonly [string, Read])[] = [
  ...Object.entries(OpCode).map(([name, op]): [string, Read] => [name, (reader) => readRequest(op, reader)]),
  ['txn', readTxnEntry],
  ['connect request', readConnectRequest],
  ['connect response', readConnectResponse],
  ['ACL list', readAclList],
  ['stat', readStat],
  ['persisted stat', readPersistedStat],
  ['reply header', readReplyHeader],
  ['watch event', readWatcherEvent],
  ['election notification', readElectionNotification],
  ['election hello', readElectionHello],
  ['quorum packet', readQuorumPacket],
  ['learner packet', readLearnerPacket],
  ['leader packet', readLeaderPacket],
];

const MARGIN = 64;

/**
 * Reads `record` inside a larger array, once among zeros and once among ones: if a reader read beyond the record, the
 * two results would differ, or a view would reach outside.
 */
function checkRead(read: Read, record: Uint8Array): void {
  const results = [0x00, 0xff].map((fill) => {
    const chunk = new Uint8Array(record.length + 2 * MARGIN).fill(fill);
    chunk.set(record, MARGIN);
    const reader = new JuteReader(chunk);
    const end = MARGIN + record.length;
    reader.reset(chunk, MARGIN, end);
    const result = read(reader);
    if (reader.position < MARGIN || reader.position > end || reader.end !== end) {
      throw new Error(`the cursor stands at ${reader.position} of [${MARGIN}, ${end}), which ends at ${reader.end}`);
    }
    checkSize(result, chunk, end);
    return { result, failed: reader.failed };
  });
  expect(results[0]).toEqual(results[1]);
}

/** Views lie inside the record; lists have no more elements than the record has bytes. */
function checkSize(value: unknown, chunk: Uint8Array, end: number): void {
  if (value instanceof Uint8Array) {
    if (value.buffer !== chunk.buffer) expect(value.length).toBeLessThanOrEqual(end - MARGIN);
    else if (value.byteOffset < MARGIN || value.byteOffset + value.length > end)
      throw new Error('a view reaches outside');
  } else if (Array.isArray(value)) {
    if (value.length > end - MARGIN && value.length > 1)
      throw new Error(`${value.length} elements of ${end - MARGIN} bytes`);
    for (const element of value) checkSize(element, chunk, end);
  } else if (typeof value === 'object' && value !== null) {
    for (const element of Object.values(value)) checkSize(element, chunk, end);
  } else if (typeof value === 'string') {
    expect(value.length).toBeLessThanOrEqual(end - MARGIN);
  }
}

/** Numbers that are harmful as a count or a length. */
const HOSTILE_INTS = [-(2 ** 31), -3, -2, -1, 0, 1, 2, 0xffff, 0xfffff, 2 * 0xfffff, 2 ** 24, 2 ** 31 - 2, 2 ** 31 - 1];

/** Records with a hostile number at some offset, changed bytes, or a truncated end. */
function mutate(bytes: Uint8Array, places: readonly number[], values: readonly number[], cut: number): Uint8Array {
  const mutant = bytes.slice(0, Math.ceil(bytes.length * cut));
  const view = new DataView(mutant.buffer);
  for (const [i, place] of places.entries()) {
    const value = values[i] ?? 0;
    if (mutant.length === 0) break;
    const at = place % mutant.length;
    if (at + 4 <= mutant.length && value % 2 === 0) view.setInt32(at, HOSTILE_INTS[value % HOSTILE_INTS.length] ?? 0);
    else mutant[at] = value;
  }
  return mutant;
}

const places = fc.array(fc.nat(10_000), { maxLength: 4 });
const values = fc.array(fc.nat(255), { minLength: 4, maxLength: 4 });
const cut = fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true }));

describe.each(READERS)('the reader of %s', (_name, read) => {
  test('tolerates any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => checkRead(read, bytes)),
      { numRuns: 300 },
    );
  });

  test('tolerates hostile numbers at every offset', () => {
    for (const value of HOSTILE_INTS) {
      for (let at = 0; at <= 40; at++) {
        checkRead(
          read,
          bytesOf((b) => b.raw(new Uint8Array(at)).int(value).raw(new Uint8Array(50))),
        );
        checkRead(
          read,
          bytesOf((b) => b.raw(new Uint8Array(at)).int(value)),
        );
      }
    }
  });
});

test('a changed or truncated request is read or refused', () => {
  fc.assert(
    fc.property(anyRequest, places, values, cut, (request, where, what, length) => {
      const writer = new JuteWriter(1);
      writeRequest(writer, request);
      checkRead((reader) => readRequest(request.op, reader), mutate(writer.toBytes(), where, what, length));
    }),
    { numRuns: 5000 },
  );
});

test('a changed or truncated txn is read or refused', () => {
  fc.assert(
    fc.property(anyTxnHeader, anyTxn, places, values, cut, (header, txn, where, what, length) => {
      const writer = new JuteWriter(1);
      writeTxn(writer, header, txn);
      checkRead(readTxnEntry, mutate(writer.toBytes(), where, what, length));
    }),
    { numRuns: 5000 },
  );
});

test('a changed or truncated packet or notification is read or refused', () => {
  const sayings = fc.oneof(
    anyNotification.map((value): readonly [Read, Write] => [
      readElectionNotification,
      (writer) => writeElectionNotification(writer, value),
    ]),
    anyLearnerPacket.map((value): readonly [Read, Write] => [
      readLearnerPacket,
      (writer) => writeLearnerPacket(writer, value),
    ]),
    anyLeaderPacket.map((value): readonly [Read, Write] => [
      readLeaderPacket,
      (writer) => writeLeaderPacket(writer, value),
    ]),
  );
  fc.assert(
    fc.property(sayings, places, values, cut, ([read, write], where, what, length) => {
      const writer = new JuteWriter(1);
      write(writer);
      checkRead(read, mutate(writer.toBytes(), where, what, length));
    }),
    { numRuns: 10_000 },
  );
});

test('a megabyte frame that claims two billion elements costs no memory', () => {
  const frame = bytesOf((b) => b.long(0).int(2 ** 31 - 1));
  const megabyte = new Uint8Array(1 << 20);
  megabyte.set(frame);
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 1000; i++) expect(readRequest(OpCode.setWatches, new JuteReader(megabyte))).toBeNull();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 << 20);
});
