import { describe, expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { type ByteList, bytesOf } from '../testing/byte-list.ts';
import type { Zxid } from '../zxid.ts';
import { OPEN_ACL } from './data.ts';
import { DIGEST_VERSION, readTxnEntry, type Txn, writeTxn, writeTxnDigest } from './txn.ts';

const HEADER = { sessionId: -2n, cxid: 7, zxid: 0x100000008 as Zxid, time: 1_700_000_000_000 };
const DATA = Uint8Array.of(1, 2, 3);

/** Header, type and record of a txn as they stand in the log. */
function payload(type: number, record: (list: ByteList) => ByteList): Uint8Array {
  return bytesOf((b) => record(b.long(HEADER.sessionId).int(7).long(0x100000008).long(1_700_000_000_000).int(type)));
}

const openAcl = (b: ByteList) => b.acl([31, 'world', 'anyone']);

/** The record of each type as the table of transactions lists it, built by hand. */
const TXNS: readonly (readonly [string, Txn, (list: ByteList) => ByteList])[] = [
  [
    'create',
    { type: 1, path: '/a', data: DATA, acl: OPEN_ACL, isEphemeral: true, parentCversion: 4 },
    (b) => openAcl(b.text('/a').buffer(DATA)).boolean(true).int(4),
  ],
  [
    'create2',
    { type: 15, path: '/a', data: null, acl: [], isEphemeral: false, parentCversion: -1 },
    (b) => b.text('/a').buffer(null).acl().boolean(false).int(-1),
  ],
  [
    'createContainer',
    { type: 19, path: '/a', data: DATA, acl: OPEN_ACL, parentCversion: 4 },
    (b) => openAcl(b.text('/a').buffer(DATA)).int(4),
  ],
  [
    'createTTL',
    { type: 21, path: '/a', data: DATA, acl: OPEN_ACL, parentCversion: 4, ttl: 0xffffffffff },
    (b) => openAcl(b.text('/a').buffer(DATA)).int(4).long(0xffffffffff),
  ],
  ['delete', { type: 2, path: '/a' }, (b) => b.text('/a')],
  ['deleteContainer', { type: 20, path: '/a' }, (b) => b.text('/a')],
  ['setData', { type: 5, path: '/a', data: DATA, version: 3 }, (b) => b.text('/a').buffer(DATA).int(3)],
  ['reconfig', { type: 16, path: '/c', data: DATA, version: -1 }, (b) => b.text('/c').buffer(DATA).int(-1)],
  ['setACL', { type: 7, path: '/a', acl: OPEN_ACL, version: 3 }, (b) => openAcl(b.text('/a')).int(3)],
  ['check', { type: 13, path: '/a', version: 4 }, (b) => b.text('/a').int(4)],
  ['createSession', { type: -10, timeoutMs: 30_000 }, (b) => b.int(30_000)],
  ['closeSession', { type: -11, paths: ['/a', '/b'] }, (b) => b.texts('/a', '/b')],
  ['closeSession of a session without ephemerals', { type: -11, paths: [] }, (b) => b.texts()],
  ['error', { type: -1, error: -101 }, (b) => b.int(-101)],
  [
    'multi',
    {
      type: 14,
      txns: [
        { type: 2, path: '/a' },
        { type: 1, path: '/b', data: null, acl: [], isEphemeral: false, parentCversion: 1 },
        { type: -1, error: -2 },
      ],
    },
    (b) =>
      b
        .int(3)
        .int(2)
        .buffer(bytesOf((part) => part.text('/a')))
        .int(1)
        .buffer(bytesOf((part) => part.text('/b').buffer(null).acl().boolean(false).int(1)))
        .int(-1)
        .buffer(bytesOf((part) => part.int(-2))),
  ],
  ['multi of nothing', { type: 14, txns: [] }, (b) => b.int(0)],
];

test('a create2 inside a multi is written as a create, which every server knows', () => {
  // Apache's 3.8.0 throws at the type 15 there, after it has applied what stands before it.
  const create2 = { type: 15, path: '/b', data: null, acl: [], isEphemeral: false, parentCversion: 1 } as const;
  const writer = new JuteWriter(1);
  writeTxn(writer, HEADER, { type: 14, txns: [create2] });
  const part = bytesOf((b) => b.text('/b').buffer(null).acl().boolean(false).int(1));
  expect(writer.toBytes()).toEqual(payload(14, (b) => b.int(1).int(1).buffer(part)));
});

describe.each(TXNS)('the txn %s', (_name, txn, record) => {
  const bytes = payload(txn.type, record);

  test('is read, without and with a digest behind it', () => {
    expect(readTxnEntry(new JuteReader(bytes))).toEqual({ header: HEADER, txn, digest: null });
    const withDigest = bytesOf((b) => b.raw(bytes).int(2).long(-5));
    expect(readTxnEntry(new JuteReader(withDigest))).toEqual({
      header: HEADER,
      txn,
      digest: { version: 2, treeDigest: -5n },
    });
  });

  test('is written field by field', () => {
    const writer = new JuteWriter(1);
    writeTxn(writer, HEADER, txn);
    expect(writer.toBytes()).toEqual(bytes);
    writeTxnDigest(writer, DIGEST_VERSION, -5n);
    expect(writer.toBytes()).toEqual(bytesOf((b) => b.raw(bytes).int(2).long(-5)));
  });
});

test('a txn header has 32 bytes', () => {
  expect(payload(-1, (b) => b)).toHaveLength(32);
});

test('a txn that ends early is refused, except for fields that old logs lack', () => {
  for (const [name, txn, record] of TXNS) {
    const bytes = payload(txn.type, record);
    for (let length = 0; length < bytes.length; length++) {
      const entry = readTxnEntry(new JuteReader(bytes.subarray(0, length)));
      if (txn.type === -11 && length >= 32) {
        expect(entry?.txn, `${name}, ${length} bytes`).toEqual({ type: -11, paths: null });
      } else if ((txn.type === 1 || txn.type === 15) && length >= bytes.length - 4) {
        expect(entry?.txn, `${name}, ${length} bytes`).toEqual({ ...txn, parentCversion: -1 });
      } else {
        expect(entry, `${name}, ${length} bytes`).toBeNull();
      }
    }
  }
});

describe('a txn of an old log', () => {
  test('that creates has no cversion of the parent: −1', () => {
    const bytes = payload(1, (b) => openAcl(b.text('/a').buffer(DATA)).boolean(false));
    expect(readTxnEntry(new JuteReader(bytes))?.txn).toMatchObject({ type: 1, path: '/a', parentCversion: -1 });
  });

  test('that creates inside a multi has none either, regardless of later parts', () => {
    const old = bytesOf((part) => part.text('/a').buffer(null).acl().boolean(true));
    const bytes = payload(14, (b) => b.int(2).int(1).buffer(old).int(1).buffer(old));
    const part = { type: 1, path: '/a', data: null, acl: [], isEphemeral: true, parentCversion: -1 };
    expect(readTxnEntry(new JuteReader(bytes))?.txn).toEqual({ type: 14, txns: [part, part] });
  });

  test('that closes a session lists no paths: null', () => {
    expect(readTxnEntry(new JuteReader(payload(-11, (b) => b)))).toMatchObject({
      txn: { type: -11, paths: null },
      digest: null,
    });
  });

  test('that closes a session and lists no paths may have a digest, which is not mistaken for paths', () => {
    for (const digest of [0x1234567890abcdefn, -1n, 0x0000000100000001n]) {
      const bytes = payload(-11, (b) => b.int(2).long(digest));
      expect(readTxnEntry(new JuteReader(bytes))).toMatchObject({
        txn: { type: -11, paths: null },
        digest: { version: 2, treeDigest: digest },
      });
    }
  });
});

test('a part of a multi that is too short does not continue into the next part', () => {
  const half = bytesOf((part) => part.int(2).raw([0x2f]));
  const bytes = payload(14, (b) => b.int(2).int(2).buffer(half).int(2).buffer(half));
  expect(readTxnEntry(new JuteReader(bytes))).toBeNull();
});

test('a part of a multi may be longer than its record', () => {
  const part = bytesOf((p) => p.text('/a').int(99));
  const bytes = payload(14, (b) => b.int(1).int(2).buffer(part));
  expect(readTxnEntry(new JuteReader(bytes))?.txn).toEqual({ type: 14, txns: [{ type: 2, path: '/a' }] });
});

test('a multi may hold neither sessions nor multis', () => {
  for (const [type, part] of [
    [-10, bytesOf((p) => p.int(1000))],
    [-11, bytesOf((p) => p.texts())],
    [14, bytesOf((p) => p.int(0))],
    [999, new Uint8Array(8)],
  ] as const) {
    expect(readTxnEntry(new JuteReader(payload(14, (b) => b.int(1).int(type).buffer(part))))).toBeNull();
  }
});

test('multis nested a hundred thousand deep are refused without recursion', () => {
  const depth = 100_000;
  const nested = new Uint8Array(depth * 12);
  const view = new DataView(nested.buffer);
  for (let at = 0; at < nested.length; at += 12) {
    view.setInt32(at, 1);
    view.setInt32(at + 4, 14);
    view.setInt32(at + 8, nested.length - at - 12);
  }
  const bytes = Uint8Array.from([...payload(14, (b) => b), ...nested]);
  expect(readTxnEntry(new JuteReader(bytes))).toBeNull();
});

test('a zxid beyond the exact numbers, or below −1, is no txn of ours', () => {
  const entry = (zxid: bigint | number) =>
    readTxnEntry(new JuteReader(bytesOf((b) => b.long(1).int(1).long(zxid).long(0).int(-1).int(-101))));
  expect(entry(2n ** 53n)).toBeNull();
  expect(entry(-2)).toBeNull();
  expect(entry(-1)).not.toBeNull();
});
