import { makeZxid, OpCode, type Txn, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import type { DiskError } from '../base/ports.ts';
import { Dice, grownDirectory, StorageHost, TEST_DIRECTORY, TEST_ENSEMBLE } from '../testing/storage-host.ts';
import { MemoryDisk } from './memory-disk.ts';
import { ReplacedSet } from './replaced-files.ts';

const LOGS = '/log/version-2';
const NOTHING: Txn = { type: OpCode.error, error: -101 };
const MEMBER: Partial<CoreOptions> = {
  ensemble: TEST_ENSEMBLE,
  preallocateBytes: 8192,
  snapCount: 20,
  logBytesMax: 2048,
};
const MEBIBYTE = 1024 * 1024;

/** A sparse file of this size that takes no memory. */
function pokeLarge(disk: MemoryDisk, path: string, size: number): void {
  disk.poke(path, new Uint8Array(0));
  disk.open(path, { readOnly: false }, (_error, file) => file.preallocate(size, () => {}));
  disk.deliverAll();
}

function begin(disk: MemoryDisk, zxid: number, logDirectory: string = TEST_DIRECTORY): ReplacedSet {
  let begun: ReplacedSet | null = null;
  ReplacedSet.begin(disk, { snapshotDirectory: TEST_DIRECTORY, logDirectory }, zxid as Zxid, (_error, set) => {
    begun = set;
  });
  disk.deliverAll();
  return begun!;
}

/** The numbers of the sets in a directory. */
function setsOf(disk: MemoryDisk, directory: string = TEST_DIRECTORY): number[] {
  const sets = disk.names(directory).flatMap((name) => /^replaced-(\d+)-/.exec(name)?.[1] ?? []);
  return [...new Set(sets.map(Number))].sort((a, b) => a - b);
}

describe('replaced files', () => {
  it('are kept under a name with the number of their set, counted over both directories', () => {
    const disk = new MemoryDisk();
    disk.poke(`${TEST_DIRECTORY}/replaced-4-a-snapshot.9`, Uint8Array.of(1));
    disk.poke(`${LOGS}/log.5`, Uint8Array.of(2));
    const set = begin(disk, 0xbc, LOGS);
    expect(set.prefix).toBe('replaced-5-bc-');
    set.move(LOGS, 'log.5', () => {});
    disk.deliverAll();
    expect(disk.names(LOGS)).toEqual(['replaced-5-bc-log.5']);
  });

  it('are kept while the history is replaced repeatedly: the set that reached furthest, the newest, some in between', () => {
    const disk = new MemoryDisk();
    const options = { ...MEMBER, logBytesMax: 0 };
    const { disk: grown } = grownDirectory(new Dice(2), options);
    const host = new StorageHost(grown, options).recover();
    const furthest = host.disk
      .names(TEST_DIRECTORY)
      .filter((name) => name.startsWith('log.'))
      .at(-1)!;
    for (let i = 1; i <= 40; i++) {
      const small = new StorageHost(disk, options).recover().startAppending();
      small.append(NOTHING, { zxid: makeZxid(1, i) });
      small.settle();
      disk.kill();
      host.installSnapshot(small.database!);
      host.settle();
      expect(host.installed).toBe(i);
    }
    const sets = setsOf(grown);
    expect(sets.length).toBeLessThanOrEqual(16);
    expect(sets.at(-1)).toBe(40);
    expect(grown.names(TEST_DIRECTORY).some((name) => name.startsWith('replaced-1-') && name.endsWith(furthest))).toBe(
      true,
    );
  });

  it('are removed, oldest set first, above 1 GiB, except for the newest set and the one that reached furthest', () => {
    const disk = new MemoryDisk();
    pokeLarge(disk, `${TEST_DIRECTORY}/replaced-1-5-log.900000001`, 5000 * MEBIBYTE);
    for (let i = 2; i <= 6; i++) pokeLarge(disk, `${TEST_DIRECTORY}/replaced-${i}-5-log.${i}`, 400 * MEBIBYTE);
    pokeLarge(disk, `${TEST_DIRECTORY}/replaced-7-5-log.7`, 3000 * MEBIBYTE);
    begin(disk, 5);
    expect(setsOf(disk)).toEqual([1, 5, 6, 7]);
  });

  it('are purged with the snapshots of their time', () => {
    const options = { ...MEMBER, purgeIntervalMs: 1000, purgeRetainCount: 3 };
    const { disk, history } = grownDirectory(new Dice(3), { ...MEMBER, snapCount: 1000 });
    const { zxid } = history[history.length >> 1]!.header;
    const host = new StorageHost(disk, options).recover();
    host.truncate(zxid);
    host.settle();
    expect(host.refusal).toBeNull();
    expect(setsOf(disk)).toEqual([1]);
    host.startAppending().beginEpoch(9);
    host.storage.allowSnapshots();
    let snapshots = 0;
    for (let nowMs = 0; setsOf(disk).length > 0; nowMs += 1000) {
      expect(snapshots, 'the sets go').toBeLessThan(10);
      for (let i = 0; i < 25; i++) host.append(NOTHING);
      host.settle();
      host.clock.nowMs = nowMs;
      host.storage.onTick(nowMs);
      host.settle();
      snapshots = host.eventsOf('snapshot-written').length;
    }
    expect(snapshots).toBeGreaterThanOrEqual(3);
    expect(host.eventsOf('files-purged').flatMap(({ files }) => files)).toContainEqual(
      expect.stringContaining(`replaced-1-${zxid.toString(16)}-log.`),
    );
  });

  it.each(['list', 'remove'] as const)('stops the set when the disk fails at its %s', (operation) => {
    const disk = new MemoryDisk();
    for (let i = 1; i <= 20; i++) disk.poke(`${TEST_DIRECTORY}/replaced-${i}-5-log.5`, Uint8Array.of(1));
    disk.failNext({ operation, code: 'EIO' });
    let failure: DiskError | null = null;
    const directories = { snapshotDirectory: TEST_DIRECTORY, logDirectory: TEST_DIRECTORY };
    ReplacedSet.begin(disk, directories, 5 as Zxid, (error, set) => {
      failure = error;
      expect(set).toBeNull();
    });
    disk.deliverAll();
    expect(failure).toMatchObject({ code: 'EIO' });
  });
});

describe('the end of a log', () => {
  it('is cut only once a copy of it is durable, whenever the power is cut', () => {
    const log = Uint8Array.from({ length: 5000 }, (_, i) => 1 + (i % 250));
    for (let cutAfter = 0; ; cutAfter++) {
      const disk = new MemoryDisk();
      disk.poke(`${TEST_DIRECTORY}/log.5`, log);
      const set = begin(disk, 9);
      let isDone = false;
      set.cut(TEST_DIRECTORY, 'log.5', { position: 1234, end: 4321 }, () => {
        isDone = true;
      });
      for (let i = 0; i < cutAfter; i++) disk.deliver();
      const wasDone = isDone;
      disk.crash(new Dice(cutAfter + 1));
      const live = disk.peek(`${TEST_DIRECTORY}/log.5`)!;
      const copy = disk.peek(`${TEST_DIRECTORY}/replaced-1-9-log.5-from-1234`);
      expect([5000, 1234], `cut after ${cutAfter}`).toContain(live.length);
      if (live.length === 1234) expect(copy).toEqual(log.slice(1234, 4321));
      if (wasDone) {
        expect(live).toEqual(log.slice(0, 1234));
        break;
      }
    }
  });
});
