import { describe, expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { OpCode } from '../op-code.ts';
import { type ByteList, bytesOf } from '../testing/byte-list.ts';
import { ACL_ENTRIES_MAX, OPEN_ACL } from './data.ts';
import { readRequest, writeRequest } from './requests.ts';
import { CreateMode, readCheck, type WriteRequest } from './writes.ts';

const DATA = Uint8Array.of(1, 2, 3);
const IP_ACL = [{ perms: 5, scheme: 'ip', id: '10.0.0.0/8' }];

/** The fields of each write as the table of op codes lists them, built by hand. */
const WRITES: readonly (readonly [string, WriteRequest, (list: ByteList) => ByteList])[] = [
  [
    'create',
    { op: 1, path: '/a', data: DATA, acl: OPEN_ACL, flags: CreateMode.ephemeral, ttl: -1 },
    (b) => b.text('/a').buffer(DATA).acl([31, 'world', 'anyone']).int(1),
  ],
  [
    'create2 with null data',
    { op: 15, path: '/a', data: null, acl: IP_ACL, flags: CreateMode.persistentSequential, ttl: -1 },
    (b) => b.text('/a').buffer(null).acl([5, 'ip', '10.0.0.0/8']).int(2),
  ],
  [
    'createContainer',
    { op: 19, path: '/a', data: new Uint8Array(0), acl: OPEN_ACL, flags: CreateMode.container, ttl: -1 },
    (b) => b.text('/a').buffer([]).acl([31, 'world', 'anyone']).int(4),
  ],
  [
    'createTTL',
    { op: 21, path: '/a', data: DATA, acl: OPEN_ACL, flags: CreateMode.persistentWithTtl, ttl: 0xffffffffff },
    (b) => b.text('/a').buffer(DATA).acl([31, 'world', 'anyone']).int(5).long(0xffffffffffn),
  ],
  ['delete', { op: 2, path: '/a', version: -1 }, (b) => b.text('/a').int(-1)],
  ['setData', { op: 5, path: '/a', data: DATA, version: 3 }, (b) => b.text('/a').buffer(DATA).int(3)],
  ['setData with null data', { op: 5, path: '/a', data: null, version: 3 }, (b) => b.text('/a').buffer(null).int(3)],
  ['setACL', { op: 7, path: '/a', acl: IP_ACL, version: 9 }, (b) => b.text('/a').acl([5, 'ip', '10.0.0.0/8']).int(9)],
];

describe.each(WRITES)('the record of %s', (_name, request, build) => {
  const bytes = bytesOf(build);

  test('is read as its fields', () => {
    expect(readRequest(request.op, new JuteReader(bytes))).toEqual(request);
  });

  test('is written field by field', () => {
    const writer = new JuteWriter(1);
    writeRequest(writer, request);
    expect(writer.toBytes()).toEqual(bytes);
  });

  test('is refused when it ends early', () => {
    for (let length = 0; length < bytes.length; length++) {
      expect(readRequest(request.op, new JuteReader(bytes.subarray(0, length))), `${length} bytes`).toBeNull();
    }
  });

  test('is refused when its path is null', () => {
    const rest = bytes.subarray(4 + '/a'.length);
    expect(readRequest(request.op, new JuteReader(bytesOf((b) => b.text(null).raw(rest))))).toBeNull();
  });
});

test('data is a view of the chunk and not a copy', () => {
  const chunk = bytesOf((b) => b.text('/a').buffer(DATA).int(3));
  const request = readRequest(OpCode.setData, new JuteReader(chunk)) as { data: Uint8Array };
  expect(request.data.buffer).toBe(chunk.buffer);
});

test('a ttl that is no exact number stays out of range instead of making the record unreadable', () => {
  for (const [ttl, expected] of [
    [2n ** 62n, Number.MAX_SAFE_INTEGER],
    [-(2n ** 62n), Number.MIN_SAFE_INTEGER],
  ] as const) {
    const bytes = bytesOf((b) => b.text('/a').buffer(null).acl([31, 'world', 'anyone']).int(5).long(ttl));
    expect(readRequest(OpCode.createTTL, new JuteReader(bytes))).toMatchObject({ ttl: expected });
  }
});

test('a create keeps flags that name no mode, for the server to refuse', () => {
  const bytes = bytesOf((b) => b.text('/a').buffer(null).acl().int(99));
  expect(readRequest(OpCode.create, new JuteReader(bytes))).toMatchObject({ flags: 99, acl: [] });
});

test('a check is a path and a version', () => {
  expect(readCheck(new JuteReader(bytesOf((b) => b.text('/a').int(7))))).toEqual({ op: 13, path: '/a', version: 7 });
});

test('the numbers of create modes are those of the protocol', () => {
  expect(Object.values(CreateMode)).toEqual([0, 1, 2, 3, 4, 5, 6]);
});

describe('a list of a request with too many entries', () => {
  const recordOf = (count: number): Uint8Array => {
    const entries = Array.from({ length: count }, (_, i) => [31, 'ip', `10.0.${i >> 8}.${i & 255}`] as const);
    return bytesOf((b) =>
      b
        .text('/a')
        .acl(...entries)
        .int(9),
    );
  };

  test('is skipped without decoding its texts, and the following fields are read', () => {
    const longest = readRequest(OpCode.setACL, new JuteReader(recordOf(ACL_ENTRIES_MAX)));
    expect(longest?.op === OpCode.setACL && longest.acl.length).toBe(ACL_ENTRIES_MAX);
    const refused = [{ perms: 0, scheme: null, id: null }];
    expect(readRequest(OpCode.setACL, new JuteReader(recordOf(ACL_ENTRIES_MAX + 1)))).toEqual({
      op: OpCode.setACL,
      path: '/a',
      acl: refused,
      version: 9,
    });
  });

  test('fails the request when it ends early, or when a length in it is wrong', () => {
    const bytes = recordOf(ACL_ENTRIES_MAX + 1);
    expect(readRequest(OpCode.setACL, new JuteReader(bytes.subarray(0, bytes.length - 20)))).toBeNull();
    for (const length of [-2, 2 ** 31 - 1]) {
      const wrong = bytes.slice();
      new DataView(wrong.buffer).setInt32(bytes.length - 40, length);
      expect(readRequest(OpCode.setACL, new JuteReader(wrong))).toBeNull();
    }
  });
});
