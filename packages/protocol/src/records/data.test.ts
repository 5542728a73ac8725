import { describe, expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { getInt, getLong, getLongBig, JuteWriter } from '../jute/writer.ts';
import { bytesOf } from '../testing/byte-list.ts';
import {
  OPEN_ACL,
  PERSISTED_STAT_BYTES,
  Perm,
  READ_ACL,
  readAclList,
  readPersistedStat,
  readStat,
  STAT_BYTES,
  StatOffset,
  writeAclList,
  writePersistedStat,
  writeStat,
} from './data.ts';

test('the permission bits are those of the manual', () => {
  expect(Perm).toEqual({ read: 1, write: 2, create: 4, delete: 8, admin: 16, all: 31 });
});

describe('an ACL list', () => {
  const list = [
    { perms: 31, scheme: 'digest', id: 'ann:x=' },
    { perms: -1, scheme: null, id: null },
  ];
  const bytes = bytesOf((b) => b.acl([31, 'digest', 'ann:x='], [-1, null, null]));

  test('is a count and entries of perms, scheme and id', () => {
    expect(readAclList(new JuteReader(bytes))).toEqual(list);
    const writer = new JuteWriter();
    writeAclList(writer, list);
    expect(writer.toBytes()).toEqual(bytes);
  });

  test('that grants everything to everyone is always the same object', () => {
    const open = bytesOf((b) => b.acl([31, 'world', 'anyone']).int(5));
    const reader = new JuteReader(open);
    expect(readAclList(reader)).toBe(OPEN_ACL);
    expect(reader.int()).toBe(5);
    const writer = new JuteWriter();
    writeAclList(writer, OPEN_ACL);
    writer.int(5);
    expect(writer.toBytes()).toEqual(open);
  });

  test('that begins like the open one is read to its end', () => {
    const two = bytesOf((b) =>
      b
        .int(2)
        .raw(bytesOf((c) => c.int(31).text('world').text('anyone')))
        .int(1)
        .text('ip')
        .text('::1'),
    );
    expect(readAclList(new JuteReader(two))).toEqual([...OPEN_ACL, { perms: 1, scheme: 'ip', id: '::1' }]);
    expect(readAclList(new JuteReader(bytesOf((b) => b.acl([1, 'world', 'anyone']))))).toEqual(READ_ACL);
  });

  test('that is null reads as empty', () => {
    const reader = new JuteReader(bytesOf((b) => b.int(-1)));
    expect(readAclList(reader)).toEqual([]);
    expect(reader.failed).toBe(false);
  });

  test('with fewer entries than its count is refused', () => {
    for (let length = 0; length < bytes.length; length++) {
      const reader = new JuteReader(bytes.subarray(0, length));
      readAclList(reader);
      expect(reader.failed, `${length} bytes`).toBe(true);
    }
  });
});

const STAT = {
  czxid: 0x100000002,
  mzxid: 0x100000003,
  ctime: 1_700_000_000_001,
  mtime: 1_700_000_000_002,
  version: 4,
  cversion: -5,
  aversion: 6,
  ephemeralOwner: -0x7fffffffffffff01n,
  dataLength: 7,
  numChildren: 8,
  pzxid: 0x100000009,
};

test('a stat has 68 bytes, each field in its place', () => {
  const bytes = bytesOf((b) =>
    b
      .long(STAT.czxid)
      .long(STAT.mzxid)
      .long(STAT.ctime)
      .long(STAT.mtime)
      .int(STAT.version)
      .int(STAT.cversion)
      .int(STAT.aversion)
      .long(STAT.ephemeralOwner)
      .int(STAT.dataLength)
      .int(STAT.numChildren)
      .long(STAT.pzxid),
  );
  expect(bytes).toHaveLength(68);
  expect(STAT_BYTES).toBe(68);
  const writer = new JuteWriter();
  writeStat(writer, STAT);
  expect(writer.toBytes()).toEqual(bytes);
  expect(readStat(new JuteReader(bytes))).toEqual(STAT);
  expect({
    czxid: getLong(bytes, StatOffset.czxid),
    mzxid: getLong(bytes, StatOffset.mzxid),
    ctime: getLong(bytes, StatOffset.ctime),
    mtime: getLong(bytes, StatOffset.mtime),
    version: getInt(bytes, StatOffset.version),
    cversion: getInt(bytes, StatOffset.cversion),
    aversion: getInt(bytes, StatOffset.aversion),
    ephemeralOwner: getLongBig(bytes, StatOffset.ephemeralOwner),
    dataLength: getInt(bytes, StatOffset.dataLength),
    numChildren: getInt(bytes, StatOffset.numChildren),
    pzxid: getLong(bytes, StatOffset.pzxid),
  }).toEqual(STAT);
});

test('a persisted stat has 60 bytes', () => {
  const { dataLength: _dataLength, numChildren: _numChildren, ...stat } = STAT;
  const bytes = bytesOf((b) =>
    b
      .long(stat.czxid)
      .long(stat.mzxid)
      .long(stat.ctime)
      .long(stat.mtime)
      .int(stat.version)
      .int(stat.cversion)
      .int(stat.aversion)
      .long(stat.ephemeralOwner)
      .long(stat.pzxid),
  );
  expect(bytes).toHaveLength(60);
  expect(PERSISTED_STAT_BYTES).toBe(60);
  const writer = new JuteWriter();
  writePersistedStat(writer, stat);
  expect(writer.toBytes()).toEqual(bytes);
  expect(readPersistedStat(new JuteReader(bytes))).toEqual(stat);
});
