import { OpCode, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { TraceEvent } from '../base/ports.ts';
import { type DiskOperation, MemoryDisk } from './memory-disk.ts';
import { BATCH_BYTES_MAX, TxnLog, type TxnLogOptions } from './txn-log.ts';

const DIRECTORY = '/log';
const DEFAULTS: TxnLogOptions = {
  logDirectory: DIRECTORY,
  preallocateBytes: 65_536,
  logBytesMax: -1,
  forceSync: true,
  syncWarningMs: 1000,
};

function makeLog(options: Partial<TxnLogOptions> = {}) {
  const disk = new MemoryDisk();
  disk.makeDirectory(DIRECTORY, () => {});
  disk.deliverAll();
  const trace: TraceEvent[] = [];
  const clock = { nowMs: 0, monotonicMs: () => clock.nowMs, wallMs: () => 0 };
  const durable: Zxid[] = [];
  const failures: Error[] = [];
  let isClosed = false;
  const log = new TxnLog(
    { disk, clock, trace: { emit: (event) => void trace.push(event) } },
    { ...DEFAULTS, ...options },
    {
      onSynced: (zxid) => void durable.push(zxid),
      onLogFailed: (error) => void failures.push(error),
      onLogClosed: () => {
        isClosed = true;
      },
    },
  );
  const append = (zxid: number, dataBytes = 10): void => {
    const header = { sessionId: 1n, cxid: 1, zxid: zxid as Zxid, time: 0 };
    const data = new Uint8Array(dataBytes).fill(1);
    log.append(header, { type: OpCode.setData, path: '/a', data, version: 1 }, 5n);
  };
  /** The performed operations, in order. */
  const deliver = (): DiskOperation[] => {
    const operations: DiskOperation[] = [];
    for (;;) {
      const before = new Map(disk.counts);
      if (!disk.deliver()) return operations;
      for (const [operation, count] of disk.counts) if (count !== before.get(operation)) operations.push(operation);
    }
  };
  return { disk, log, trace, clock, durable, failures, append, deliver, isClosed: () => isClosed };
}

describe('the log', () => {
  it('makes a file and its name durable before the first entry is written', () => {
    const { log, append, deliver, durable } = makeLog();
    append(1);
    log.flush();
    expect(deliver()).toEqual(['create', 'preallocate', 'write', 'sync', 'syncDirectory', 'write', 'sync']);
    expect(durable).toEqual([1]);
  });

  it('writes all txns of a turn with one write and one sync', () => {
    const { log, append, deliver, durable } = makeLog();
    append(1);
    log.flush();
    deliver();
    for (let zxid = 2; zxid <= 101; zxid++) append(zxid);
    log.flush();
    expect(deliver()).toEqual(['write', 'sync']);
    expect(durable).toEqual([1, 101]);
  });

  it('collects what is appended during a sync, and none of it is durable with that sync', () => {
    const { disk, log, append, deliver, durable } = makeLog();
    append(1);
    log.flush();
    deliver();
    append(2);
    log.flush();
    disk.deliver();
    append(3);
    log.flush();
    disk.deliver();
    expect(durable).toEqual([1, 2]);
    expect(disk.pendingCount, 'the next batch waits for the end of the turn').toBe(0);
    log.flush();
    expect(deliver()).toEqual(['write', 'sync']);
    expect(durable).toEqual([1, 2, 3]);
  });

  it('reports nothing as durable when a write has completed but its sync has not', () => {
    const { disk, log, append, deliver, durable } = makeLog();
    append(1);
    log.flush();
    deliver();
    append(2);
    log.flush();
    disk.deliver();
    expect(durable).toEqual([1]);
  });

  it('divides what waits for a slow disk into batches, so that a crash never damages more than one', () => {
    const { log, append, deliver, durable, trace } = makeLog();
    append(1);
    log.flush();
    const largeBytes = 1_000_000;
    for (let zxid = 2; zxid <= 12; zxid++) append(zxid, largeBytes);
    deliver();
    for (let turn = 0; turn < 4; turn++) {
      log.flush();
      deliver();
    }
    expect(durable.at(-1)).toBe(12);
    const sizes = trace.flatMap((event) => (event.kind === 'log-synced' ? [event.bytes] : []));
    expect(Math.max(...sizes)).toBeLessThan(BATCH_BYTES_MAX + largeBytes + 1000);
    expect(sizes.length).toBe(4);
  });

  it('begins a new file after a roll, when the old one is complete', () => {
    const { disk, log, append, deliver } = makeLog();
    append(1);
    log.roll();
    append(2);
    log.flush();
    deliver();
    log.flush();
    deliver();
    expect(disk.names(DIRECTORY)).toEqual(['log.1', 'log.2']);
  });

  it('begins a new file after the sync at which the current one has passed logBytesMax', () => {
    const { disk, log, append, deliver } = makeLog({ logBytesMax: 500 });
    for (let zxid = 1; zxid <= 20; zxid++) {
      append(zxid);
      log.flush();
      deliver();
    }
    expect(disk.names(DIRECTORY).length).toBe(4);
  });

  it('preallocates the file before the entries, even for one that is longer than the preallocation', () => {
    const { disk, log, append, deliver } = makeLog({ preallocateBytes: 8192 });
    append(1, 100_000);
    log.flush();
    deliver();
    const sizeAfterLarge = disk.peek(`${DIRECTORY}/log.1`)!.length;
    append(2);
    log.flush();
    deliver();
    expect(sizeAfterLarge).toBeGreaterThan(100_000);
    expect(disk.peek(`${DIRECTORY}/log.1`)!.length % 8192).toBe(0);
  });

  it('syncs nothing with forceSync=no, and treats a txn as durable when it is written', () => {
    const { log, append, deliver, durable } = makeLog({ forceSync: false });
    append(1);
    log.flush();
    expect(deliver()).toEqual(['create', 'preallocate', 'write', 'write']);
    expect(durable).toEqual([1]);
  });

  it('reports a sync that takes longer than the limit', () => {
    const { clock, disk, log, append, trace } = makeLog();
    append(1);
    log.flush();
    for (let i = 0; i < 6; i++) disk.deliver();
    clock.nowMs = 1500;
    disk.deliver();
    expect(trace.at(-1)).toEqual({ kind: 'warning', message: expect.stringMatching(/log\.1 took 1500 ms/) });
  });

  it('writes and syncs the rest when it is closed', () => {
    const { disk, log, append, deliver, durable, isClosed } = makeLog();
    append(1);
    log.flush();
    disk.deliver();
    append(2);
    log.close();
    expect(isClosed()).toBe(false);
    deliver();
    expect(durable).toEqual([1, 2]);
    expect(isClosed()).toBe(true);
  });
});

describe('a disk that fails', () => {
  const steps: [DiskOperation, number, RegExp][] = [
    ['create', 0, /cannot create the log file \/log\/log\.1: ENOSPC/],
    ['preallocate', 0, /cannot grow to 65552 bytes \/log\/log\.1: ENOSPC/],
    ['write', 0, /cannot write the header of \/log\/log\.1: ENOSPC/],
    ['sync', 0, /cannot sync the header of \/log\/log\.1: ENOSPC/],
    ['syncDirectory', 0, /cannot sync the directory \/log: ENOSPC/],
    ['write', 1, /cannot write \d+ bytes at 16 of \/log\/log\.1: ENOSPC/],
    ['sync', 1, /cannot sync \/log\/log\.1 after \d+ bytes at 16: ENOSPC/],
  ];

  it.each(steps)(
    'at its %s (%i done before) is reported once, and nothing is durable afterwards',
    (operation, skip, message) => {
      const { disk, log, append, deliver, durable, failures, isClosed } = makeLog();
      disk.failNext({ operation, code: 'ENOSPC', skip });
      append(1);
      log.flush();
      deliver();
      for (let zxid = 2; zxid < 6; zxid++) {
        append(zxid);
        log.flush();
        deliver();
      }
      expect(durable, 'although every later sync succeeds').toEqual([]);
      expect(failures.map((error) => error.message)).toEqual([expect.stringMatching(message)]);
      expect(failures[0]!.message).toMatch(
        /No further write is acknowledged\. Make room on the file system, then start/,
      );
      log.close();
      deliver();
      expect(isClosed()).toBe(true);
    },
  );

  it('at a later sync does not retract what was durable before', () => {
    const { disk, log, append, deliver, durable, failures } = makeLog();
    append(1);
    log.flush();
    deliver();
    append(2);
    log.flush();
    disk.failNext({ operation: 'sync', code: 'EIO' });
    append(3);
    deliver();
    log.flush();
    deliver();
    expect(durable).toEqual([1]);
    expect(failures[0]!.message).toMatch(/EIO.*The device reports errors/);
  });
});
