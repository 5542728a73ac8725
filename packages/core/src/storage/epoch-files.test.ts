import { describe, expect, it } from 'vitest';
import { EpochFiles } from './epoch-files.ts';
import { type DiskOperation, MemoryDisk } from './memory-disk.ts';

const DIRECTORY = '/data';

function emptyDisk(): MemoryDisk {
  const disk = new MemoryDisk();
  disk.makeDirectory(DIRECTORY, () => {});
  disk.deliverAll();
  return disk;
}

function read(disk: MemoryDisk): number | null | Error {
  let result: number | null | Error = null;
  new EpochFiles(disk, DIRECTORY).read('currentEpoch', (error, epoch) => {
    result = error ?? epoch;
  });
  disk.deliverAll();
  return result;
}

describe('an epoch file', () => {
  it('is decimal digits without a newline, as Apache writes it', () => {
    const disk = emptyDisk();
    expect(read(disk)).toBeNull();
    new EpochFiles(disk, DIRECTORY).write('currentEpoch', 12, () => {});
    disk.deliverAll();
    expect(new TextDecoder().decode(disk.peek('/data/currentEpoch')!)).toBe('12');
    expect(disk.names(DIRECTORY)).toEqual(['currentEpoch']);
    expect(read(disk)).toBe(12);
  });

  it('is the old one or the new one wherever the power is cut, and the new one once it is reported durable', () => {
    for (let cutAfter = 0; cutAfter < 8; cutAfter++) {
      for (const survivors of ['nothing', 'everything'] as const) {
        const disk = emptyDisk();
        new EpochFiles(disk, DIRECTORY).write('currentEpoch', 3, () => {});
        disk.deliverAll();
        let durable: number | null = null;
        new EpochFiles(disk, DIRECTORY).write('currentEpoch', 4, (_error, epoch) => {
          durable = epoch;
        });
        for (let i = 0; i < cutAfter; i++) disk.deliver();
        disk.crash(survivors);
        if (durable === 4) expect(read(disk)).toBe(4);
        else expect([3, 4]).toContain(read(disk));
      }
    }
  });

  const operations: DiskOperation[] = ['create', 'write', 'sync', 'rename', 'syncDirectory'];
  it.each(operations)('is not durable when the disk fails at its %s', (operation) => {
    const disk = emptyDisk();
    let outcome: unknown[] = [];
    disk.failNext({ operation, code: 'ENOSPC' });
    new EpochFiles(disk, DIRECTORY).write('currentEpoch', 4, (error, epoch) => {
      outcome = [error?.code, epoch];
    });
    disk.deliverAll();
    expect(outcome).toEqual(['ENOSPC', null]);
    new EpochFiles(disk, DIRECTORY).write('currentEpoch', 5, () => {});
    disk.deliverAll();
    expect(read(disk), 'what is left does not stand in the way').toBe(5);
  });

  it('with invalid content is an error that names the file', () => {
    const disk = emptyDisk();
    disk.poke('/data/currentEpoch', new TextEncoder().encode('-1'));
    expect(String(read(disk))).toMatch('/data/currentEpoch holds "-1" instead of an epoch in decimal digits');
    disk.poke('/data/currentEpoch', new TextEncoder().encode('7\n'));
    expect(read(disk)).toBe(7);
  });
});
