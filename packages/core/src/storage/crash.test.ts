import { OpCode, type Txn, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import { type AppendedTxn, Dice, databaseAt, describeDatabase, StorageHost } from '../testing/storage-host.ts';
import { MemoryDisk } from './memory-disk.ts';
import type { Survivors } from './memory-file.ts';

/** Invariants after a restart, whatever happened before it. */
function expectRecovered(host: StorageHost, history: readonly AppendedTxn[], durable: Zxid, story: string): void {
  expect(host.failure, story).toBeNull();
  const { lastZxid } = host.database!;
  expect(lastZxid, `${story}: every durable txn is there`).toBeGreaterThanOrEqual(durable);
  const expected = databaseAt(history, lastZxid, host.options);
  expect(describeDatabase(host.database!), `${story}: the history up to its last zxid, and nothing else`).toBe(
    describeDatabase(expected),
  );
  expect(host.eventsOf('digest-mismatch'), story).toEqual([]);
}

const LARGE_TXN: Txn = {
  type: OpCode.setData,
  path: '/',
  data: new Uint8Array(1_000_000).fill(1),
  version: 1,
};

const SMALL: Partial<CoreOptions> = { preallocateBytes: 8192, snapCount: 24, purgeIntervalMs: 1, purgeRetainCount: 3 };

describe('after a power cut', () => {
  it('every durable txn is there and nothing else, at whatever completion the power is cut', () => {
    const ways: [string, () => Survivors, Partial<CoreOptions>?][] = [
      ['what was not synced is lost', () => 'nothing'],
      ['all that was written is there', () => 'everything', { snapshotCompression: 'gz' }],
      ['chance decides', () => new Dice(7)],
      ['chance decides otherwise', () => new Dice(8), { snapshotCompression: 'snappy' }],
    ];
    for (const [way, survivors, options = {}] of ways) {
      for (let cutAfter = 0; ; cutAfter++) {
        const disk = new MemoryDisk();
        const host = new StorageHost(disk, { ...SMALL, ...options });
        const history: AppendedTxn[] = [];
        let delivered = 0;
        const deliver = (count: number): boolean => {
          for (let i = 0; i < count; i++) {
            if (delivered === cutAfter) return false;
            if (!disk.deliver()) return true;
            delivered++;
          }
          return true;
        };
        const isOver = ((): boolean => {
          host.storage.recover();
          while (host.database === null) if (!deliver(1)) return false;
          host.startAppending();
          const dice = new Dice(3);
          for (let turn = 0; turn < 12; turn++) {
            for (let i = dice.below(12); i >= 0; i--) history.push(host.appendRandom(dice));
            host.storage.flush();
            if (!deliver(dice.below(6))) return false;
            host.clock.nowMs += 1;
            host.storage.onTick(host.clock.nowMs);
          }
          return true;
        })();
        const { durable } = host;
        disk.crash(survivors());
        const restarted = new StorageHost(disk, SMALL).recover();
        expectRecovered(restarted, history, durable, `${way}, cut after ${cutAfter} completions`);
        if (isOver) break;
      }
    }
  });

  it('the same holds over many restarts with one directory, after power cuts, kills and stops', () => {
    for (let seed = 1; seed <= 60; seed++) {
      const dice = new Dice(seed);
      const disk = new MemoryDisk();
      let history: AppendedTxn[] = [];
      let durable = -1 as Zxid;
      for (let life = 0; life < 8; life++) {
        const story = `seed ${seed}, life ${life}`;
        const snapshotCompression = (['gz', 'snappy', null, null] as const)[(seed + life) % 4] ?? null;
        const host = new StorageHost(disk, { ...SMALL, snapshotCompression }, new Dice(seed * 100 + life)).recover();
        expectRecovered(host, history, durable, story);
        const { lastZxid } = host.database!;
        history = history.filter(({ header }) => header.zxid <= lastZxid);
        host.startAppending();
        for (let turn = dice.below(30); turn >= 0; turn--) {
          for (let i = dice.below(8); i > 0; i--) history.push(host.appendRandom(dice));
          host.storage.flush();
          for (let i = dice.below(10); i > 0; i--) disk.deliver();
          host.clock.nowMs += dice.below(400);
          host.storage.onTick(host.clock.nowMs);
        }
        const end = dice.below(4);
        if (end === 0) {
          host.storage.stop();
          disk.deliverAll();
          expect(host.isStopped, story).toBe(true);
          expect(host.durable, story).toBe(history.at(-1)?.header.zxid ?? host.durable);
        }
        durable = host.durable;
        if (end === 1) disk.kill(dice);
        else if (end > 1) disk.crash(dice);
      }
    }
  });

  it('a batch of many pages, any of which may be missing, is cut and never needs an operator', () => {
    for (let seed = 1; seed <= 200; seed++) {
      const dice = new Dice(seed);
      const disk = new MemoryDisk();
      const host = new StorageHost(disk, { preallocateBytes: 65_536 }).recover();
      host.startAppending();
      const history: AppendedTxn[] = [];
      for (let i = 0; i < 20; i++) history.push(host.appendRandom(dice));
      host.settle();
      const { durable } = host;
      for (let i = 0; i < 100; i++) history.push(host.appendRandom(dice));
      host.storage.flush();
      disk.deliver();
      disk.crash(dice);
      const restarted = new StorageHost(disk, { preallocateBytes: 65_536 }).recover();
      expectRecovered(restarted, history, durable, `seed ${seed}`);
    }
  });
});

describe('a process that is killed', () => {
  it('before its last sync leaves txns that the next process makes durable before it appends', () => {
    for (let deliveries = 0; deliveries < 12; deliveries++) {
      const disk = new MemoryDisk();
      const host = new StorageHost(disk).recover();
      host.startAppending();
      const dice = new Dice(deliveries);
      const history: AppendedTxn[] = [];
      for (let i = 0; i < 5; i++) history.push(host.appendRandom(dice));
      host.storage.flush();
      for (let i = 0; i < deliveries; i++) disk.deliver();
      disk.kill();

      const second = new StorageHost(disk).recover();
      const { lastZxid } = second.database!;
      const kept = history.filter(({ header }) => header.zxid <= lastZxid);
      second.startAppending();
      for (let i = 0; i < 5; i++) kept.push(second.appendRandom(dice));
      second.settle();
      const { durable } = second;
      expect(durable).toBe(kept.at(-1)?.header.zxid);
      disk.crash('nothing');

      const third = new StorageHost(disk).recover();
      expectRecovered(third, kept, durable, `killed after ${deliveries} completions`);
    }
  });

  it('in the middle of a write leaves a partial entry, which the next start removes', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const dice = new Dice(seed);
      const disk = new MemoryDisk();
      const host = new StorageHost(disk).recover();
      host.startAppending();
      const history: AppendedTxn[] = [];
      for (let i = 0; i < 10; i++) history.push(host.appendRandom(dice));
      host.settle();
      for (let i = 0; i < 10; i++) history.push(host.appendRandom(dice));
      host.storage.flush();
      disk.kill(dice);
      expectRecovered(new StorageHost(disk).recover(), history, host.durable, `seed ${seed}`);
    }
  });
});

describe('after a sync that failed', () => {
  it.each([
    ['short txns', null],
    // The longest that there can be: 4 MiB and a txn.
    ['a batch of 5 MB', LARGE_TXN],
  ])(
    'what the next process reads and considers durable is durable, although a sync alone would not make it so: %s',
    (_, large) => {
      const disk = new MemoryDisk();
      const host = new StorageHost(disk, SMALL).recover().startAppending();
      const dice = new Dice(11);
      const history: AppendedTxn[] = [];
      const appendSome = (): void => {
        for (let i = 0; i < 5; i++) history.push(large === null ? host.appendRandom(dice) : host.append(large));
        host.storage.flush();
        while (disk.deliver());
      };
      for (let i = 0; i < 5; i++) history.push(host.appendRandom(dice));
      host.settle();
      const { durable } = host;
      disk.failNext({ operation: 'sync', code: 'EIO' });
      appendSome();
      expect(host.failure?.message).toContain('EIO');
      expect(host.durable, 'what the sync was for is not acknowledged').toBe(durable);
      disk.kill();

      const next = new StorageHost(disk, SMALL).recover();
      const found = next.durable;
      expect(found, 'the kernel still shows what was written').toBeGreaterThan(durable);
      disk.crash('nothing');
      expectRecovered(new StorageHost(disk, SMALL).recover(), history, found, 'after the power cut');
    },
  );
});
