import { makeZxid, OpCode, type Txn, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import {
  copyDisk,
  Dice,
  describeDatabase,
  grownDirectory,
  historyFiles,
  liveNames,
  StorageHost,
  TEST_DIRECTORY,
  TEST_ENSEMBLE,
} from '../testing/storage-host.ts';
import type { Database } from '../tree/database.ts';
import { SILENT_EVENTS } from '../tree/tree-events.ts';
import type { DiskOperation, MemoryDisk } from './memory-disk.ts';
import type { Survivors } from './memory-file.ts';

const NOTHING: Txn = { type: OpCode.error, error: -101 };
const LOGS = '/log/version-2';
const MEMBER: Partial<CoreOptions> = {
  ensemble: TEST_ENSEMBLE,
  preallocateBytes: 8192,
  snapCount: 20,
  logBytesMax: 2048,
};

/** A leader's database: the state after other txns, the last of which has this zxid. */
function databaseOf(lastZxid: number, count = 60): Database {
  const host = new StorageHost().recover().startAppending();
  const dice = new Dice(lastZxid % 1000);
  for (let i = 1; i < count; i++) host.appendRandom(dice);
  host.settle();
  const header = { sessionId: 1n, cxid: 1, zxid: lastZxid as Zxid, time: 0 };
  host.database!.apply(header, NOTHING, SILENT_EVENTS);
  return host.database!;
}

function describeHistory(host: StorageHost): string {
  expect(host.failure).toBeNull();
  return describeDatabase(host.database!);
}

describe('the snapshot of a leader', () => {
  it.each([
    ['above', makeZxid(5, 9)],
    ['inside', makeZxid(2, 3)],
    ['below', 1000],
  ])('becomes the whole history when it is %s the old one, and the log continues after it', (_where, zxid) => {
    const { disk } = grownDirectory(new Dice(2), MEMBER);
    const old = historyFiles(disk);
    const host = new StorageHost(disk, MEMBER).recover();
    const database = databaseOf(zxid);
    const expected = describeDatabase(database);
    host.installSnapshot(database);
    expect(host.installed).toBe(0);
    host.settle();
    expect(host).toMatchObject({ installed: 1, recovered: 1, failure: null });
    const name = `snapshot.${zxid.toString(16)}`;
    expect(liveNames(disk)).toEqual(['acceptedEpoch', 'currentEpoch', name]);
    expectKept(disk, old, [TEST_DIRECTORY]);
    expect(host.storage.newestSnapshotBytes).toBe(disk.peek(`${TEST_DIRECTORY}/${name}`)!.length);

    host.database = database;
    host.startAppending().beginEpoch(6);
    host.append(NOTHING);
    host.settle();
    expect(host.durable).toBe(makeZxid(6, 1));
    disk.crash('nothing');
    expect(liveNames(disk)).toEqual(['acceptedEpoch', 'currentEpoch', 'log.600000001', name]);
    const again = new StorageHost(disk, MEMBER).recover();
    expect(again.history).toMatchObject({ lastZxid: makeZxid(6, 1), currentEpoch: 6 });
    expect(again.history!.tail.map((entry) => entry.zxid)).toEqual([makeZxid(6, 1)]);
    expect(describeDatabase(again.database!), 'an error txn changes nothing').toBe(expected);
  });

  it('is installed completely or not at all, wherever the power is cut, even if the next start is interrupted too', () => {
    const ways: [string, (seed: number) => Survivors][] = [
      ['what was not synced is lost', () => 'nothing'],
      ['all that was written is there', () => 'everything'],
      ['chance decides', (seed) => new Dice(seed)],
      ['chance decides otherwise', (seed) => new Dice(seed + 5)],
    ];
    const { disk: grown, history } = grownDirectory(new Dice(2), MEMBER);
    const old = historyFiles(grown);
    for (const [where, zxid] of [
      ['above', makeZxid(5, 9)],
      ['inside', history[history.length >> 1]!.header.zxid],
    ] as const) {
      const database = databaseOf(zxid);
      const newOne = describeDatabase(database);
      for (const logDirectory of [TEST_DIRECTORY, LOGS]) {
        for (const [way, survivors] of ways) {
          let outcomes = '';
          for (let cutAfter = 0; ; cutAfter++) {
            const story = `${where}, ${logDirectory}, ${way}, cut after ${cutAfter} completions`;
            const options = { ...MEMBER, logDirectory };
            const disk = copyDisk(grown);
            if (logDirectory === LOGS) moveLogs(disk);
            const host = new StorageHost(disk, options).recover();
            const oldOne = describeHistory(host);
            host.installSnapshot(database);
            let isOver = false;
            for (let i = 0; i < cutAfter && !isOver; i++) isOver = !disk.deliver();
            const isReported = host.installed === 1;
            disk.crash(survivors(cutAfter));
            new StorageHost(disk, options).storage.recover();
            for (let i = 0; i < cutAfter % 13; i++) disk.deliver();
            disk.crash(survivors(cutAfter + 1000));
            const again = new StorageHost(disk, options).recover();
            const found = describeHistory(again);
            expect([oldOne, newOne].includes(found), story).toBe(true);
            if (isReported) expect(found, story).toBe(newOne);
            expect(again.history!.lastZxid, story).toBe(found === newOne ? zxid : history.at(-1)!.header.zxid);
            if (found === newOne) {
              const names = ['acceptedEpoch', 'currentEpoch', `snapshot.${zxid.toString(16)}`];
              expect(liveNames(disk), story).toEqual(names);
            }
            expectKept(disk, old, [TEST_DIRECTORY, LOGS], story);
            outcomes += found === newOne ? 'n' : 'o';
            if (isOver) break;
          }
          expect(outcomes, `${way}: first the old one, then the new one`).toMatch(/^o+[on]*n+$/);
        }
      }
    }
  });

  it('does not remove txns that were logged after a killed process had almost installed it', () => {
    const { disk: grown } = grownDirectory(new Dice(2), MEMBER);
    const options = { ...MEMBER, logDirectory: LOGS };
    // Of the same epoch: writing an epoch file would sync the directory.
    const database = databaseOf(makeZxid(3, 900));
    for (let deliveries = 0; deliveries < 60; deliveries++) {
      const disk = copyDisk(grown);
      moveLogs(disk);
      const host = new StorageHost(disk, options).recover();
      host.installSnapshot(database);
      for (let i = 0; i < deliveries; i++) disk.deliver();
      disk.kill();
      const next = new StorageHost(disk, options).recover().startAppending();
      next.append(NOTHING, { zxid: next.history!.lastZxid + 1 });
      next.settle();
      const expected = describeHistory(next);
      disk.crash('nothing');
      const again = new StorageHost(disk, options).recover();
      expect(again.history, `killed after ${deliveries}`).toMatchObject({
        lastZxid: next.history!.lastZxid + 1,
      });
      expect(describeHistory(again)).toBe(expected);
    }
  });

  it('whose second name a killed process left unsynced is durable before any old file is removed', () => {
    const { disk: grown } = grownDirectory(new Dice(2), MEMBER);
    const options = { ...MEMBER, logDirectory: LOGS };
    const database = databaseOf(makeZxid(3, 900));
    for (let cutAfter = 0; ; cutAfter++) {
      const disk = copyDisk(grown);
      moveLogs(disk);
      const host = new StorageHost(disk, options).recover();
      const oldOne = describeHistory(host);
      host.installSnapshot(database);
      while (!disk.names(TEST_DIRECTORY).includes('installing-snapshot.300000384')) disk.deliver();
      disk.kill();
      new StorageHost(disk, options).storage.recover();
      let isOver = false;
      for (let i = 0; i < cutAfter && !isOver; i++) isOver = !disk.deliver();
      disk.crash('nothing');
      const found = describeHistory(new StorageHost(disk, options).recover());
      expect([oldOne, describeDatabase(database)].includes(found), `cut after ${cutAfter} completions`).toBe(true);
      if (isOver) break;
    }
  });

  it('that was being written when the process ended is removed at the next start', () => {
    const { disk } = grownDirectory(new Dice(2), MEMBER);
    const names = disk.names(TEST_DIRECTORY);
    const host = new StorageHost(disk, MEMBER).recover();
    host.installSnapshot(databaseOf(makeZxid(5, 9)));
    while (!disk.names(TEST_DIRECTORY).includes('unfinished-snapshot.500000009')) disk.deliver();
    disk.kill();
    new StorageHost(disk, MEMBER).recover();
    expect(disk.names(TEST_DIRECTORY)).toEqual(names);
  });

  it('that is truncated under its second name stops the start, and nothing is removed', () => {
    const { disk } = grownDirectory(new Dice(2), MEMBER);
    disk.poke(`${TEST_DIRECTORY}/installing-snapshot.500000009`, new Uint8Array(500));
    const names = disk.names(TEST_DIRECTORY);
    expect(new StorageHost(disk, MEMBER).recover().failure?.message).toMatch(
      'installing-snapshot.500000009 is cut short: it was to replace all logs and snapshots',
    );
    expect(disk.names(TEST_DIRECTORY)).toEqual(names);
  });

  const operations: DiskOperation[] = ['create', 'write', 'sync', 'rename', 'syncDirectory', 'list'];
  it.each(operations)(
    'stops the server when the disk fails at its %s, and a later start has one history',
    (operation) => {
      const { disk: grown, history } = grownDirectory(new Dice(2), MEMBER);
      const database = databaseOf(makeZxid(5, 9));
      const newOne = describeDatabase(database);
      let failures = 0;
      for (let skip = 0; skip < 12; skip++) {
        const disk = copyDisk(grown);
        const host = new StorageHost(disk, MEMBER).recover();
        const oldOne = describeHistory(host);
        disk.failNext({ operation, code: 'ENOSPC', skip });
        host.installSnapshot(database);
        host.settle();
        expect(host.installed === 0, `${operation} ${skip}`).toBe(host.failure !== null);
        if (host.failure !== null) {
          failures++;
          expect(host.failure.message).toMatch('cannot install the snapshot of the leader');
        }
        host.storage.stop();
        host.settle();
        expect(host.isStopped).toBe(true);
        disk.kill();
        const found = describeHistory(new StorageHost(disk, MEMBER).recover());
        expect([oldOne, newOne]).toContain(found);
        if (host.installed === 1) expect(found).toBe(newOne);
      }
      expect(failures).toBeGreaterThan(0);
      expect(history.length).toBeGreaterThan(0);
    },
  );

  it('is aborted by a stop before it has its second name, and completed after that', () => {
    const { disk: grown, history } = grownDirectory(new Dice(2), MEMBER);
    const zxid = makeZxid(5, 9);
    const found = new Set<Zxid>();
    for (let deliveries = 0; deliveries < 40; deliveries++) {
      const disk = copyDisk(grown);
      const host = new StorageHost(disk, MEMBER).recover();
      host.installSnapshot(databaseOf(zxid));
      for (let i = 0; i < deliveries; i++) disk.deliver();
      const { installed } = host;
      host.storage.stop({ keepsHold: true });
      host.settle();
      expect(host).toMatchObject({ isStopped: true, installed, failure: null });
      const next = new StorageHost(disk, MEMBER).recover({ isHeld: true });
      expect(next.failure).toBeNull();
      found.add(next.history!.lastZxid);
      if (installed === 1) expect(next.history!.lastZxid).toBe(zxid);
    }
    expect([...found]).toEqual([history.at(-1)!.header.zxid, zxid]);
  });
});

/** Every old log and snapshot is there, under its own name or set aside. */
function expectKept(
  disk: MemoryDisk,
  old: ReadonlyMap<string, readonly string[]>,
  directories: readonly string[],
  story?: string,
): void {
  const found = historyFiles(disk, directories);
  for (const [name, contents] of old) expect(found.get(name), `${story}: ${name}`).toContain(contents[0]);
}

/** Splits one directory into two. */
function moveLogs(disk: MemoryDisk): void {
  for (const name of disk.names(TEST_DIRECTORY)) {
    if (!name.startsWith('log.')) continue;
    disk.poke(`${LOGS}/${name}`, disk.peek(`${TEST_DIRECTORY}/${name}`)!);
    disk.remove(`${TEST_DIRECTORY}/${name}`, () => {});
  }
  disk.syncDirectory(TEST_DIRECTORY, () => {});
  disk.deliverAll();
}
