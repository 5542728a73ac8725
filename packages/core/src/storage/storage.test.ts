import { OPEN_ACL, OpCode, type Txn } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { Dice, describeDatabase, StorageHost, TEST_DIRECTORY, TEST_ENSEMBLE } from '../testing/storage-host.ts';
import { type DiskOperation, MemoryDisk } from './memory-disk.ts';

const NOTHING: Txn = { type: OpCode.error, error: -101 };
const LARGE_ZNODE = {
  type: OpCode.create,
  data: new Uint8Array(1_000_000).fill(1),
  acl: OPEN_ACL,
  isEphemeral: false,
} as const;

/** The disk of a server that wrote `count` txns and was killed. */
function usedDisk(count: number, options = {}): MemoryDisk {
  const host = new StorageHost(new MemoryDisk(), options).recover().startAppending();
  const dice = new Dice(9);
  for (let i = 0; i < count; i++) {
    host.appendRandom(dice);
    host.settle();
  }
  host.disk.kill();
  return host.disk;
}

function removeNames(disk: MemoryDisk, pattern: RegExp): void {
  for (const name of disk.names(TEST_DIRECTORY)) {
    if (pattern.test(name)) disk.remove(`${TEST_DIRECTORY}/${name}`, () => {});
  }
  disk.deliverAll();
}

describe('an empty directory', () => {
  it('becomes an empty database, its snapshot and the epoch files, all durable before the start ends', () => {
    const host = new StorageHost().recover();
    expect(host.summary).toMatchObject({ lastZxid: 0, snapshot: { zxid: 0 }, txns: 0, isNew: true });
    host.disk.crash('nothing');
    expect(host.disk.names(TEST_DIRECTORY)).toEqual(['acceptedEpoch', 'currentEpoch', 'durableZxid', 'snapshot.0']);
    expect(host.disk.peek(`${TEST_DIRECTORY}/currentEpoch`)).toEqual(Uint8Array.of(0x30));
    expect(new StorageHost(host.disk).recover().summary).toMatchObject({ isNew: false, snapshot: { zxid: 0 } });
  });

  it('may have what a crash of Apache left during its first start', () => {
    const disk = new MemoryDisk();
    disk.poke(`${TEST_DIRECTORY}/snapshot.0`, Uint8Array.of(0x5a, 0x4b));
    expect(new StorageHost(disk).recover().summary).toMatchObject({ isNew: true });
  });

  describe('with db.autocreate=false', () => {
    const MEMBER = { createsDatabase: false, ensemble: TEST_ENSEMBLE };
    const INITIALIZE = '/data/initialize';

    it('has an untrusted history and no snapshot, at each start until there is a snapshot', () => {
      const disk = new MemoryDisk();
      for (let start = 0; start < 2; start++) {
        const host = new StorageHost(disk, MEMBER).recover();
        expect(host.summary).toMatchObject({ lastZxid: 0, isNew: true });
        expect(host.history?.lastZxid).toBe(-1);
        expect(disk.names(TEST_DIRECTORY).filter((name) => /snapshot|log/.test(name))).toEqual([]);
        expect(JSON.stringify(host.trace)).toContain(`create the file ${INITIALIZE}`);
        disk.kill();
      }
      const again = new StorageHost(disk, MEMBER).recover();
      again.storage.stop();
      again.settle();
      const successor = new StorageHost(disk, MEMBER, new Dice(1), again.storage.carriedState).recover();
      expect(successor.history?.lastZxid).toBe(-1);
    });

    it('counts as new if there is a file initialize, which the first start removes', () => {
      const disk = new MemoryDisk();
      disk.poke(INITIALIZE, new Uint8Array());
      const host = new StorageHost(disk, MEMBER).recover();
      expect(host.history?.lastZxid).toBe(0);
      host.disk.crash('nothing');
      expect(disk.names(TEST_DIRECTORY)).toContain('snapshot.0');
      disk.crash('everything');
      expect(disk.peek(INITIALIZE)).toBeNull();
      expect(new StorageHost(disk, MEMBER).recover().history?.lastZxid).toBe(0);
    });

    it('has its file initialize removed if there is data', () => {
      const disk = usedDisk(5);
      disk.poke(INITIALIZE, new Uint8Array());
      expect(new StorageHost(disk, MEMBER).recover().history?.lastZxid).toBe(5);
      expect(disk.peek(INITIALIZE)).toBeNull();
    });

    it('does not start a standalone server', () => {
      expect(new StorageHost(new MemoryDisk(), { createsDatabase: false }).recover().failure?.message).toBe(
        `${TEST_DIRECTORY} is empty and db.autocreate is false: restore the data from a backup, or, if this is the first start of a new service, create the file ${INITIALIZE}`,
      );
    });
  });

  it('may be two', () => {
    const options = { logDirectory: '/log/version-2' };
    const host = new StorageHost(new MemoryDisk(), options).recover().startAppending();
    host.append(NOTHING);
    host.settle();
    expect(host.disk.names('/log/version-2')).toEqual(['log.1']);
    host.disk.kill();
    expect(new StorageHost(host.disk, options).recover().summary).toMatchObject({ lastZxid: 1 });
  });
});

describe('a start fails with an explanation', () => {
  it('when another server holds the directory', () => {
    const first = new StorageHost().recover();
    const second = new StorageHost(first.disk).recover();
    expect(second.failure?.message).toMatch('/data/version-2 is in use by another server');
    first.storage.stop();
    first.settle();
    expect(new StorageHost(first.disk).recover().failure).toBeNull();
  });

  it('when there are logs but no snapshot, unless that is trusted', () => {
    const disk = usedDisk(5);
    removeNames(disk, /^snapshot/);
    expect(new StorageHost(disk).recover().failure?.message).toMatch(/has 1 log files but .* has no snapshot/);
    const trusting = new StorageHost(disk, { trustEmptySnapshot: true }).recover();
    expect(trusting.summary).toMatchObject({ lastZxid: 5, txns: 5 });
  });

  it('when there are snapshots and none can be loaded', () => {
    const disk = usedDisk(5);
    const snapshot = disk.peek(`${TEST_DIRECTORY}/snapshot.0`)!.slice();
    snapshot[100]! ^= 1;
    disk.poke(`${TEST_DIRECTORY}/snapshot.0`, snapshot);
    expect(new StorageHost(disk).recover().failure?.message).toMatch(
      /\(snapshot\.0\) none can be loaded; the newest: \w/,
    );
  });

  it('when files of one kind are in the directory of the other', () => {
    const disk = usedDisk(5);
    expect(new StorageHost(disk, { logDirectory: '/log' }).recover().failure?.message).toMatch(
      '/data/version-2 is for snapshots only but has log.1',
    );
    expect(new StorageHost(disk, { snapshotDirectory: '/snapshots' }).recover().failure?.message).toMatch(
      '/data/version-2 is for logs only but has snapshot.0',
    );
  });

  it('when an epoch file does not contain a number', () => {
    const disk = usedDisk(5);
    disk.poke(`${TEST_DIRECTORY}/currentEpoch`, new TextEncoder().encode('one'));
    expect(new StorageHost(disk).recover().failure?.message).toBe(
      `currentEpoch cannot be read: ${TEST_DIRECTORY}/currentEpoch holds "one" instead of an epoch in decimal digits. The file ` +
        'is damaged: remove it, and this server recreates it from its log',
    );
    disk.kill();
    disk.remove(`${TEST_DIRECTORY}/currentEpoch`, () => {});
    disk.deliverAll();
    expect(new StorageHost(disk).recover()).toMatchObject({ failure: null, durable: 5 });
    disk.kill();
    disk.poke(`${TEST_DIRECTORY}/currentEpoch`, new TextEncoder().encode('7'));
    for (let start = 1; start <= 2; start++) {
      const host = new StorageHost(disk).recover();
      expect(host).toMatchObject({ failure: null, history: { acceptedEpoch: 7, currentEpoch: 7 } });
      expect(host.eventsOf('warning')).toEqual([]);
      disk.kill();
    }
    disk.poke(`${TEST_DIRECTORY}/acceptedEpoch`, new Uint8Array(512));
    expect(new StorageHost(disk, { ensemble: TEST_ENSEMBLE }).recover().failure?.message).toMatch(
      /acceptedEpoch holds "\\u0000.*While a majority of the other servers is healthy, empty the directory/,
    );
  });

  const operations: DiskOperation[] = [
    'makeDirectory',
    'hold',
    'list',
    'open',
    'read',
    'create',
    'write',
    'sync',
    'rename',
    'syncDirectory',
  ];
  it.each(operations)('when the disk fails at its %s, and a later start finds everything as it was', (operation) => {
    for (let skip = 0; ; skip++) {
      const fresh = new MemoryDisk();
      const isFailing = [fresh, usedDisk(5)].map((disk) => {
        disk.failNext({ operation, code: 'EIO', skip });
        const failing = new StorageHost(disk).recover();
        const { failure } = failing;
        // A start continues without the mark.
        const isOfMark = failing.eventsOf('warning').some(({ message }) => message.includes('durableZxid'));
        disk.kill();
        const again = new StorageHost(disk).recover();
        expect(again.failure, `${operation} ${skip}`).toBeNull();
        expect(again.summary!.lastZxid).toBe(disk === fresh ? 0 : 5);
        return failure !== null || isOfMark;
      });
      if (!isFailing.includes(true)) {
        expect(skip, 'the operation took place').toBeGreaterThan(0);
        return;
      }
    }
  });
});

describe('snapshots', () => {
  it('are taken while txns are appended, and an older one is used when the newest is damaged', () => {
    const disk = usedDisk(200, { snapCount: 20 });
    const snapshots = disk.names(TEST_DIRECTORY).filter((name) => name.startsWith('snapshot.'));
    expect(snapshots.length).toBeGreaterThan(8);
    const whole = new StorageHost(disk).recover();
    const newest = whole.summary!.snapshot.zxid;
    const path = `${TEST_DIRECTORY}/snapshot.${newest.toString(16)}`;
    const bytes = disk.peek(path)!.slice();
    bytes[bytes.length >> 1]! ^= 4;
    disk.kill();
    disk.poke(path, bytes);
    const older = new StorageHost(disk).recover();
    expect(older.summary!.snapshot.zxid).toBeLessThan(newest);
    expect(describeDatabase(older.database!)).toBe(describeDatabase(whole.database!));
    expect(older.eventsOf('warning')[0]?.message).toMatch(`the snapshot ${path} is not usable`);
  });

  it('are refused with any single flipped bit', () => {
    const disk = usedDisk(3);
    const path = `${TEST_DIRECTORY}/snapshot.0`;
    const bytes = disk.peek(path)!;
    for (let at = 0; at < bytes.length; at++) {
      // The dbid is not used; its bytes are covered by the checksum all the same.
      const rotten = bytes.slice();
      rotten[at]! ^= 1 << (at % 8);
      disk.poke(path, rotten);
      expect(new StorageHost(disk).recover().failure?.message, `byte ${at}`).toMatch('none can be loaded');
    }
  });

  it('are refused when they are truncated anywhere', () => {
    const disk = usedDisk(3);
    const path = `${TEST_DIRECTORY}/snapshot.0`;
    const bytes = disk.peek(path)!;
    // The parts after the first seal may be missing as a whole: Apache 3.8 writes one part less, two without digests.
    const wholeAt = [bytes.length - 21, bytes.length - 21 - 33];
    for (let length = 0; length < bytes.length; length++) {
      disk.poke(path, bytes.slice(0, length));
      const { failure } = new StorageHost(disk).recover();
      if (wholeAt.includes(length)) expect(failure, `${length} bytes`).toBeNull();
      else expect(failure?.message, `${length} bytes`).toMatch('none can be loaded');
      disk.kill();
    }
  });

  it('are taken soon after a start that replayed txns, and not after one that did not', () => {
    const disk = usedDisk(5);
    const host = new StorageHost(disk).recover();
    expect(host.storage.nextDeadlineMs()).toBe(1000);
    host.clock.nowMs = 1000;
    host.storage.onTick(1000);
    host.settle();
    expect(host.eventsOf('snapshot-written').map(({ file }) => file)).toEqual([`${TEST_DIRECTORY}/snapshot.5`]);
    disk.kill();
    const again = new StorageHost(disk).recover();
    expect(again.summary).toMatchObject({ snapshot: { zxid: 5 }, txns: 0 });
    expect(again.storage.nextDeadlineMs()).toBe(Number.POSITIVE_INFINITY);
  });

  it('that cannot be written leave no files, and the server keeps serving', () => {
    const host = new StorageHost(new MemoryDisk(), { snapCount: 20 }).recover().startAppending();
    host.disk.failNext({ operation: 'write', code: 'ENOSPC', path: 'snapshot' });
    for (let i = 0; i < 60; i++) {
      host.append(NOTHING);
      host.settle();
    }
    expect(host.durable).toBe(60);
    expect(host.eventsOf('snapshot-failed')).toHaveLength(1);
    expect(host.eventsOf('snapshot-written').length).toBeGreaterThan(1);
    expect(host.disk.names(TEST_DIRECTORY).filter((name) => name.startsWith('unfinished'))).toEqual([]);
  });

  it('that were written during changes give no digests before these are applied', () => {
    const writer = new StorageHost().recover().startAppending();
    for (let i = 0; i < 12; i++) writer.append({ ...LARGE_ZNODE, path: `/${i}`, parentCversion: i + 1 });
    while (writer.durable < 120) {
      writer.append(NOTHING);
      writer.settle();
    }
    writer.disk.kill();
    const host = new StorageHost(writer.disk).recover().startAppending();
    host.clock.nowMs = 1000;
    host.storage.onTick(1000);
    let children = 0;
    const change = (): void => {
      children++;
      host.append({ ...LARGE_ZNODE, data: null, path: `/11/${children}`, parentCversion: children });
      host.storage.flush();
    };
    while (host.eventsOf('snapshot-written').length === 0) {
      change();
      host.disk.deliver();
    }
    while (host.durable < 300) {
      change();
      host.settle();
    }
    const exact = host.database!.tree.digestHistory();
    expect(exact.map(({ zxid }) => zxid)).toEqual([128, 256]);
    host.disk.kill();
    const again = new StorageHost(host.disk).recover();
    expect(again.summary).toMatchObject({ snapshot: { zxid: 120 }, txns: host.durable - 120 });
    expect(again.database!.tree.digestHistory()).toEqual(exact.slice(1));
  });

  it('that are requested while one is written contain everything before the request, and each request is answered once', () => {
    const host = new StorageHost(new MemoryDisk()).recover().startAppending();
    const answers: string[] = [];
    const take = (name: string): void =>
      host.storage.takeSnapshot((newest) => answers.push(`${name}: ${newest?.zxid ?? 'failed'}`));
    const appendOne = (): void => {
      host.append(NOTHING);
      host.storage.flush();
    };
    host.storage.allowSnapshots();
    appendOne();
    host.settle();
    take('first');
    appendOne();
    while (host.durable < 2) host.disk.deliver();
    expect(answers).toEqual([]);
    for (const name of ['second', 'third']) take(name);
    host.settle();
    expect(answers).toEqual(['first: 1', 'second: 2', 'third: 2']);
  });

  it('that are large are synced piece by piece, since a sync of the log may wait for all unsynced bytes', () => {
    const writer = new StorageHost().recover().startAppending();
    for (let i = 0; i < 12; i++) writer.append({ ...LARGE_ZNODE, path: `/${i}`, parentCversion: i + 1 });
    writer.settle();
    writer.disk.kill();
    for (const code of [null, 'EIO']) {
      const host = new StorageHost(writer.disk).recover();
      let unsynced = 0;
      let unsyncedMax = 0;
      let bytes = 0;
      host.disk.observer = {
        onWritten(_path, _position, written) {
          unsynced += written.length;
          bytes += written.length;
          unsyncedMax = Math.max(unsyncedMax, unsynced);
        },
        onSynced() {
          unsynced = 0;
        },
        onRenamed() {},
        onDirectorySynced() {},
        onFailed() {},
      };
      if (code !== null) host.disk.failNext({ operation: 'sync', code, path: 'unfinished' });
      host.clock.nowMs = 1000;
      host.storage.onTick(1000);
      host.settle();
      expect(host.eventsOf(code === null ? 'snapshot-written' : 'snapshot-failed')).toHaveLength(1);
      // The tree keeps nothing of the snapshot.
      expect(host.database?.tree.state.openSnapshots.size).toBe(0);
      if (code === null) expect(bytes).toBeGreaterThan(12_000_000);
      expect(unsyncedMax).toBeLessThan(6_000_000);
      removeNames(host.disk, /^snapshot\.c$/);
      host.disk.kill();
    }
  });

  it('that a crash cut short are removed at the next start', () => {
    const disk = usedDisk(5);
    disk.poke(`${TEST_DIRECTORY}/unfinished-snapshot.4`, Uint8Array.of(1, 2, 3));
    const host = new StorageHost(disk).recover();
    expect(host.failure).toBeNull();
    expect(disk.names(TEST_DIRECTORY)).toEqual(['acceptedEpoch', 'currentEpoch', 'durableZxid', 'log.1', 'snapshot.0']);
  });
});

describe('a stop', () => {
  it('finishes and syncs what was appended, aborts a snapshot, and releases the directory', () => {
    const host = new StorageHost(new MemoryDisk(), { snapCount: 4 }).recover().startAppending();
    for (let i = 0; i < 10; i++) host.append(NOTHING);
    host.storage.flush();
    host.disk.deliver();
    for (let i = 0; i < 3; i++) host.append(NOTHING);
    host.storage.stop();
    expect(host.isStopped).toBe(false);
    host.settle();
    expect(host.isStopped).toBe(true);
    expect(host.durable).toBe(13);
    host.disk.crash('nothing');
    expect(new StorageHost(host.disk).recover().summary).toMatchObject({ lastZxid: 13 });
  });

  it('also completes during the recovery and after a failure', () => {
    const recovering = new StorageHost(usedDisk(5));
    recovering.storage.recover();
    recovering.disk.deliver();
    recovering.storage.stop();
    recovering.disk.deliverAll();
    expect(recovering).toMatchObject({ isStopped: true, database: null });
    expect(new StorageHost(recovering.disk).recover().failure).toBeNull();

    const failed = new StorageHost().recover().startAppending();
    failed.disk.failNext({ operation: 'sync', code: 'EIO' });
    failed.append(NOTHING);
    failed.settle();
    expect(failed.failure?.message).toMatch('EIO');
    failed.storage.stop();
    failed.settle();
    expect(failed).toMatchObject({ isStopped: true, durable: 0 });
  });
});

describe('forceSync=no', () => {
  it('is reported at the start', () => {
    const host = new StorageHost(new MemoryDisk(), { forceSync: false }).recover();
    expect(host.eventsOf('warning')[0]?.message).toMatch('forceSync is off');
  });
});
