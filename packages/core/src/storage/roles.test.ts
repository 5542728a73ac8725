/** One storage for each role of a server, one after another with the same directory. */
import { isDeepStrictEqual } from 'node:util';
import { epochOf, JuteWriter, makeZxid, OpCode, type Txn, writeTxn, writeTxnDigest } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import {
  type AppendedTxn,
  copyDisk,
  Dice,
  databaseAt,
  describeDatabase,
  grownDirectory,
  StorageHost,
  TEST_DIRECTORY,
  TEST_ENSEMBLE,
} from '../testing/storage-host.ts';
import { type DiskObserver, type DiskOperation, MemoryDisk } from './memory-disk.ts';
import type { CarriedStorage } from './storage.ts';

const NOTHING: Txn = { type: OpCode.error, error: -101 };
const MEMBER: Partial<CoreOptions> = {
  ensemble: TEST_ENSEMBLE,
  preallocateBytes: 8192,
  snapCount: 20,
  logBytesMax: 2048,
};

/** Notified of every effect that changes something. */
function makeObserver(onEffect: (effect: string) => void): DiskObserver {
  return {
    onWritten: (path) => onEffect(`write ${path}`),
    onSynced: (path) => onEffect(`sync ${path}`),
    onRenamed: (source) => onEffect(`rename ${source}`),
    onDirectorySynced: (path) => onEffect(`sync ${path}`),
    onFailed: () => {},
  };
}

describe('a txn appended as bytes', () => {
  it('is logged like the same txn appended as a record', () => {
    const dice = new Dice(6);
    const one = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    const other = new StorageHost(new MemoryDisk(), MEMBER).recover();
    one.beginEpoch(1);
    for (let i = 0; i < 200; i++) {
      const { header, txn } = one.appendRandom(dice);
      one.settle();
      const writer = new JuteWriter();
      writeTxn(writer, header, txn);
      writeTxnDigest(writer, 2, one.database!.tree.treeDigest());
      const payload = writer.bytes.slice(0, writer.position);
      other.storage.appendPayload(header.zxid, payload);
      payload.fill(0xff);
      other.storage.flush();
      while (other.durable < header.zxid && other.disk.deliver());
    }
    const logs = one.disk.names(TEST_DIRECTORY).filter((name) => name.startsWith('log.'));
    expect(logs.length).toBeGreaterThan(3);
    for (const log of logs) {
      const path = `${TEST_DIRECTORY}/${log}`;
      expect(other.disk.peek(path)?.subarray(0, 1500), log).toEqual(one.disk.peek(path)!.subarray(0, 1500));
    }
  });
});

describe('epochs that a role writes', () => {
  it('are reported durable one after the other, and are durable', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover();
    host.storage.writeEpoch('acceptedEpoch', 1);
    host.storage.writeEpoch('acceptedEpoch', 2);
    host.storage.writeEpoch('currentEpoch', 2);
    expect(host.epochs).toEqual([]);
    const reported: [string, string | null][] = [];
    while (host.disk.deliver()) {
      if (host.epochs.length === reported.length) continue;
      const [name] = host.epochs.at(-1)!.split(' ');
      const bytes = host.disk.peek(`${TEST_DIRECTORY}/${name}`);
      reported.push([host.epochs.at(-1)!, bytes === null ? null : new TextDecoder().decode(bytes)]);
    }
    expect(reported).toEqual([
      ['acceptedEpoch 1', '1'],
      ['acceptedEpoch 2', '2'],
      ['currentEpoch 2', '2'],
    ]);
    host.disk.crash('nothing');
    expect(new StorageHost(host.disk, MEMBER).recover().history).toMatchObject({ acceptedEpoch: 2, currentEpoch: 2 });
  });

  const operations: DiskOperation[] = ['create', 'write', 'sync', 'rename', 'syncDirectory'];
  it.each(operations)(
    'stop the server when the disk fails at their %s, and nothing is durable after that',
    (operation) => {
      const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
      host.beginEpoch(1);
      host.disk.failNext({ operation, code: 'EIO' });
      host.storage.writeEpoch('acceptedEpoch', 1);
      host.storage.writeEpoch('currentEpoch', 1);
      host.append(NOTHING);
      host.settle();
      expect(host.failure?.message).toMatch('EIO');
      expect(host).toMatchObject({ epochs: [], durable: 0 });
      host.storage.writeEpoch('acceptedEpoch', 3);
      host.storage.stop();
      host.settle();
      expect(host).toMatchObject({ epochs: [], isStopped: true });
      host.disk.kill();
      const again = new StorageHost(host.disk, MEMBER).recover();
      expect(again.failure, 'a file left over under another name is harmless').toBeNull();
      again.storage.writeEpoch('acceptedEpoch', 4);
      again.settle();
      expect(again.epochs).toEqual(['acceptedEpoch 4']);
    },
  );
});

describe('snapshots of a member', () => {
  it('are not started before its role allows them, however much was replayed or appended', () => {
    const host = new StorageHost(grownDirectory(new Dice(1), MEMBER).disk, { ...MEMBER, purgeIntervalMs: 5 }).recover();
    const names = host.disk.names(TEST_DIRECTORY).filter((name) => name.startsWith('snapshot.'));
    expect(host.storage.nextDeadlineMs()).toBe(Number.POSITIVE_INFINITY);
    host.startAppending().beginEpoch(4);
    for (let i = 0; i < 60; i++) {
      host.append(NOTHING);
      host.settle();
      host.clock.nowMs += 100;
      host.storage.onTick(host.clock.nowMs);
    }
    expect(host.disk.names(TEST_DIRECTORY).filter((name) => name.startsWith('snapshot.'))).toEqual(names);
    host.storage.allowSnapshots();
    expect(host.storage.nextDeadlineMs()).toBeLessThanOrEqual(host.clock.nowMs + 1000);
    host.settle();
    expect(host.eventsOf('snapshot-written').map(({ file }) => file)).toEqual([`${TEST_DIRECTORY}/snapshot.40000003c`]);
  });
});

describe('the end of a role', () => {
  it('leaves the directory to the next one, and reports nothing but its end', () => {
    for (let seed = 1; seed <= 15; seed++) {
      const dice = new Dice(seed);
      const disk = new MemoryDisk();
      let history: AppendedTxn[] = [];
      let durable = -1;
      for (let role = 1; role <= 5; role++) {
        const story = `seed ${seed}, role ${role}`;
        const host = new StorageHost(disk, MEMBER, dice).recover({ isHeld: role > 1 });
        expect(host.failure, story).toBeNull();
        const { lastZxid } = host.history!;
        expect(lastZxid, story).toBeGreaterThanOrEqual(durable);
        history = history.filter(({ header }) => header.zxid <= lastZxid);
        expect(describeDatabase(host.database!), story).toBe(
          describeDatabase(databaseAt(history, lastZxid, host.options)),
        );
        host.startAppending().beginEpoch(role);
        if (dice.below(3) > 0) host.storage.allowSnapshots();
        for (let turn = dice.below(20); turn > 0; turn--) {
          for (let i = dice.below(6); i > 0; i--) history.push(host.appendRandom(dice));
          host.storage.flush();
          if (dice.below(5) === 0) host.storage.writeEpoch('acceptedEpoch', role);
          for (let i = dice.below(8); i > 0; i--) disk.deliver();
          host.clock.nowMs += dice.below(400);
          host.storage.onTick(host.clock.nowMs);
        }
        if (dice.below(2) === 0) history.push(host.appendRandom(dice));
        host.storage.readHistory({ after: makeZxid(role, 1), upTo: host.durable, bytesMax: 1e6 }, () => {
          expect(host.storage, 'not told after the stop').toBe(stopped ? null : host.storage);
        });
        let stopped = false;
        const before = { durable: host.durable, epochs: [...host.epochs] };
        host.storage.stop({ keepsHold: true });
        stopped = true;
        while (!host.isStopped) expect(disk.deliver(), story).toBe(true);
        expect({ durable: host.durable, epochs: host.epochs }, story).toEqual(before);
        const pending = disk.pendingCount;
        durable = host.durable;
        // Reads of the history may be in progress, but no writes.
        const names = disk.names(TEST_DIRECTORY);
        const late: string[] = [];
        disk.observer = makeObserver((effect) => void late.push(effect));
        disk.deliverAll();
        disk.observer = null;
        expect(late, `${story}, ${pending} under way`).toEqual([]);
        expect(disk.names(TEST_DIRECTORY), `${story}, ${pending} under way`).toEqual(names);
        let isFree = true;
        disk.hold(TEST_DIRECTORY, (error) => {
          isFree = error === null;
        });
        disk.deliverAll();
        expect(isFree, 'the directory stays held').toBe(false);
      }
    }
  });

  it('hands over a database that equals what is on disk, with the same history', () => {
    let taken = 0;
    let behind = 0;
    for (let seed = 1; seed <= 25; seed++) {
      const dice = new Dice(seed);
      const disk = new MemoryDisk();
      const options = { ...MEMBER, logBytesMax: 1 << (9 + dice.below(12)), snapCount: 20 + dice.below(200) };
      let carriedState: CarriedStorage | null = null;
      for (let role = 1; role <= 6; role++) {
        const story = `seed ${seed}, role ${role}`;
        const plain = role === 1 ? null : new StorageHost(copyDisk(disk), options).recover();
        const host = new StorageHost(disk, options, dice, carriedState).recover({ isHeld: role > 1 });
        expect(host.failure, story).toBeNull();
        if (plain !== null) {
          expect(describeDatabase(host.database!), story).toBe(describeDatabase(plain.database!));
          expect(host.database!.tree.treeDigest(), story).toBe(plain.database!.tree.treeDigest());
          const { tail, ...rest } = host.history!;
          const { tail: plainTail, ...plainRest } = plain.history!;
          expect(rest, story).toEqual(plainRest);
          // The two may reach back differently far; each ends with the last txn and has no gap.
          const common = Math.min(tail.length, plainTail.length);
          const ends = [tail, plainTail].map((entries) => entries.slice(entries.length - common));
          // Ten times as fast as `expect`, which then shows the difference.
          if (!isDeepStrictEqual(ends[0], ends[1])) expect(ends[0], story).toEqual(ends[1]);
          const zxids = tail.map(({ zxid }) => zxid);
          for (const [i, zxid] of zxids.entries())
            if (i > 0 && epochOf(zxid) === epochOf(zxids[i - 1]!)) expect(zxid).toBe(zxids[i - 1]! + 1);
          expect(host.summary!.snapshot.zxid, story).toBe(plain.summary!.snapshot.zxid);
        }
        if (carriedState !== null) {
          taken++;
          if (host.summary!.txns > 0) behind++;
        }
        host.startAppending().beginEpoch(role);
        if (dice.below(4) > 0) host.storage.allowSnapshots();
        for (let turn = dice.below(30); turn > 0; turn--) {
          for (let i = dice.below(20); i > 0; i--) host.appendRandom(dice);
          host.storage.flush();
          for (let i = dice.below(12); i > 0; i--) disk.deliver();
          host.clock.nowMs += dice.below(400);
          host.storage.onTick(host.clock.nowMs);
        }
        host.storage.stop({ keepsHold: true });
        // What becomes durable now is not applied: a role that has ended is not notified.
        while (!host.isStopped) expect(disk.deliver(), story).toBe(true);
        disk.deliverAll();
        carriedState = host.storage.carriedState;
        expect(carriedState?.database, story).toBe(host.database);
      }
    }
    expect(taken).toBe(125);
    expect(behind, 'the log had more than the database').toBeGreaterThan(20);
  });

  it('makes the next one fail when the log has lost what this one has acknowledged', () => {
    const options = { ...MEMBER, logBytesMax: 1 << 20 };
    const host = new StorageHost(new MemoryDisk(), options).recover().startAppending();
    host.beginEpoch(1);
    for (let i = 0; i < 40; i++) {
      host.append(NOTHING);
      host.settle();
    }
    // The role has applied only a part of it.
    host.database!.tree.lastZxid = makeZxid(1, 10);
    host.storage.stop({ keepsHold: true });
    host.settle();
    const path = `${TEST_DIRECTORY}/log.100000001`;
    const damaged = host.disk.peek(path)!.slice().fill(0, 1024);
    host.disk.poke(path, damaged);
    const next = new StorageHost(host.disk, options, new Dice(1), host.storage.carriedState).recover({ isHeld: true });
    expect(next.failure?.message).toMatch(
      /log\.100000001 at position \d+: .* had acknowledged everything up to 0x100000028/,
    );
    expect(host.disk.peek(path)).toEqual(damaged);
  });

  it('hands over no database that is ahead of the log, and none while the history is being replaced', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    host.beginEpoch(1);
    for (let i = 0; i < 5; i++) host.append(NOTHING);
    host.settle();
    host.database!.tree.lastZxid = makeZxid(1, 6);
    host.storage.stop({ keepsHold: true });
    host.settle();
    expect(host.storage.carriedState, 'as of an observer that does not log').toBeNull();

    const { disk } = grownDirectory(new Dice(3), MEMBER);
    for (let deliveries = 0; deliveries < 50; deliveries++) {
      const member = new StorageHost(disk, MEMBER).recover();
      member.truncate(member.history!.lastZxid);
      for (let i = 0; i < deliveries; i++) disk.deliver();
      const isExchanged = member.recovered === 2;
      member.storage.stop({ keepsHold: true });
      member.settle();
      expect(member.storage.carriedState !== null, `${deliveries} deliveries`).toBe(isExchanged);
      disk.kill();
    }
  });

  it('reads only the part of a long log that the next role needs', () => {
    const options = { ...MEMBER, ensemble: { ...TEST_ENSEMBLE, commitLogCount: 100 }, snapCount: 1e6, logBytesMax: 0 };
    const host = new StorageHost(new MemoryDisk(), options).recover().startAppending();
    host.beginEpoch(1);
    const dice = new Dice(5);
    for (let i = 0; i < 20_000; i++) {
      host.appendRandom(dice);
      if (i % 50 === 0) host.settle();
    }
    host.settle();
    host.storage.stop({ keepsHold: true });
    host.settle();
    const log = `${TEST_DIRECTORY}/log.100000001`;
    expect(host.disk.peek(log)!.length).toBeGreaterThan(1_500_000);
    const before = host.disk.counts.get('read') ?? 0;
    const next = new StorageHost(host.disk, options, dice, host.storage.carriedState).recover({ isHeld: true });
    expect(next.history!.tail.length).toBe(100);
    expect(next.history!.lastZxid).toBe(makeZxid(1, 20_000));
    expect(host.disk.counts.get('read')! - before, 'of 256 KiB, and one for each epoch file').toBe(3);
  });

  it('after or with a disk failure releases the directory: there is no next role', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    host.beginEpoch(1);
    host.append(NOTHING);
    host.disk.failNext({ operation: 'write', code: 'EIO', path: 'log.', skip: 1 });
    host.storage.stop({ keepsHold: true });
    host.settle();
    expect(host.failure?.message).toMatch('EIO');
    expect(host).toMatchObject({ isStopped: true, durable: 0 });
    expect(new StorageHost(host.disk, MEMBER).recover().failure).toBeNull();
  });

  it('is reported once, whatever was in progress', () => {
    const { disk } = grownDirectory(new Dice(3), MEMBER);
    for (let deliveries = 0; deliveries < 50; deliveries++) {
      const host = new StorageHost(disk, MEMBER).recover();
      const { lastZxid } = host.history!;
      host.truncate(lastZxid);
      for (let i = 0; i < deliveries; i++) disk.deliver();
      const { recovered } = host;
      host.storage.stop({ keepsHold: true });
      host.settle();
      expect(host).toMatchObject({ isStopped: true, recovered, failure: null });
      const next = new StorageHost(disk, MEMBER).recover({ isHeld: true });
      expect(next.history!.lastZxid).toBe(lastZxid);
      disk.kill();
    }
  });
});
