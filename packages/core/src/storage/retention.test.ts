import { OpCode, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { describeDatabase, StorageHost, TEST_DIRECTORY } from '../testing/storage-host.ts';
import { logName, snapshotName } from './file-names.ts';
import { MemoryDisk } from './memory-disk.ts';
import { filesToRemove, Purge } from './retention.ts';

const files = (name: (zxid: Zxid) => string, zxids: number[]) =>
  zxids.map((zxid) => ({ name: name(zxid as Zxid), zxid: zxid as Zxid, size: 1 }));

describe('the purge', () => {
  it('keeps the newest log that begins at or before the oldest kept snapshot, and all later ones', () => {
    const snapshots = files(snapshotName, [0, 10, 20, 30, 40]);
    const logs = files(logName, [1, 12, 21, 35, 45]);
    const { snapshots: oldSnapshots, logs: oldLogs } = filesToRemove(snapshots, logs, 2);
    expect(oldSnapshots.map((file) => file.zxid)).toEqual([0, 10]);
    // Snapshot 20 needs the txns from 21 on; log 12 may contain some of them, and is kept as by Apache's purge.
    expect(oldLogs.map((file) => file.zxid)).toEqual([1]);
  });

  it('removes nothing when no snapshot would be kept, and no log that is newer than all of them', () => {
    expect(filesToRemove([], files(logName, [1, 2]), 0)).toEqual({ snapshots: [], logs: [] });
    expect(filesToRemove(files(snapshotName, [5]), files(logName, [6, 9]), 0)).toEqual({ snapshots: [], logs: [] });
  });

  it('runs on its interval and leaves a directory from which the same database is recovered', () => {
    const options = { snapCount: 10, purgeIntervalMs: 1000, purgeRetainCount: 3 };
    const host = new StorageHost(new MemoryDisk(), options).recover().startAppending();
    for (let i = 0; i < 100; i++) {
      host.append({ type: OpCode.createSession, timeoutMs: 4000 + i }, { sessionId: BigInt(i + 1) });
      host.settle();
    }
    expect(host.storage.nextDeadlineMs()).toBe(0);
    host.storage.onTick(0);
    host.settle();
    expect(host.storage.nextDeadlineMs()).toBe(1000);
    const names = host.disk.names(TEST_DIRECTORY);
    expect(names.filter((name) => name.startsWith('snapshot.'))).toHaveLength(3);
    expect(host.eventsOf('files-purged')[0]!.files).toContain(`${TEST_DIRECTORY}/snapshot.0`);
    host.disk.crash('nothing');
    expect(host.disk.names(TEST_DIRECTORY), 'what was removed does not come back').toEqual(names);
    const restarted = new StorageHost(host.disk, options).recover();
    expect(describeDatabase(restarted.database!)).toBe(describeDatabase(host.database!));
  });

  it('counts only whole snapshots, so that the only usable one is never removed', () => {
    const disk = new MemoryDisk();
    const whole = Uint8Array.of(1, 2, 3, 4, 5, 0, 0, 0, 1, 0x2f);
    disk.poke(`${TEST_DIRECTORY}/snapshot.1`, whole);
    for (const zxid of [2, 3, 4, 5]) disk.poke(`${TEST_DIRECTORY}/snapshot.${zxid}`, whole.slice(0, 9));
    const purge = (): void => {
      const options = { snapshotDirectory: TEST_DIRECTORY, logDirectory: TEST_DIRECTORY, retainCount: 3 };
      new Purge({ disk, trace: { emit() {} } }, options, () => {}).start();
      disk.deliverAll();
    };
    purge();
    expect(disk.names(TEST_DIRECTORY)).toHaveLength(5);
    disk.poke(`${TEST_DIRECTORY}/snapshot.6`, whole);
    disk.poke(`${TEST_DIRECTORY}/snapshot.7`, whole);
    disk.poke(`${TEST_DIRECTORY}/snapshot.8`, whole);
    purge();
    expect(disk.names(TEST_DIRECTORY)).toEqual(['snapshot.6', 'snapshot.7', 'snapshot.8']);
  });

  it.each(['list', 'open', 'syncDirectory', 'remove'] as const)('aborts when the disk fails at its %s', (operation) => {
    const disk = new MemoryDisk();
    const whole = Uint8Array.of(1, 2, 3, 4, 5, 0, 0, 0, 1, 0x2f);
    for (let zxid = 1; zxid <= 4; zxid++) disk.poke(`${TEST_DIRECTORY}/snapshot.${zxid}`, whole);
    disk.failNext({ operation, code: 'EIO' });
    let isDone = false;
    const options = { snapshotDirectory: TEST_DIRECTORY, logDirectory: TEST_DIRECTORY, retainCount: 3 };
    new Purge({ disk, trace: { emit() {} } }, options, () => {
      isDone = true;
    }).start();
    disk.deliverAll();
    expect(isDone).toBe(true);
    expect(disk.names(TEST_DIRECTORY)).toHaveLength(4);
  });
});
