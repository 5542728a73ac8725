import {
  counterOf,
  epochOf,
  formatZxid,
  getInt,
  hexZxid,
  makeZxid,
  OpCode,
  type Txn,
  type Zxid,
} from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import { buildLog } from '../testing/log-builder.ts';
import { Dice, StorageHost, TEST_DIRECTORY, TEST_ENSEMBLE } from '../testing/storage-host.ts';
import type { HistoryEntry } from '../zab/history.ts';
import { MemoryDisk } from './memory-disk.ts';

const NOTHING: Txn = { type: OpCode.error, error: -101 };
const MEMBER: Partial<CoreOptions> = {
  ensemble: TEST_ENSEMBLE,
  preallocateBytes: 8192,
  snapCount: 1000,
  logBytesMax: 4096,
};
const ALL = Number.MAX_SAFE_INTEGER as Zxid;

/** Every payload of the log by its zxid, read as simply as the format allows. */
function payloadsOf(disk: MemoryDisk): Map<number, Uint8Array> {
  const payloads = new Map<number, Uint8Array>();
  for (const name of disk.names(TEST_DIRECTORY)) {
    if (!name.startsWith('log.')) continue;
    const bytes = disk.peek(`${TEST_DIRECTORY}/${name}`)!;
    for (let at = 16; at + 12 < bytes.length && getInt(bytes, at + 8) > 0; ) {
      const end = at + 12 + getInt(bytes, at + 8);
      payloads.set(getInt(bytes, at + 24) * 2 ** 32 + (getInt(bytes, at + 28) >>> 0), bytes.slice(at + 12, end));
      at = end + 1;
    }
  }
  return payloads;
}

function read(host: StorageHost, after: number, upTo: number = ALL, bytesMax = 1e9): readonly HistoryEntry[] | null {
  let result: readonly HistoryEntry[] | null | undefined;
  host.storage.readHistory({ after: after as Zxid, upTo: upTo as Zxid, bytesMax }, (entries) => {
    result = entries;
  });
  expect(result, 'an effect returns before its completion').toBeUndefined();
  host.disk.deliverAll();
  expect(result, 'it is told').not.toBeUndefined();
  return result!;
}

function zxidsOf(entries: readonly HistoryEntry[] | null): number[] | null {
  return entries === null ? null : entries.map(({ zxid }) => zxid);
}

/** Three epochs of some txns each, over several files. */
function memberWith(counts: readonly number[], options: Partial<CoreOptions> = MEMBER): StorageHost {
  const host = new StorageHost(new MemoryDisk(), options).recover().startAppending();
  for (const [i, count] of counts.entries()) {
    host.beginEpoch(i + 1);
    for (let n = 0; n < count; n++) {
      host.append(NOTHING);
      host.settle();
    }
  }
  return host;
}

describe('the history on disk', () => {
  it('is read from any txn to any later one, across files and epochs, as the logged bytes', () => {
    const host = memberWith([70, 3, 100]);
    const payloads = payloadsOf(host.disk);
    const zxids = [...payloads.keys()].sort((a, b) => a - b);
    expect(zxids).toHaveLength(173);
    expect(host.disk.names(TEST_DIRECTORY).filter((name) => name.startsWith('log.')).length).toBeGreaterThan(2);
    const dice = new Dice(1);
    for (let i = 0; i < 200; i++) {
      const from = dice.below(zxids.length);
      const to = from + dice.below(zxids.length - from);
      const entries = read(host, zxids[from]!, zxids[to]!);
      expect(zxidsOf(entries)).toEqual(zxids.slice(from + 1, to + 1));
      for (const { zxid, payload } of entries!) expect(payload).toEqual(payloads.get(zxid));
    }
  });

  it('is not read where the last txns of an epoch have turned into zeros, though the next epoch begins in its own file', () => {
    const host = memberWith([3]);
    host.storage.stop({ keepsHold: true });
    host.settle();
    const next = new StorageHost(host.disk, MEMBER, new Dice(1), host.storage.carriedState).recover({ isHeld: true });
    next.startAppending().beginEpoch(2);
    next.append(NOTHING);
    next.settle();
    const [first, second] = [makeZxid(1, 1), makeZxid(2, 1)];
    expect(zxidsOf(read(next, first))).toEqual([makeZxid(1, 2), makeZxid(1, 3), second]);
    const path = `${TEST_DIRECTORY}/log.${formatZxid(first)}`;
    const log = host.disk.peek(path)!.slice();
    const end = log.findLastIndex((byte) => byte !== 0) + 1;
    const lastAt = end - (end - 16) / 3;
    host.disk.poke(path, log.fill(0, lastAt));
    expect(read(next, first)).toBeNull();
    expect(zxidsOf(read(next, first, makeZxid(1, 2)))).toEqual([makeZxid(1, 2)]);
  });

  it('ends with what is durable', () => {
    const host = memberWith([3]);
    host.append(NOTHING);
    expect(zxidsOf(read(host, makeZxid(1, 1)))).toEqual([makeZxid(1, 2), makeZxid(1, 3)]);
    host.storage.flush();
    expect(zxidsOf(read(host, makeZxid(1, 3))), 'the sync comes before the answer, and after the question').toEqual([]);
    expect(zxidsOf(read(host, makeZxid(1, 3)))).toEqual([makeZxid(1, 4)]);
  });

  it('is read in batches, each of which continues where the last one ended without searching', () => {
    const host = new StorageHost(new MemoryDisk(), { ensemble: TEST_ENSEMBLE, preallocateBytes: 1 << 20 });
    host.recover().startAppending().beginEpoch(1);
    const acl = [{ perms: 31, scheme: 'world', id: 'anyone' }];
    const data = new Uint8Array(10_000).fill(7);
    host.append({ type: OpCode.create, path: '/z', data, acl, isEphemeral: false, parentCversion: 1 });
    for (let i = 1; i < 300; i++) host.append({ type: OpCode.setData, path: '/z', data, version: i });
    host.settle();
    const reads = (): number => host.disk.counts.get('read') ?? 0;
    let after = makeZxid(1, 1);
    let most = 0;
    let batches = 0;
    while (after < makeZxid(1, 300)) {
      const before = reads();
      const entries = read(host, after, ALL, 50_000)!;
      const bytes = entries.reduce((sum, { payload }) => sum + payload.length, 0);
      expect(bytes).toBeLessThan(50_000 + 11_000);
      expect(entries[0]!.zxid).toBe(after + 1);
      after = entries.at(-1)!.zxid;
      most = Math.max(most, reads() - before);
      batches++;
    }
    expect(batches).toBe(60);
    expect(most, 'reads of one batch').toBeLessThanOrEqual(3);
  });

  it('is available while the log reaches back to its beginning', () => {
    const host = memberWith([10]);
    expect(read(host, makeZxid(1, 0)), 'right in front of the first txn').toHaveLength(10);
    expect(read(host, 0), 'what came before the first epoch is not known').toBeNull();
    host.installSnapshot(host.database!);
    host.settle();
    expect(read(host, makeZxid(1, 9)), 'the log is gone').toBeNull();
    host.startAppending();
    for (let i = 0; i < 5; i++) host.append(NOTHING);
    host.settle();
    expect(read(host, makeZxid(1, 9))).toBeNull();
    expect(zxidsOf(read(host, makeZxid(1, 10), makeZxid(1, 12)))).toEqual([makeZxid(1, 11), makeZxid(1, 12)]);
  });

  it('is not read across a zxid that the log does not have', () => {
    const host = memberWith([5, 5]);
    expect(read(host, makeZxid(1, 6)), 'a txn that was never logged').toBeNull();
    expect(read(host, makeZxid(2, 0)), 'the begin of an epoch is no txn').toBeNull();
    expect(read(host, makeZxid(1, 5))).toHaveLength(5);
    expect(read(host, makeZxid(2, 5)), 'there is nothing behind the end').toEqual([]);
    expect(read(host, makeZxid(2, 6))).toEqual([]);
  });

  it('is not read across a zxid that an Apache server has skipped', () => {
    const disk = new MemoryDisk();
    const empty = new StorageHost(new MemoryDisk()).recover();
    disk.poke(`${TEST_DIRECTORY}/snapshot.0`, empty.disk.peek(`${TEST_DIRECTORY}/snapshot.0`)!);
    const txns = [1, 2, 3, makeZxid(1, 2), makeZxid(1, 3), makeZxid(2, 1)];
    disk.poke(`${TEST_DIRECTORY}/log.1`, buildLog({ txns }));
    const host = new StorageHost(disk, MEMBER).recover();
    expect(host.failure).toBeNull();
    expect(read(host, 1, 3)).toHaveLength(2);
    expect(read(host, 1)).toBeNull();
    expect(read(host, makeZxid(1, 2))).toHaveLength(2);
  });

  it('is not read where a bit was flipped, in an entry or after the last one of a file', () => {
    const { disk } = memberWith([70, 3, 40]);
    disk.crash('nothing');
    const pristine = [...payloadsOf(disk).keys()];
    const first = `${TEST_DIRECTORY}/log.100000001`;
    const bytes = disk.peek(first)!.slice();
    const used = bytes.length - [...bytes].reverse().findIndex((byte) => byte !== 0);
    const host = new StorageHost(disk, MEMBER).recover();
    expect(read(host, makeZxid(1, 1))).toHaveLength(pristine.length - 1);
    const positions = [used, used + 4, used + 11];
    for (let at = 20; at < used; at += 37) positions.push(at);
    for (const at of positions) {
      const rotten = bytes.slice();
      rotten[at]! ^= 1;
      // Not through the disk's own file, which the log has open.
      disk.poke(first, rotten);
      const entries = read(host, makeZxid(1, 0));
      expect(entries, `bit ${at}`).toBeNull();
      disk.poke(first, bytes);
    }
  });

  it('is not read when the disk fails, and may be requested again', () => {
    const host = memberWith([70]);
    for (const operation of ['open', 'read'] as const) {
      host.disk.failNext({ operation, code: 'EIO' });
      expect(read(host, makeZxid(1, 1))).toBeNull();
      expect(read(host, makeZxid(1, 1))).toHaveLength(69);
    }
    expect(host.failure).toBeNull();
  });

  it('is read correctly while the log is written, by several learners at once, whatever is purged meanwhile', () => {
    let batches = 0;
    let refusals = 0;
    for (let seed = 1; seed <= 30; seed++) {
      const dice = new Dice(seed);
      const host = new StorageHost(new MemoryDisk(), { ...MEMBER, snapCount: 30, purgeIntervalMs: 20 }, dice).recover();
      host.startAppending().storage.allowSnapshots();
      host.beginEpoch(1);
      let epoch = 1;
      const logged = new Map<number, number>();
      const learners = [0, 1, 2].map(() => ({ after: makeZxid(1, 1), isAsking: false }));
      for (let turn = 0; turn < 150; turn++) {
        if (dice.below(20) === 0) host.beginEpoch(++epoch);
        for (let i = dice.below(6); i > 0; i--) {
          const { header } = host.appendRandom(dice);
          logged.set(header.zxid, header.time);
        }
        host.storage.flush();
        for (const learner of learners) {
          if (learner.isAsking || dice.below(3) > 0) continue;
          learner.isAsking = true;
          const { after } = learner;
          const bytesMax = 1 + dice.below(3000);
          const durable = host.durable;
          host.storage.readHistory({ after, upTo: ALL, bytesMax }, (entries) => {
            learner.isAsking = false;
            if (entries === null) {
              refusals++;
              // This learner would get a snapshot, and continue after that.
              learner.after = host.database!.lastZxid;
              return;
            }
            batches++;
            let last = after;
            for (const { zxid, payload } of entries) {
              const isNext = zxid === last + 1 || (epochOf(zxid) > epochOf(last) && counterOf(zxid) === 1);
              expect(isNext, `${hexZxid(zxid)} behind ${hexZxid(last)}`).toBe(true);
              expect(getInt(payload, 20) * 2 ** 32 + (getInt(payload, 24) >>> 0)).toBe(logged.get(zxid));
              last = zxid;
            }
            expect(last).toBeLessThanOrEqual(Math.max(durable, after));
            if (after < durable) expect(last).toBeGreaterThan(after);
            learner.after = last;
          });
        }
        for (let i = dice.below(12); i > 0; i--) host.disk.deliver();
        host.clock.nowMs += 1;
        host.storage.onTick(host.clock.nowMs);
      }
      host.settle();
      expect(host.failure).toBeNull();
    }
    expect(batches).toBeGreaterThan(300);
    expect(refusals, 'refused are few').toBeLessThan(batches / 4);
  });
});

describe('the cost of a learner', () => {
  it('is the entries of the files from the one that has its zxid on, and the newest snapshot', () => {
    const { disk, storage } = memberWith([70, 3, 40]);
    const logs = disk.names(TEST_DIRECTORY).filter((name) => name.startsWith('log.'));
    const payloads = payloadsOf(disk);
    const bytesFrom = (zxid: number): number => {
      const first = Math.max(...logs.map((name) => Number.parseInt(name.slice(4), 16)).filter((name) => name <= zxid));
      const files = logs.filter((name) => Number.parseInt(name.slice(4), 16) >= first).length;
      return [...payloads].reduce((sum, [z, { length }]) => sum + (z >= first ? length + 13 : 0), 16 * files);
    };
    for (const zxid of payloads.keys()) expect(storage.logBytesAfter(zxid as Zxid)).toBe(bytesFrom(zxid));
    expect(storage.logBytesAfter(0 as Zxid)).toBe(Number.POSITIVE_INFINITY);
    expect(storage.newestSnapshotBytes).toBe(disk.peek(`${TEST_DIRECTORY}/snapshot.0`)!.length);
    disk.crash('nothing');
    const again = new StorageHost(disk, MEMBER).recover();
    for (const zxid of payloads.keys()) expect(again.storage.logBytesAfter(zxid as Zxid)).toBe(bytesFrom(zxid));
  });
});
