import { makeZxid, OpCode, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import {
  Dice,
  describeDatabase,
  grownDirectory,
  StorageHost,
  TEST_DIRECTORY,
  TEST_ENSEMBLE,
} from '../testing/storage-host.ts';
import { SILENT_EVENTS } from '../tree/data-tree.ts';
import { Database } from '../tree/database.ts';
import { MemoryDisk } from './memory-disk.ts';
import { NewestSnapshot } from './snapshot-store.ts';

/** The disk of a server that has written this many txns and stopped, and its final state. */
function writtenDisk(
  options: Partial<CoreOptions>,
  count = 200,
): { readonly disk: MemoryDisk; readonly state: string } {
  const host = new StorageHost(new MemoryDisk(), { snapCount: 20, ...options }).recover().startAppending();
  host.storage.allowSnapshots();
  const dice = new Dice(9);
  for (let i = 0; i < count; i++) {
    host.appendRandom(dice);
    host.settle();
  }
  host.disk.kill();
  return { disk: host.disk, state: describeDatabase(host.database!) };
}

function snapshotsOf(disk: MemoryDisk): string[] {
  return disk.names(TEST_DIRECTORY).filter((name) => name.includes('snapshot'));
}

describe.each(['gz', 'snappy'] as const)('snapshots compressed by %s', (snapshotCompression) => {
  it('have the suffix, the first one too, and are read at the next start, whatever that is configured to write', () => {
    const { disk, state } = writtenDisk({ snapshotCompression });
    expect(snapshotsOf(disk)).toContain(`snapshot.0.${snapshotCompression}`);
    for (const name of snapshotsOf(disk))
      expect(name).toMatch(new RegExp(`^snapshot\\.[0-9a-f]+\\.${snapshotCompression}$`));
    const again = new StorageHost(disk).recover();
    expect(describeDatabase(again.database!)).toBe(state);
    const { zxid, compression, bytes } = again.summary!.snapshot;
    expect(again.summary!.txns).toBeLessThan(200);
    expect(compression).toBe(snapshotCompression);
    const file = disk.peek(`${TEST_DIRECTORY}/snapshot.${zxid.toString(16)}.${snapshotCompression}`)!;
    expect(bytes, 'those of a plain snapshot').toBe(file.length - (snapshotCompression === 'gz' ? 2 : 8) - 3);
  });

  it('are skipped for an older one when the newest is cut, and stop the start when none is whole', () => {
    const { disk, state } = writtenDisk({ snapshotCompression });
    const names = snapshotsOf(disk).sort((a, b) => Number.parseInt(a.slice(9), 16) - Number.parseInt(b.slice(9), 16));
    const cut = (name: string, bytes: number): void => {
      disk.poke(`${TEST_DIRECTORY}/${name}`, disk.peek(`${TEST_DIRECTORY}/${name}`)!.slice(0, bytes));
    };
    cut(names.at(-1)!, -1);
    cut(names.at(-2)!, 5);
    const again = new StorageHost(disk).recover();
    expect(describeDatabase(again.database!)).toBe(state);
    expect(again.eventsOf('warning').map(({ message }) => message)).toEqual([
      expect.stringContaining(`${names.at(-1)} is not usable: the file is cut short`),
      expect.stringContaining(`${names.at(-2)} is not usable: it is cut short`),
    ]);
    disk.kill();
    for (const name of names) cut(name, 1);
    expect(new StorageHost(disk).recover().failure?.message).toMatch(/none can be loaded; the newest: it is cut short/);
  });

  it('are counted by the purge, and serve as the base of a truncation', () => {
    const options = { snapshotCompression, purgeIntervalMs: 1, purgeRetainCount: 3, ensemble: TEST_ENSEMBLE };
    const { disk } = writtenDisk(options);
    const host = new StorageHost(disk, options).recover();
    host.storage.allowSnapshots();
    host.storage.onTick(host.clock.nowMs);
    host.settle();
    expect(snapshotsOf(disk)).toHaveLength(3);
    disk.kill();
    const again = new StorageHost(disk, options).recover();
    const { zxid } = again.summary!.snapshot;
    again.truncate((zxid + 1) as Zxid);
    again.settle();
    expect(again.refusal).toBeNull();
    expect(again.history!.lastZxid).toBe(zxid + 1);
  });

  it('replace a history under their own name', () => {
    const options = { snapshotCompression, ensemble: TEST_ENSEMBLE };
    const { disk } = grownDirectory(new Dice(2), options);
    const host = new StorageHost(disk, options).recover();
    const database = new Database(host.options, { emit() {} });
    const zxid = makeZxid(5, 9);
    database.apply({ sessionId: 1n, cxid: 1, zxid, time: 0 }, { type: OpCode.error, error: -101 }, SILENT_EVENTS);
    host.installSnapshot(database);
    while (!snapshotsOf(disk).includes(`installing-snapshot.500000009.${snapshotCompression}`)) disk.deliver();
    disk.crash('everything');
    const again = new StorageHost(disk, options).recover();
    expect(again.history!.lastZxid).toBe(zxid);
    expect(snapshotsOf(disk).filter((name) => !name.startsWith('replaced-'))).toEqual([
      `snapshot.500000009.${snapshotCompression}`,
    ]);
  });
});

it('a compressed snapshot is skipped where there is no codec', () => {
  const { disk } = writtenDisk({ snapshotCompression: 'gz' }, 5);
  const warnings: unknown[] = [];
  const ports = { disk, trace: { emit: (event: unknown) => void warnings.push(event) } };
  let failure: Error | null = null;
  new NewestSnapshot(ports, TEST_DIRECTORY, [{ name: 'snapshot.0.gz', size: 100 }], () => expect.fail(), {
    onSnapshotLoaded: () => expect.fail(),
    onNoSnapshot: () => expect.fail(),
    onSnapshotsUnusable: (error) => {
      failure = error;
    },
  }).load();
  expect(String(failure)).toMatch(/it is compressed, and no codec is available/);
});
