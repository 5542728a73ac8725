import { epochOf, makeZxid, OpCode, type Txn, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import {
  type AppendedTxn,
  copyDisk,
  Dice,
  databaseAt,
  describeDatabase,
  grownDirectory,
  liveNames,
  StorageHost,
  TEST_DIRECTORY,
  TEST_ENSEMBLE,
} from '../testing/storage-host.ts';
import { ADLER_START, adler32 } from './adler32.ts';
import { type DiskOperation, MemoryDisk } from './memory-disk.ts';
import type { Survivors } from './memory-file.ts';

const MEMBER: Partial<CoreOptions> = {
  ensemble: TEST_ENSEMBLE,
  preallocateBytes: 8192,
  snapCount: 20,
  logBytesMax: 2048,
};

function expectHistory(host: StorageHost, history: readonly AppendedTxn[], lastZxid: number, story: string): void {
  expect(host.failure, story).toBeNull();
  expect(host.history!.lastZxid, story).toBe(lastZxid);
  expect(describeDatabase(host.database!), story).toBe(describeDatabase(databaseAt(history, lastZxid, host.options)));
}

/** The zxid of a txn in the second half of the history after which its file continues. */
function middleOfFile(disk: MemoryDisk, history: readonly AppendedTxn[]): Zxid {
  const names = zxidsOf(disk);
  const isMiddle = (i: number): boolean => history[i + 1] !== undefined && !names.includes(history[i + 1]!.header.zxid);
  const index = history.findIndex((_, i) => i >= history.length >> 1 && isMiddle(i));
  return history[index]!.header.zxid;
}

/** The zxids in the names of all logs and snapshots. */
function zxidsOf(disk: MemoryDisk): number[] {
  return disk.names(TEST_DIRECTORY).flatMap((name) => {
    const found = /^(?:log|snapshot)\.([0-9a-f]+)$/.exec(name)?.[1];
    return found === undefined ? [] : [Number.parseInt(found, 16)];
  });
}

describe('a truncation', () => {
  it('leaves the history up to any of its txns, and the log continues after it', () => {
    for (let seed = 1; seed <= 10; seed++) {
      const dice = new Dice(seed);
      const { disk, history } = grownDirectory(dice, MEMBER);
      const zxid = history[dice.below(history.length)]!.header.zxid;
      const story = `seed ${seed}, zxid 0x${zxid.toString(16)}`;
      const host = new StorageHost(disk, MEMBER, dice).recover();
      host.truncate(zxid);
      host.settle();
      if (host.refusal !== null) {
        expect(host.refusal, story).toMatch('no snapshot that is whole is old enough');
        continue;
      }
      expect(host.recovered, story).toBe(2);
      expectHistory(host, history, zxid, story);
      expect(Math.max(...zxidsOf(disk)), 'no name is behind it').toBeLessThanOrEqual(zxid);
      host.startAppending();
      host.beginEpoch(9);
      const kept = history.filter(({ header }) => header.zxid <= zxid);
      for (let i = 0; i < 5; i++) kept.push(host.appendRandom(dice));
      host.settle();
      disk.crash('nothing');
      expectHistory(new StorageHost(disk, MEMBER).recover(), kept, makeZxid(9, 5), story);
    }
  });

  it('interrupted by a power cut leaves the old history up to some txn that is not before it', () => {
    const ways: [string, (seed: number) => Survivors][] = [
      ['what was not synced is lost', () => 'nothing'],
      ['all that was written is there', () => 'everything'],
      ['chance decides', (seed) => new Dice(seed)],
    ];
    let cuts = 0;
    const { disk: grown, history } = grownDirectory(new Dice(1), MEMBER);
    const zxid = middleOfFile(grown, history);
    for (const [way, survivors] of ways) {
      for (let cutAfter = 0; ; cutAfter++) {
        const disk = copyDisk(grown);
        const story = `${way}, cut after ${cutAfter} completions`;
        const host = new StorageHost(disk, MEMBER).recover();
        host.truncate(zxid);
        let isOver = false;
        for (let i = 0; i < cutAfter && !isOver; i++) isOver = !disk.deliver();
        const isReported = host.recovered === 2;
        disk.crash(survivors(1000 + cutAfter));
        cuts++;
        // A start that is interrupted too changes nothing.
        new StorageHost(disk, MEMBER).storage.recover();
        for (let i = 0; i < cutAfter; i++) disk.deliver();
        disk.crash(survivors(2000 + cutAfter));
        const again = new StorageHost(disk, MEMBER).recover();
        const { lastZxid } = again.history!;
        expect(lastZxid, story).toBeGreaterThanOrEqual(zxid);
        if (isReported) expect(lastZxid, story).toBe(zxid);
        expectHistory(again, history, lastZxid, story);
        again.truncate(zxid);
        again.settle();
        if (again.refusal === null) expectHistory(again, history, zxid, `${story}, done again`);
        if (isOver) break;
      }
    }
    expect(cuts).toBeGreaterThan(75);
  });

  it('when interrupted never leaves a snapshot without the txns that changed it while it was being written', () => {
    const options = { ...MEMBER, snapCount: 1000, logBytesMax: 0 };
    const host = new StorageHost(new MemoryDisk(), options).recover().startAppending();
    host.beginEpoch(1);
    const history: AppendedTxn[] = [];
    for (let i = 1; i <= 20; i++) history.push(host.append(createLarge(`/znode${i}`)));
    host.settle();
    host.disk.kill();
    const writer = new StorageHost(host.disk, options).recover().startAppending();
    writer.storage.allowSnapshots();
    writer.storage.onTick(1000);
    for (let i = 1; i <= 20; i++) {
      const data = Uint8Array.of(i);
      history.push(writer.append({ type: OpCode.setData, path: `/znode${i}`, data, version: 1 }));
      writer.storage.flush();
      writer.disk.deliver();
    }
    writer.settle();
    writer.disk.kill();
    expect(host.disk.names(TEST_DIRECTORY)).toContain('snapshot.100000014');
    const zxid = makeZxid(1, 19);
    const begin = (): MemoryDisk => {
      const disk = copyDisk(host.disk);
      new StorageHost(disk, options).recover().truncate(zxid);
      return disk;
    };
    const cuts = changingCompletions(begin());
    expect(cuts.length).toBeGreaterThan(5);
    for (const cutAfter of [0, ...cuts]) {
      const disk = begin();
      for (let i = 0; i < cutAfter; i++) disk.deliver();
      disk.crash('nothing');
      const again = new StorageHost(disk, options).recover();
      const story = `cut after ${cutAfter} completions`;
      expect(again.failure, story).toBeNull();
      const { lastZxid } = again.history!;
      expect(lastZxid, story).toBeGreaterThanOrEqual(zxid);
      const expected = databaseAt(history, lastZxid, again.options);
      expect(again.database!.tree.treeDigest(), story).toBe(expected.tree.treeDigest());
    }
  });

  it('never restores what it removed, when it is killed and a power cut interrupts its repetition', () => {
    for (let seed = 1; seed <= 12; seed++) {
      const dice = new Dice(seed);
      const { disk, history } = grownDirectory(dice, MEMBER);
      const { zxid } = history[history.length >> 1]!.header;
      const story = `seed ${seed}`;
      const first = new StorageHost(disk, MEMBER).recover();
      first.truncate(zxid);
      for (let i = dice.below(60); i > 0; i--) disk.deliver();
      disk.kill(dice);
      const second = new StorageHost(disk, MEMBER).recover();
      const before = second.history!.lastZxid;
      second.truncate(zxid);
      second.settle();
      disk.crash(dice);
      const third = new StorageHost(disk, MEMBER).recover();
      expectHistory(third, history, second.refusal === null ? zxid : before, story);
    }
  });

  it('leaves nothing after the entries, neither zeros nor old data', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    host.beginEpoch(1);
    for (let i = 0; i < 5; i++) host.append({ type: OpCode.error, error: -1 - i });
    host.settle();
    const log = host.disk.peek(`${TEST_DIRECTORY}/log.100000001`)!;
    host.truncate(makeZxid(1, 3));
    host.settle();
    // Header, and three entries: head, TxnHeader with its type, int error, digest, end.
    const length = 16 + 3 * (12 + 32 + 4 + 12 + 1);
    expect(host.disk.peek(`${TEST_DIRECTORY}/log.100000001`)).toEqual(log.slice(0, length));
    const cut = host.disk.peek(`${TEST_DIRECTORY}/replaced-1-100000003-log.100000001-from-${length}`);
    expect(cut, 'what was cut is kept').toEqual(log.slice(length, length + (2 * (length - 16)) / 3));
  });

  it('to a zxid that only a snapshot has also removes the first txn after it', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    host.beginEpoch(1);
    const history = [0, 1, 2].map(() => host.append(NOTHING));
    host.settle();
    host.installSnapshot(host.database!);
    host.settle();
    history.push(host.append(NOTHING));
    host.settle();
    const names = ['acceptedEpoch', 'currentEpoch', 'log.100000004', 'snapshot.100000003'];
    expect(liveNames(host.disk)).toEqual(names);
    host.truncate(makeZxid(1, 3));
    host.settle();
    expectHistory(host, history, makeZxid(1, 3), 'truncated');
    expect(liveNames(host.disk)).toEqual(['acceptedEpoch', 'currentEpoch', 'snapshot.100000003']);
  });

  it('to the last txn changes nothing', () => {
    const { disk, history } = grownDirectory(new Dice(3), MEMBER);
    const names = disk.names(TEST_DIRECTORY);
    const host = new StorageHost(disk, MEMBER).recover();
    const { lastZxid } = host.history!;
    host.truncate(lastZxid);
    host.settle();
    expectHistory(host, history, lastZxid, 'truncated');
    expect(disk.names(TEST_DIRECTORY)).toEqual(names);
  });
});

const NOTHING: Txn = { type: OpCode.error, error: -101 };

describe('a truncation is refused and changes nothing', () => {
  /** Refused, and txns can still be appended. */
  function expectRefused(host: StorageHost, zxid: number, reason: string | RegExp): void {
    const { disk } = host;
    const contents = (): string[] =>
      disk.names(TEST_DIRECTORY).map((name) => {
        const bytes = disk.peek(`${TEST_DIRECTORY}/${name}`)!;
        return `${name} ${bytes.length} ${adler32(ADLER_START, bytes, 0, bytes.length)}`;
      });
    const before = contents();
    host.truncate(zxid as Zxid);
    host.settle();
    expect(host.refusal).toMatch(reason);
    expect(host).toMatchObject({ failure: null, recovered: 1 });
    expect(contents()).toEqual(before);
    const epoch = epochOf(host.history!.lastZxid) + 4;
    host.startAppending().beginEpoch(epoch);
    host.append(NOTHING);
    host.settle();
    expect(host.durable).toBe(makeZxid(epoch, 1));
  }

  it('to a zxid that no txn has', () => {
    const { disk } = grownDirectory(new Dice(5), { ...MEMBER, snapCount: 1000 });
    expectRefused(new StorageHost(disk, MEMBER).recover(), makeZxid(2, 0), 'neither a txn of the log nor a snapshot');
    disk.kill();
    expectRefused(new StorageHost(disk, MEMBER).recover(), makeZxid(6, 6), 'neither a txn of the log nor a snapshot');
  });

  it('to a zxid before every snapshot', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    host.beginEpoch(1);
    for (let i = 0; i < 5; i++) host.append(NOTHING);
    host.settle();
    host.installSnapshot(host.database!);
    host.settle();
    expectRefused(host, makeZxid(1, 3), 'no snapshot that is whole is old enough');
  });

  it('when the snapshot before it is damaged', () => {
    const { disk } = grownDirectory(new Dice(5), { ...MEMBER, snapCount: 1000 });
    const path = `${TEST_DIRECTORY}/snapshot.0`;
    for (const name of disk.names(TEST_DIRECTORY)) {
      if (/^snapshot\.[^0]/.test(name)) disk.remove(`${TEST_DIRECTORY}/${name}`, () => {});
    }
    disk.deliverAll();
    const bytes = disk.peek(path)!;
    const host = new StorageHost(disk, MEMBER).recover();
    const rotten = bytes.slice();
    rotten[100]! ^= 1;
    disk.poke(path, rotten);
    expectRefused(host, makeZxid(1, 1), 'no snapshot that is whole is old enough');
  });

  it('when the snapshot before it has the effects of later txns', () => {
    const host = new StorageHost(new MemoryDisk(), { ...MEMBER, snapCount: 1000 }).recover().startAppending();
    host.beginEpoch(1);
    for (let i = 1; i <= 20; i++) host.append(createLarge(`/znode${i}`));
    host.settle();
    host.disk.kill();
    host.disk.remove(`${TEST_DIRECTORY}/snapshot.0`, () => {});
    const trusting = new StorageHost(host.disk, { ...MEMBER, trustEmptySnapshot: true }).recover().startAppending();
    trusting.storage.allowSnapshots();
    trusting.storage.onTick(1000);
    // Applied while the slices of the snapshot are being written.
    trusting.append(NOTHING);
    trusting.settle();
    trusting.disk.kill();
    expect(host.disk.names(TEST_DIRECTORY).filter((name) => name.startsWith('snap'))).toEqual(['snapshot.100000014']);
    const again = new StorageHost(host.disk, MEMBER).recover();
    expectRefused(again, makeZxid(1, 20), 'no snapshot that is whole is old enough');
    again.disk.kill();
    const third = new StorageHost(host.disk, MEMBER).recover();
    third.truncate(makeZxid(1, 21));
    third.settle();
    expect(third.history!.lastZxid).toBe(makeZxid(1, 21));
  });
});

describe('a disk that fails in a truncation', () => {
  const operations: DiskOperation[] = [
    'list',
    'rename',
    'syncDirectory',
    'open',
    'create',
    'write',
    'truncate',
    'sync',
  ];
  it.each(operations)(
    'at its %s stops the server or the truncation, and a later start finds a single history',
    (operation) => {
      let failures = 0;
      const { disk: grown, history } = grownDirectory(new Dice(11), MEMBER);
      const zxid = middleOfFile(grown, history);
      for (let skip = 0; skip < 20; skip++) {
        const disk = copyDisk(grown);
        const host = new StorageHost(disk, MEMBER).recover();
        const done = disk.counts.get(operation) ?? 0;
        disk.failNext({ operation, code: 'EIO', skip });
        host.truncate(zxid);
        host.settle();
        const hasFailed = disk.counts.get(operation)! > done + skip;
        const story = `${operation} ${skip}`;
        if (host.failure === null) {
          if (host.refusal === null) expectHistory(host, history, zxid, story);
        } else {
          failures++;
          expect(host.failure.message, story).toMatch('EIO');
          expect(host, story).toMatchObject({ recovered: 1, refusal: null });
        }
        host.storage.stop();
        host.settle();
        expect(host.isStopped, story).toBe(true);
        disk.kill();
        const again = new StorageHost(disk, MEMBER).recover();
        expect(again.history!.lastZxid, story).toBeGreaterThanOrEqual(zxid);
        expectHistory(again, history, again.history!.lastZxid, story);
        if (!hasFailed) break;
      }
      expect(failures).toBeGreaterThan(0);
    },
  );
});

/**
 * Delivers everything.
 *
 * @returns the numbers of the completions that changed something or made it durable: a power cut after a mere read is
 *   the same as one after the completion before
 */
function changingCompletions(disk: MemoryDisk): number[] {
  const changing: number[] = [];
  for (let completions = 1; ; completions++) {
    const operation = disk.nextOperation;
    if (!disk.deliver()) return changing;
    if (operation !== 'list' && operation !== 'open' && operation !== 'read') changing.push(completions);
  }
}

/** Twenty of them make a snapshot of many slices. */
function createLarge(path: string): Txn {
  const acl = [{ perms: 31, scheme: 'world', id: 'anyone' }];
  const data = new Uint8Array(200_000).fill(1);
  return { type: OpCode.create, path, data, acl, isEphemeral: false, parentCversion: 1 };
}
