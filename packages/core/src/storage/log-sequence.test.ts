import { readFileSync } from 'node:fs';
import { getInt, makeZxid, OpCode, type Txn } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import { type BuiltTxn, buildLog } from '../testing/log-builder.ts';
import { StorageHost, TEST_DIRECTORY, TEST_ENSEMBLE } from '../testing/storage-host.ts';
import { MemoryDisk } from './memory-disk.ts';

const NOTHING: Txn = { type: OpCode.error, error: -101 };
const MEMBER: Partial<CoreOptions> = { ensemble: TEST_ENSEMBLE };

/** The zxid before the file according to its header, and its zxids; without the former it is a file of Apache. */
type File = readonly [before: number | null, ...txns: (number | BuiltTxn)[]];

/** A directory with the snapshot of an empty database and these logs, each named after its first zxid. */
function diskWith(...files: readonly File[]): MemoryDisk {
  const empty = new StorageHost().recover();
  const disk = new MemoryDisk();
  disk.poke(`${TEST_DIRECTORY}/snapshot.0`, empty.disk.peek(`${TEST_DIRECTORY}/snapshot.0`)!);
  for (const [before, ...txns] of files) {
    const [first = 0] = txns.map((txn) => (typeof txn === 'number' ? txn : txn.zxid));
    const log = before === null ? { txns, size: 4096 } : { before, txns, size: 4096 };
    disk.poke(`${TEST_DIRECTORY}/log.${first.toString(16)}`, buildLog(log));
  }
  return disk;
}

function start(disk: MemoryDisk, options: Partial<CoreOptions> = MEMBER): StorageHost {
  return new StorageHost(disk, options).recover();
}

function warningsOf(host: StorageHost): string[] {
  return host.eventsOf('warning').map(({ message }) => message);
}

describe('our own log', () => {
  it('names in each header the txn before the file', () => {
    const host = new StorageHost(new MemoryDisk(), { ...MEMBER, logBytesMax: 1 }).recover().startAppending();
    const dbids: string[] = [];
    for (const zxid of [makeZxid(1, 1), makeZxid(1, 2), makeZxid(4, 1)]) {
      host.append(NOTHING, { zxid });
      host.settle();
      const log = host.disk.peek(`${TEST_DIRECTORY}/log.${zxid.toString(16)}`)!;
      dbids.push(new DataView(log.buffer).getBigInt64(8).toString());
    }
    expect(dbids).toEqual([0, makeZxid(1, 1), makeZxid(1, 2)].map((before) => (~BigInt(before)).toString()));
  });

  it.each<[string, string, ...File[]]>([
    ['a txn inside a file', 'the next txn is zxid 0x4, but the log has 0x2 before it', [0, 1, 2, 4]],
    ['a file between two', 'log.4 .*continues after zxid 0x3, but the log has 0x1 before it', [0, 1], [3, 4]],
    ['the end of a file', 'continues after zxid 0x3, but the log has 0x2 before it', [0, 1, 2], [3, 4]],
    ['the first file', 'continues after zxid 0x3, but the snapshot ends with 0x0', [3, 4]],
    [
      'the end of an epoch',
      'continues after zxid 0x100000002, but the log has 0x100000001',
      [0, makeZxid(1, 1)],
      [makeZxid(1, 2), makeZxid(2, 1)],
    ],
    ['a whole epoch', 'continues after zxid 0x100000002, but the snapshot', [makeZxid(1, 2), makeZxid(2, 1)]],
    ['the start of an epoch', 'epoch 2 begins with zxid 0x200000002', [0, makeZxid(1, 1), makeZxid(2, 2)]],
  ])('that lacks %s stops the start, even of a standalone server', (_what, message, ...files) => {
    for (const options of [MEMBER, {}]) {
      const disk = diskWith(...files);
      const { failure } = start(disk, options);
      expect(failure?.message).toMatch(new RegExp(`${message}.*txns are missing between them`, 's'));
      expect(failure?.message, 'nothing is advised that cuts good txns').not.toMatch('truncate -s');
    }
  });

  it.each<[string, string, ...File[]]>([
    ['a txn twice', 'zxid 0x2 follows 0x3: the order is broken', [0, 1, 2, 3, 2, 3, 4]],
    ['txns unknown to the next file', 'continues after zxid 0x2, but the log has 0x3 before it', [0, 1, 2, 3], [2, 4]],
  ])('with %s stops the start', (_what, message, ...files) => {
    expect(start(diskWith(...files)).failure?.message).toMatch(message);
  });

  it('continues a log of Apache, and is continued by one', () => {
    const host = start(diskWith([null, 1, 2, 4], [4, 5, 6], [null, 7, 9, 10], [10, makeZxid(1, 1)]));
    expect(host.failure).toBeNull();
    expect(host.history!.lastZxid).toBe(makeZxid(1, 1));
  });
});

describe('a log of Apache', () => {
  it('with duplicate txns returns each once, and reports them once per file', () => {
    const again = { zxid: 3, error: -2 };
    const host = start(diskWith([null, 1, 2, 3, 2, again, 4, 4, 5], [null, 4, 5, 6, 7]));
    expect(host.failure).toBeNull();
    expect(host.history!.tail.map(({ zxid }) => zxid)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(getInt(host.history!.tail[2]!.payload, 32), 'of two that differ the first one').toBe(-101);
    expect(warningsOf(host)).toEqual([
      expect.stringMatching(/log\.1: 3 txns from 0x2 to 0x4 are in the log a second time and skipped/),
      expect.stringMatching(/log\.4: 2 txns from 0x4 to 0x5 are in the log a second time/),
    ]);
  });

  it('with skipped zxids is read, and reports them once per file', () => {
    const host = start(diskWith([null, 1, 3, 10_000, 10_001], [null, 10_003, 10_004]));
    expect(host.failure).toBeNull();
    expect(host.history!.lastZxid).toBe(10_004);
    expect(host.summary!.txns).toBe(6);
    expect(warningsOf(host)).toEqual([
      expect.stringContaining('log.1: between 0x1 and 0x3 and in 1 more places zxids have no txn'),
      expect.stringContaining('log.2713: between 0x2711 and 0x2713 zxids have no txn'),
    ]);
  });

  it('may skip the first zxids of an epoch', () => {
    const host = start(diskWith([null, makeZxid(1, 2), makeZxid(2, 3)]));
    expect(host.failure).toBeNull();
    expect(host.history!.lastZxid).toBe(makeZxid(2, 3));
  });

  it.each<[string, string, ...File[]]>([
    [
      'two files',
      'log.b at position 0: its name says that it begins with zxid 0xb, but the log has 0x1',
      [null, 1],
      [null, 11],
    ],
    ['the snapshot and the first file', 'but the snapshot ends with 0x0', [null, 10]],
    ['a file and the first txn of the next one', 'the next txn is zxid 0xb', [null, 1], [null, { zxid: 2 }]],
  ])('that lacks more than a few between %s stops the start', (which, message, ...files) => {
    const disk = diskWith(...files);
    if (which.startsWith('a file')) disk.poke(`${TEST_DIRECTORY}/log.2`, buildLog({ txns: [11, 12] }));
    const { failure } = start(disk);
    expect(failure?.message).toMatch(message);
    expect(failure?.message).not.toMatch('truncate -s');
  });

  it('whose epoch begins late after another file stops a member, and is reported by a standalone server', () => {
    const files: File[] = [
      [null, makeZxid(1, 1)],
      [null, makeZxid(2, 10)],
    ];
    expect(start(diskWith(...files)).failure?.message).toMatch('epoch 2 begins with zxid 0x20000000a, but the log has');
    const alone = start(diskWith(...files), {});
    expect(alone.history!.lastZxid).toBe(makeZxid(2, 10));
    expect(warningsOf(alone)).toEqual([expect.stringContaining('0x20000000a instead of counter 1')]);
  });

  it('is truncated in every file that has the txns', () => {
    const disk = diskWith([null, 1, 2, 3, 4, 5, 6], [null, 3, 4, 5, 6, 7], [null, 8]);
    const before = disk.peek(`${TEST_DIRECTORY}/log.3`)!;
    const host = start(disk);
    host.truncate(4 as never);
    host.settle();
    expect(host).toMatchObject({ refusal: null, failure: null, recovered: 2 });
    expect(host.history!.lastZxid).toBe(4);
    const entryBytes = 13 + 36;
    expect(disk.peek(`${TEST_DIRECTORY}/log.1`)!.length).toBe(16 + 4 * entryBytes);
    expect(disk.peek(`${TEST_DIRECTORY}/log.3`)!.length).toBe(16 + 2 * entryBytes);
    const kept = disk.peek(`${TEST_DIRECTORY}/replaced-1-4-log.3-from-${16 + 2 * entryBytes}`);
    expect(kept).toEqual(before.slice(16 + 2 * entryBytes, 16 + 5 * entryBytes));
    disk.kill();
    expect(start(disk).history!.lastZxid, 'nothing comes back').toBe(4);
  });

  it('written by 3.8.0 while a client sent multis with null paths is read completely', () => {
    const directory = new URL('fixtures/apache-3.8.0-holes/', import.meta.url);
    const disk = new MemoryDisk();
    for (const name of ['snapshot.0', 'log.1']) {
      disk.poke(`${TEST_DIRECTORY}/${name}`, new Uint8Array(readFileSync(new URL(name, directory))));
    }
    const host = start(disk, {});
    expect(host.failure).toBeNull();
    expect(host.eventsOf('digest-mismatch')).toEqual([]);
    expect(warningsOf(host)).toEqual([
      expect.stringContaining('between 0x2 and 0x4 and in 2 more places zxids have no txn'),
    ]);
    for (const path of ['/a', '/b', '/c', '/d']) expect(host.database!.tree.znodes.find(path), path).toBeGreaterThan(0);
  });
});
