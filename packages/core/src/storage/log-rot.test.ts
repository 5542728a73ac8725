/**
 * Logs that are damaged after their server has ended: a start misses nothing that was acknowledged, or it is refused.
 */
import { OpCode, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import { type BuiltTxn, buildLog } from '../testing/log-builder.ts';
import { copyDisk, Dice, StorageHost, TEST_DIRECTORY } from '../testing/storage-host.ts';
import { MemoryDisk } from './memory-disk.ts';

const OPTIONS: Partial<CoreOptions> = { preallocateBytes: 16_384 };
const LOG = `${TEST_DIRECTORY}/log.1`;
const DOES_NOT_START =
  /Acknowledged txns (are|may be) damaged or missing, so this server does not start\. Restore|So acknowledged txns are missing, and this server does not start: log files were cut/;

/** A server that was killed after acknowledging each of these writes, one at a time. */
function killedServer(count: number): { readonly disk: MemoryDisk; readonly end: number } {
  const host = new StorageHost(new MemoryDisk(), OPTIONS).recover().startAppending();
  for (let i = 0; i < count; i++) {
    const data = Uint8Array.from({ length: 20 + ((i * 37) % 400) }, (_, k) => 1 + ((i + k) % 250));
    host.append({ type: OpCode.setData, path: '/zookeeper', data, version: i + 1 });
    host.settle();
  }
  expect(host.durable).toBe(count);
  host.disk.kill();
  const log = host.disk.peek(LOG)!;
  return { disk: host.disk, end: log.findLastIndex((byte) => byte !== 0) + 1 };
}

/** The same directory with a modified log. */
function withLog(disk: MemoryDisk, change: (log: Uint8Array) => Uint8Array): MemoryDisk {
  const copy = copyDisk(disk);
  copy.poke(LOG, change(copy.peek(LOG)!.slice()));
  return copy;
}

function zeroed(disk: MemoryDisk, position: number, bytes: number): MemoryDisk {
  return withLog(disk, (log) => log.fill(0, position, position + bytes));
}

function start(disk: MemoryDisk): StorageHost {
  return new StorageHost(disk, OPTIONS).recover();
}

function contentsOf(disk: MemoryDisk): string[] {
  return disk.names(TEST_DIRECTORY).map((name) => `${name} ${disk.peek(`${TEST_DIRECTORY}/${name}`)!.join()}`);
}

describe('the log of a server that was killed', () => {
  const COUNT = 60;
  const { disk, end } = killedServer(COUNT);

  it.each([512, 4096])('with a block of %i zero bytes somewhere stops the start, and nothing is touched', (bytes) => {
    let refusals = 0;
    for (let position = 0; position < end; position += bytes) {
      const damaged = zeroed(disk, position, bytes);
      const before = contentsOf(damaged);
      const host = start(damaged);
      expect(host.failure?.message, `zeros at ${position}`).toMatch(DOES_NOT_START);
      expect(host.failure?.message).toMatch(/^\/data\/version-2\/log\.1 at position \d+: /);
      expect(contentsOf(damaged), `zeros at ${position}`).toEqual(before);
      refusals++;
    }
    expect(refusals).toBe(Math.ceil(end / bytes));
  });

  it('reports where, what is missing and what is whole after it, and advises no cut that would remove that', () => {
    const { message } = start(zeroed(disk, 4096, 512)).failure!;
    expect(message).toMatch(
      /an entry lacks the bytes from 4096 on\. The log before ends with zxid 0x\w+, and this server had acknowledged everything up to 0x3c\. Behind it \d+ txns are whole, 0x\w+ to 0x3c, from position \d+ on\./,
    );
    expect(message).toMatch('Acknowledged txns are damaged or missing');
    expect(message).not.toMatch('truncate');
    expect(message).toMatch('docs/storage.md, "When a start is refused"');
    const { message: ofTheLast } = start(zeroed(disk, end - 20, 512)).failure!;
    expect(ofTheLast).toMatch(/truncate -s \d+ \/data\/version-2\/log\.1; remove the file durableZxid/);
  });

  it('whose first block is gone stops the start, and the file is kept', () => {
    for (const bytes of [16, 512, 4096, end, 16_384]) {
      const damaged = zeroed(disk, 0, bytes);
      expect(start(damaged).failure?.message).toMatch('its header is missing, which is durable before anything else');
      expect(damaged.peek(LOG)).not.toBeNull();
    }
  });

  it('stops the start wherever the file ends too early, and is recovered when everything is there', () => {
    for (let size = 0; size < end; size += 61) {
      const host = start(withLog(disk, (log) => log.slice(0, size)));
      expect(host.failure?.message, `cut at ${size}`).toMatch(DOES_NOT_START);
    }
    expect(start(withLog(disk, (log) => log.slice(0, end))).failure).toBeNull();
  });

  it('stops the start when the file, or all logs and snapshots, are missing', () => {
    const without = (isGone: (name: string) => boolean): StorageHost => {
      const copy = new MemoryDisk();
      for (const name of disk.names(TEST_DIRECTORY)) {
        if (!isGone(name)) copy.poke(`${TEST_DIRECTORY}/${name}`, disk.peek(`${TEST_DIRECTORY}/${name}`)!);
      }
      return start(copy);
    };
    for (const host of [without((name) => name === 'log.1'), without((name) => /^(log|snapshot)/.test(name))]) {
      expect(host.failure?.message).toMatch(
        /the log in \/data\/version-2 ends with zxid 0x0, and this server had acknowledged everything up to 0x3c\. .* if the log is as it should be, remove the file durableZxid/,
      );
    }
  });

  it('may be cut on purpose: without the mark the start succeeds', () => {
    const host = start(zeroed(disk, end - 20, 512));
    const position = Number(/truncate -s (\d+)/.exec(host.failure!.message)![1]);
    const cut = withLog(disk, (log) => log.slice(0, position));
    expect(start(copyDisk(cut)).failure?.message).toMatch(
      /^\/data\/version-2\/log\.1 at position \d+: the log ends here, with zxid 0x3b, and this server had acknowledged everything up to 0x3c\. So acknowledged txns are missing, .* a copy made while the server was running\. .* if the log is as it should be, remove the file durableZxid/,
    );
    cut.remove(`${TEST_DIRECTORY}/durableZxid`, () => {});
    cut.deliverAll();
    expect(start(cut).database?.lastZxid).toBe(COUNT - 1);
  });

  it('with any blocks zeroed, doubled or changed: nothing acknowledged is missing, or the start is refused', () => {
    const dice = new Dice(11);
    let starts = 0;
    for (let round = 0; round < 400; round++) {
      const damaged = withLog(disk, (log) => {
        for (let n = 1 + dice.below(3); n > 0; n--) {
          const unit = dice.below(2) === 0 ? 512 : 4096;
          const at = dice.below(Math.ceil(log.length / unit)) * unit;
          const way = dice.below(4);
          if (way === 0) log.fill(0, at, at + unit);
          else if (way === 1) log.copyWithin(at, dice.below(log.length / unit) * unit, log.length);
          else if (way === 2) log[dice.below(end)]! ^= 1 << dice.below(8);
          else log.fill(dice.below(256), at, at + dice.below(40));
        }
        return log;
      });
      const host = start(damaged);
      if (host.failure !== null) continue;
      starts++;
      expect(host.database!.lastZxid, `round ${round}`).toBe(COUNT);
      expect(host.eventsOf('digest-mismatch')).toEqual([]);
    }
    expect(starts).toBeGreaterThan(5);
  });
});

describe('a write torn by a crash of the machine', () => {
  it('is cut although its txns are hours apart, and a copy is kept; what was acknowledged is there', () => {
    for (let seed = 1; seed <= 60; seed++) {
      const dice = new Dice(seed);
      const host = new StorageHost(new MemoryDisk(), OPTIONS).recover().startAppending();
      for (let i = 0; i < 10; i++) host.appendRandom(dice);
      host.settle();
      host.clock.nowMs += 1000;
      host.storage.onTick(host.clock.nowMs);
      host.settle();
      const log = host.disk.peek(LOG)!.slice();
      for (let i = 0; i < 80; i++) host.appendRandom(dice);
      host.storage.flush();
      host.disk.deliver();
      const written = host.disk.peek(LOG)!.slice();
      host.disk.crash(dice);
      const torn = host.disk.peek(LOG)!.slice();
      const again = start(host.disk);
      expect(again.failure, `seed ${seed}`).toBeNull();
      expect(again.database!.lastZxid).toBeGreaterThanOrEqual(10);
      for (const { kept, position } of again.eventsOf('log-tail-cut')) {
        const bytes = host.disk.peek(`${TEST_DIRECTORY}/${kept}`)!;
        expect(bytes, `seed ${seed}`).toEqual(torn.slice(position, position + bytes.length));
        expect(torn.subarray(position + bytes.length).every((byte) => byte === 0)).toBe(true);
      }
      expect(log.length).toBeLessThanOrEqual(written.length);
    }
  });

  it('is not cut while there is no room for a copy', () => {
    const { disk } = killedServer(10);
    const end = disk.peek(LOG)!.findLastIndex((byte) => byte !== 0) + 1;
    const torn = withLog(disk, (log) => log.fill(0x01, end + 4, end + 20));
    torn.failNext({ operation: 'write', code: 'ENOSPC', path: 'replaced-' });
    const before = contentsOf(torn);
    const host = start(torn);
    expect(host.failure?.message).toBe(
      `the log cannot be read and synced: cannot keep what a crash has torn at position ${end} of ${LOG}: ENOSPC`,
    );
    expect(contentsOf(torn)).toEqual(before);
    expect(start(torn).durable).toBe(10);
  });
});

describe('a log that was written without forceSync', () => {
  const unsynced = { ...OPTIONS, forceSync: false };

  function unsyncedServer(): MemoryDisk {
    const host = new StorageHost(new MemoryDisk(), unsynced).recover().startAppending();
    for (let i = 0; i < 60; i++) {
      host.append({ type: OpCode.setData, path: '/zookeeper', data: new Uint8Array(200).fill(7), version: i + 1 });
      host.settle();
    }
    host.disk.kill();
    return host.disk;
  }

  it('is cut at a hole, however much follows it: a crash of the machine may omit anything', () => {
    const disk = zeroed(unsyncedServer(), 2048, 512);
    const host = new StorageHost(disk, unsynced).recover();
    expect(host.failure).toBeNull();
    expect(host.eventsOf('log-tail-cut')).toMatchObject([
      { kept: expect.stringMatching(/^replaced-1-\w+-log\.1-from-/) },
    ]);
  });

  it('is set aside when its header is missing', () => {
    const disk = zeroed(unsyncedServer(), 0, 512);
    const content = disk.peek(LOG)!;
    const host = new StorageHost(disk, unsynced).recover();
    expect(host).toMatchObject({ failure: null, durable: 0 });
    expect(host.eventsOf('log-tail-cut')).toMatchObject([{ position: 0, kept: 'replaced-1-0-log.1' }]);
    expect(disk.peek(`${TEST_DIRECTORY}/replaced-1-0-log.1`)).toEqual(content);
    expect(disk.peek(LOG)).toBeNull();
  });
});

describe('a log without a mark, as Apache’s server leaves it', () => {
  const ENTRY_BYTES = 13 + 36;

  function diskWith(txns: readonly BuiltTxn[], change: (log: Uint8Array) => void): MemoryDisk {
    const disk = new MemoryDisk();
    const empty = new StorageHost(new MemoryDisk()).recover();
    disk.poke(`${TEST_DIRECTORY}/snapshot.0`, empty.disk.peek(`${TEST_DIRECTORY}/snapshot.0`)!);
    const log = buildLog({ txns, size: 200_000 });
    change(log);
    disk.poke(LOG, log);
    return disk;
  }

  const txnsEvery = (ms: number, count = 100): BuiltTxn[] =>
    Array.from({ length: count }, (_, i) => ({ zxid: i + 1, time: 1_700_000_000_000 + i * ms }));

  it('with a hole followed by whole txns that are seconds younger stops the start', () => {
    for (const bytes of [512, 4096]) {
      const host = start(diskWith(txnsEvery(250), (log) => log.fill(0, 512, 512 + bytes)));
      expect(host.failure?.message).toMatch(/the whole txns after it were made up to \d+\.\d s later/);
      expect(host.failure?.message).toMatch(DOES_NOT_START);
    }
  });

  it('counts from the torn entry, when its head is there, and not from an idle period before it', () => {
    // An entry whose head is in one unit, and its last bytes in the next.
    const torn = Array.from({ length: 500 }, (_, i) => i).find((i) => (16 + i * ENTRY_BYTES) % 512 === 464)!;
    const hole = Math.ceil((16 + torn * ENTRY_BYTES) / 512) * 512;
    const startWith = (jumpAt: number): StorageHost => {
      const txns = txnsEvery(0, 600).map(({ zxid, time }, i) => ({ zxid, time: time! + (i >= jumpAt ? 9000 : 0) }));
      return start(diskWith(txns, (log) => log.fill(0, hole, hole + 512)));
    };
    expect(startWith(torn).database?.lastZxid).toBe(torn);
    expect(startWith(torn + 1).failure?.message).toMatch('and the whole txns after it were made up to 9.0 s later');
    expect(startWith(torn + 30).failure?.message).toMatch('and the whole txns after it were made up to 9.0 s later');
  });

  it('with a hole followed by more txns than the server writes without a sync stops the start', () => {
    const host = start(diskWith(txnsEvery(0, 2000), (log) => log.fill(0, 1024, 1536)));
    expect(host.failure?.message).toMatch('more whole txns follow than Apache’s servers write without a sync');
  });

  it('with a hole that one write can leave is cut, and a copy is kept', () => {
    const disk = diskWith(txnsEvery(1), (log) => log.fill(0, 1024, 1536));
    const host = start(disk);
    expect(host.failure).toBeNull();
    const last = Math.floor((1024 - 16) / ENTRY_BYTES);
    expect(host.database!.lastZxid).toBe(last);
    const [cut] = host.eventsOf('log-tail-cut');
    expect(cut).toMatchObject({
      position: 16 + last * ENTRY_BYTES,
      kept: `replaced-1-${last.toString(16)}-log.1-from-${16 + last * ENTRY_BYTES}`,
    });
    expect(cut!.reason).toMatch(
      /lacks the bytes from 1024 on; of the same write \d+ txns are whole, the last one zxid 0x64/,
    );
    expect(disk.peek(`${TEST_DIRECTORY}/${cut!.kept}`)).toHaveLength((100 - last) * ENTRY_BYTES);
  });

  it('whose first block is gone stops the start when anything follows, and is removed when nothing does', () => {
    expect(start(diskWith(txnsEvery(1), (log) => log.fill(0, 0, 512))).failure?.message).toMatch(
      /log\.1 at position 0: its header is missing, .*txns are whole/,
    );
    const disk = diskWith(txnsEvery(1), (log) => log.fill(0));
    expect(start(disk).failure).toBeNull();
    expect(disk.names(TEST_DIRECTORY)).not.toContain('log.1');
  });

  it('torn inside the history, with whole txns after it, does not hide missing txns behind a new epoch', () => {
    const next = 2 ** 32 + 1;
    for (const [hole, isRefused] of [
      [512, true],
      [100 * ENTRY_BYTES - 40, false],
    ] as const) {
      const disk = diskWith(txnsEvery(1), (log) => log.fill(0, hole, hole + 512));
      disk.poke(`${TEST_DIRECTORY}/log.${next.toString(16)}`, buildLog({ txns: [next] }));
      const host = start(disk);
      expect(host.failure !== null, `hole at ${hole}`).toBe(isRefused);
      if (isRefused)
        expect(host.failure!.message).toMatch(
          /epoch 1 begins here.*The previous file is damaged: .*log\.1 at position/,
        );
      else expect(host.database!.lastZxid).toBe(next as Zxid);
    }
  });
});
