/** Recoveries with another thread that scans the files: their results and what they leave behind are the same. */
import { OPEN_ACL, OpCode, READ_ACL } from '@meerkat/protocol';
import { beforeAll, describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import {
  copyDisk,
  Dice,
  describeDatabase,
  StorageHost,
  TEST_DIRECTORY,
  TEST_ENSEMBLE,
} from '../testing/storage-host.ts';
import { VirtualScans, type VirtualScansOptions } from '../testing/virtual-scans.ts';
import { ADLER_START, adler32 } from './adler32.ts';
import { MemoryDisk } from './memory-disk.ts';

const OPTIONS: Partial<CoreOptions> = { ensemble: TEST_ENSEMBLE };
const SNAPSHOT = /^snapshot\.[1-9a-f]/;

/** Larger than what a recovery reads ahead: creates of all kinds, with other txns in between. */
function grownDisk(options: Partial<CoreOptions>): MemoryDisk {
  const dice = new Dice(7);
  const host = new StorageHost(new MemoryDisk(), { ...OPTIONS, ...options }).recover().startAppending();
  host.storage.allowSnapshots();
  let children = 0;
  const create = (path: string, data: Uint8Array | null): void => {
    host.append({ type: OpCode.create, path, data, acl: OPEN_ACL, isEphemeral: false, parentCversion: ++children });
  };
  for (let i = 0; i < 1000; i++) {
    const kind = i % 6;
    const data = Uint8Array.from({ length: dice.below(2000) }, () => 1 + dice.below(255));
    if (kind === 5) host.appendRandom(dice);
    else if (kind === 4) create(`/öffentlich-${i}`, data);
    else create(i % 60 === 0 ? `/zookeeper/n${i}` : `/node-${i}`, kind === 3 ? null : data);
    if (i % 12 === 2) {
      const path = `/node-${i}`;
      for (const parentCversion of [1, 2]) {
        const child = `${path}/${parentCversion}`;
        host.append({ type: OpCode.create, path: child, data, acl: READ_ACL, isEphemeral: false, parentCversion });
        if (i % 24 === 2) host.append({ type: OpCode.delete, path: child });
      }
      host.append({ type: OpCode.setACL, path, acl: READ_ACL, version: 1 });
    }
    if (i % 20 === 19) host.settle();
  }
  host.settle();
  host.disk.kill();
  return host.disk;
}

const checksumOf = (bytes: Uint8Array): string => `${bytes.length} ${adler32(ADLER_START, bytes, 0, bytes.length)}`;

/** All results of a recovery. */
function recovered(disk: MemoryDisk, scans: VirtualScans | null, isThorough: boolean): unknown {
  const host = new StorageHost(disk, OPTIONS, new Dice(1), null, scans).recover();
  host.settle();
  return {
    failure: host.failure?.message ?? null,
    database: host.database === null || !isThorough ? null : describeDatabase(host.database),
    digest: host.database?.tree.treeDigest(),
    digests: host.database?.tree.digestHistory(),
    bytes: host.database?.tree.approximateDataSize,
    summary: host.summary,
    trace: host.trace,
    tail: host.history?.tail.map(({ zxid, payload }) => `${zxid} ${checksumOf(payload)}`),
    files: disk.names(TEST_DIRECTORY).map((name) => `${name} ${checksumOf(disk.peek(`${TEST_DIRECTORY}/${name}`)!)}`),
  };
}

/**
 * Recovers with and without scans.
 *
 * @param options null: the defaults, and databases are compared by their digests only
 * @returns what the scans did
 */
function compare(disk: MemoryDisk, what: string, options: Partial<VirtualScansOptions> | null): VirtualScans {
  const scannedDisk = copyDisk(disk);
  const scans = new VirtualScans(scannedDisk, options ?? {});
  const isThorough = options !== null;
  const scanned = recovered(scannedDisk, scans, isThorough);
  expect(scanned, what).toEqual(recovered(copyDisk(disk), null, isThorough));
  expect(scans.stops, 'the thread is stopped').toBe(1);
  return scans;
}

function damaged(disk: MemoryDisk, file: string, dice: Dice): { readonly disk: MemoryDisk; readonly what: string } {
  const copy = copyDisk(disk);
  const bytes = copy.peek(file)!.slice();
  const end = bytes.findLastIndex((byte) => byte !== 0) + 1;
  const at = Math.floor((dice.uint32() / 2 ** 32) * end);
  const kind = dice.below(3);
  if (kind === 0) bytes[at]! ^= 1 << dice.below(8);
  else if (kind === 1) bytes.fill(0, at, Math.min(at + 512, end));
  copy.poke(file, kind === 2 ? bytes.slice(0, at) : bytes);
  return { disk: copy, what: `${['a bit', 'zeros', 'the end'][kind]} at ${at} of ${file}` };
}

describe.each([
  ['the log', { snapCount: 1_000_000 }],
  ['a snapshot', { snapCount: 1000 }],
] as const)('%s that is scanned ahead', (kind, options) => {
  let disk: MemoryDisk;
  let file: string;

  beforeAll(() => {
    disk = grownDisk(options);
    const names = disk.names(TEST_DIRECTORY);
    const name = kind === 'the log' ? 'log.1' : names.find((other) => SNAPSHOT.test(other))!;
    file = `${TEST_DIRECTORY}/${name}`;
    expect(disk.peek(file)!.length).toBeGreaterThan(450_000);
  });

  it.each<[string, Partial<VirtualScansOptions>]>([
    ['chunks of many records', {}],
    ['chunks of a few', { chunkBytes: 4096, chunkRecordsMax: 3 }],
    ['chunks that have room for the shorter ones only', { chunkBytes: 2200 }],
    ['a thread that dies at once', { chunksMax: 0 }],
    ['a thread that dies in the middle', { chunksMax: 5 }],
  ])('has the same result as without scans: %s', (_what, scanOptions) => {
    const scans = compare(disk, 'the same', scanOptions);
    expect(scans.chunks > 0).toBe(scanOptions.chunksMax !== 0);
    if (scanOptions.chunksMax === undefined) expect(scans.records).toBeGreaterThan(20);
  });

  it('has the same result as without scans when it is damaged', () => {
    const dice = new Dice(3);
    let records = 0;
    for (let i = 0; i < 24; i++) {
      const { disk: copy, what } = damaged(disk, file, dice);
      records += compare(copy, what, null).records;
    }
    expect(records).toBeGreaterThan(1000);
  });

  it('has the same result as without scans when it cannot be read', () => {
    const scannedDisk = copyDisk(disk);
    scannedDisk.failNext({ operation: 'read', code: 'EIO', path: file, isLasting: true, skip: 6 });
    const scans = new VirtualScans(scannedDisk);
    const { failure, trace } = recovered(scannedDisk, scans, false) as { failure: string | null; trace: unknown };
    expect(`${failure} ${JSON.stringify(trace)}`).toMatch('EIO');
    expect(scans.stops).toBe(1);
  });
});
