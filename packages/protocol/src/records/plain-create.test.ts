import { describe, expect, test } from 'vitest';
import { type ByteList, bytesOf } from '../testing/byte-list.ts';
import { createPathEnd, createPathStart, PlainCreate } from './plain-create.ts';

const DATA = Uint8Array.of(1, 2, 3);

interface Parts {
  readonly zxid?: number | bigint;
  readonly type?: number;
  readonly path?: string;
  readonly data?: Uint8Array | null;
  readonly acl?: (list: ByteList) => ByteList;
  readonly ephemeral?: boolean;
  /** Behind the flag. */
  readonly end?: (list: ByteList) => ByteList;
}

/** The payload of a create as in the log, behind one other byte. */
function payload(parts: Parts = {}): Uint8Array {
  const { zxid = 0x100000008, type = 1, path = '/a/b', data = DATA, ephemeral = false } = parts;
  const acl = parts.acl ?? ((b) => b.acl([31, 'world', 'anyone']));
  const end = parts.end ?? ((b) => b.int(5).int(2).long(-9n));
  return bytesOf((b) => {
    const header = b.byte(0x55).long(-2n).int(7).long(zxid).long(1_700_000_000_000).int(type);
    return end(acl(header.text(path).buffer(data)).boolean(ephemeral));
  });
}

function isPlain(bytes: Uint8Array, end: number = bytes.length): boolean {
  return new PlainCreate().read(bytes, 1, end);
}

describe('a plain create', () => {
  test.each([1, 15])('is found with all its fields: type %i', (type) => {
    const bytes = payload({ type });
    const create = new PlainCreate();
    expect(create.read(bytes, 1, bytes.length)).toBe(true);
    const { zxid, time, pathStart, pathEnd, dataLength, dataEnd, parentCversion, digestAt } = create;
    expect({ zxid, time, dataLength, parentCversion }).toEqual({
      zxid: 0x100000008,
      time: 1_700_000_000_000,
      dataLength: 3,
      parentCversion: 5,
    });
    expect(new TextDecoder().decode(bytes.subarray(pathStart, pathEnd))).toBe('/a/b');
    expect(bytes.subarray(pathEnd + 4, dataEnd)).toEqual(DATA);
    expect(new DataView(bytes.buffer).getBigInt64(create.zxidAt)).toBe(0x100000008n);
    expect(new DataView(bytes.buffer).getBigInt64(create.timeAt)).toBe(1_700_000_000_000n);
    expect(digestAt).toBe(bytes.length - 12);
  });

  test('may have null for data, and no digest', () => {
    const bytes = payload({ data: null, end: (b) => b.int(5) });
    const create = new PlainCreate();
    expect(create.read(bytes, 1, bytes.length)).toBe(true);
    expect(create.dataLength).toBe(-1);
    expect(create.dataEnd).toBe(create.pathEnd + 4);
    expect(create.digestAt).toBe(-1);
  });

  test('has no digest of the one before it', () => {
    const create = new PlainCreate();
    const before = payload();
    expect(create.read(before, 1, before.length)).toBe(true);
    const bytes = payload({ end: (b) => b.int(5) });
    expect(create.read(bytes, 1, bytes.length)).toBe(true);
    expect(create.digestAt).toBe(-1);
  });

  test.each<[string, Parts]>([
    ['another type', { type: 5 }],
    ['a zxid that is not exact', { zxid: 0x7fffffffffffffffn }],
    ['a path that is not ASCII', { path: '/ä' }],
    ['the path of the root', { path: '/' }],
    ['another ACL', { acl: (b) => b.acl([1, 'world', 'anyone']) }],
    ['a longer ACL', { acl: (b) => b.acl([31, 'world', 'anyone'], [31, 'world', 'anyone']) }],
    ['an owner', { ephemeral: true }],
    ['no parentCversion, as in old logs', { end: (b) => b }],
  ])('is not one with %s', (_what, parts) => {
    expect(isPlain(payload(parts))).toBe(false);
  });

  test('is not one when it is truncated anywhere, or when a length is out of range', () => {
    const bytes = payload({ end: (b) => b.int(5) });
    for (let end = 1; end < bytes.length; end++) expect(isPlain(bytes, end)).toBe(false);
    const view = new DataView(bytes.buffer);
    for (const at of [33, 33 + 4 + '/a/b'.length]) {
      const length = view.getInt32(at);
      for (const wrong of [-2, 1000, 0x7fffffff, -0x80000000]) {
        view.setInt32(at, wrong);
        expect(isPlain(bytes)).toBe(false);
      }
      view.setInt32(at, length);
    }
    expect(isPlain(bytes)).toBe(true);
  });
});

test('the path of an unchecked payload lies within the bytes, or there is none', () => {
  const bytes = payload();
  const whole = createPathEnd(bytes, 1);
  expect(new TextDecoder().decode(bytes.subarray(createPathStart(1), whole))).toBe('/a/b');
  for (let end = 0; end < bytes.length; end++) {
    expect(createPathEnd(bytes.subarray(0, end), 1)).toBe(end < whole ? 0 : whole);
  }
  expect(createPathEnd(payload({ type: 5 }), 1)).toBe(0);
  const lengthAt = createPathStart(1) - 4;
  for (const length of [-1, 0x7fffffff, -0x80000000]) {
    new DataView(bytes.buffer).setInt32(lengthAt, length);
    expect(createPathEnd(bytes, 1)).toBe(0);
  }
});
