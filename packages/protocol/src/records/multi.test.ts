import { describe, expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { OpCode } from '../op-code.ts';
import { ByteList, bytesOf } from '../testing/byte-list.ts';
import { OPEN_ACL } from './data.ts';
import { writeMultiEnd, writeMultiError, writeMultiHeader } from './multi.ts';
import { readRequest, writeRequest } from './requests.ts';

/** The encoded list of a multi: a header before each operation, and the end marker. */
function multiBytes(...ops: readonly (readonly [type: number, record: (list: ByteList) => ByteList])[]): Uint8Array {
  const list = new ByteList();
  for (const [type, record] of ops) record(list.int(type).boolean(false).int(-1));
  return list.int(-1).boolean(true).int(-1).toBytes();
}

const readMulti = (bytes: Uint8Array) => readRequest(OpCode.multi, new JuteReader(bytes));
const readMultiRead = (bytes: Uint8Array) => readRequest(OpCode.multiRead, new JuteReader(bytes));
const createRecord = (flags: number) => (b: ByteList) =>
  b.text('/a').buffer([1]).acl([31, 'world', 'anyone']).int(flags);
const ttlRecord = (flags: number, ttl: number) => (b: ByteList) => createRecord(flags)(b).long(ttl);
const CREATE = { path: '/a', data: Uint8Array.of(1), acl: OPEN_ACL };

test('a multi holds creates of all kinds, deletes, writes and checks', () => {
  const bytes = multiBytes(
    [1, createRecord(0)],
    [15, createRecord(3)],
    [19, createRecord(4)],
    [21, ttlRecord(5, 1000)],
    [2, (b) => b.text('/b').int(-1)],
    [5, (b) => b.text('/c').buffer(null).int(7)],
    [13, (b) => b.text('/d').int(8)],
  );
  const request = {
    op: OpCode.multi,
    ops: [
      { op: OpCode.create, ...CREATE, flags: 0, ttl: -1 },
      { op: OpCode.create2, ...CREATE, flags: 3, ttl: -1 },
      { op: OpCode.createContainer, ...CREATE, flags: 4, ttl: -1 },
      { op: OpCode.createTTL, ...CREATE, flags: 5, ttl: 1000 },
      { op: OpCode.delete, path: '/b', version: -1 },
      { op: OpCode.setData, path: '/c', data: null, version: 7 },
      { op: OpCode.check, path: '/d', version: 8 },
    ],
  } as const;
  expect(readMulti(bytes)).toEqual(request);
  const writer = new JuteWriter(1);
  writeRequest(writer, request);
  expect(writer.toBytes()).toEqual(bytes);
});

test('an empty multi is legal', () => {
  expect(readMulti(multiBytes())).toEqual({ op: OpCode.multi, ops: [] });
  expect(readMultiRead(multiBytes())).toEqual({ op: OpCode.multiRead, ops: [] });
});

describe('inside a multi the flags decide what a create becomes', () => {
  const { create, create2, createContainer, createTTL } = OpCode;

  // Rows of the table in the protocol's chapter on multi: header type, flags, what comes of them.
  test.each([
    [create, 4, createContainer],
    [create2, 4, createContainer],
    [createContainer, 4, createContainer],
    [create, 5, createTTL],
    [create2, 6, createTTL],
    [createContainer, 5, createTTL],
    [create, 0, create],
    [create, 1, create],
    [create2, 2, create2],
    [create2, 3, create2],
    [createContainer, 0, createContainer],
    [createContainer, 3, createContainer],
  ])('type %i with flags %i becomes type %i, without a ttl', (type, flags, expected) => {
    expect(readMulti(multiBytes([type, createRecord(flags)]))).toEqual({
      op: OpCode.multi,
      ops: [{ op: expected, ...CREATE, flags, ttl: -1 }],
    });
  });

  test.each([
    [0, create, -1],
    [3, create, -1],
    [4, createContainer, -1],
    [5, createTTL, 60_000],
    [6, createTTL, 60_000],
    // Refused later, and this operation alone.
    [7, createTTL, 60_000],
    [-1, createTTL, 60_000],
  ])('createTTL with flags %i becomes type %i with ttl %i', (flags, expected, ttl) => {
    expect(readMulti(multiBytes([createTTL, ttlRecord(flags, 60_000)]))).toEqual({
      op: OpCode.multi,
      ops: [{ op: expected, ...CREATE, flags, ttl }],
    });
  });

  test.each([create, create2, createContainer])('type %i with an illegal flag makes the multi undecodable', (type) => {
    for (const flags of [7, -1, 100]) expect(readMulti(multiBytes([type, createRecord(flags)]))).toBeNull();
  });
});

test('a multi that holds another operation is refused as a whole', () => {
  const path = (b: ByteList) => b.text('/a').int(0).int(0);
  for (const type of [0, 3, 4, 6, 7, 8, 9, 11, 12, 14, 16, 17, 20, 22, 100, -10, -11, -1, 999]) {
    expect(readMulti(multiBytes([2, (b) => b.text('/a').int(-1)], [type, path])), `type ${type}`).toBeNull();
  }
});

test('a multi that ends early is refused', () => {
  const bytes = multiBytes([1, createRecord(0)], [2, (b) => b.text('/b').int(-1)]);
  for (let length = 0; length < bytes.length; length++) expect(readMulti(bytes.subarray(0, length))).toBeNull();
});

test('a multiRead holds getData and getChildren, and its watch flags are ignored', () => {
  const bytes = multiBytes([4, (b) => b.text('/a').boolean(true)], [8, (b) => b.text('/b').boolean(false)]);
  const request = {
    op: OpCode.multiRead,
    ops: [
      { op: OpCode.getData, path: '/a' },
      { op: OpCode.getChildren, path: '/b' },
    ],
  } as const;
  expect(readMultiRead(bytes)).toEqual(request);
  const writer = new JuteWriter(1);
  writeRequest(writer, request);
  const withoutWatch = multiBytes([4, (b) => b.text('/a').boolean(false)], [8, (b) => b.text('/b').boolean(false)]);
  expect(writer.toBytes()).toEqual(withoutWatch);
});

test('a multiRead with a write, another read or a null path in it is refused as a whole', () => {
  for (const type of [1, 2, 3, 5, 6, 12, 13, 15, 103, -1]) {
    expect(readMultiRead(multiBytes([type, (b) => b.text('/a').boolean(false)])), `type ${type}`).toBeNull();
  }
  expect(readMultiRead(multiBytes([4, (b) => b.text(null).boolean(false)]))).toBeNull();
});

test('the results of a multi are headers of 9 bytes, errors carrying their code twice', () => {
  const writer = new JuteWriter(1);
  writeMultiHeader(writer, OpCode.delete, false, 0);
  writeMultiError(writer, -101);
  writeMultiEnd(writer);
  expect(writer.toBytes()).toEqual(
    bytesOf((b) =>
      b.int(2).boolean(false).int(0).int(-1).boolean(false).int(-101).int(-101).int(-1).boolean(true).int(-1),
    ),
  );
});
