import { describe, expect, it } from 'vitest';
import type { DirectoryEntry, DiskFile } from '../base/ports.ts';
import { Dice } from '../testing/storage-host.ts';
import { MemoryDisk } from './memory-disk.ts';

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);

function diskWithFile(): {
  disk: MemoryDisk;
  file: DiskFile;
  errors: (string | null)[];
  note: (e: { code: string } | null) => void;
} {
  const disk = new MemoryDisk();
  let file: DiskFile | null = null;
  disk.makeDirectory('/d', () => {});
  disk.create('/d/f', (_error, created) => {
    file = created;
  });
  disk.deliverAll();
  const errors: (string | null)[] = [];
  return { disk, file: file!, errors, note: (error) => void errors.push(error === null ? null : error.code) };
}

describe('the memory disk', () => {
  it('performs effects when they are delivered, one at a time, in the order of the calls', () => {
    const { disk, file, errors, note } = diskWithFile();
    file.write(0, bytes(1, 2), note);
    file.write(2, bytes(3), note);
    expect([file.size, disk.peek('/d/f')]).toEqual([3, bytes()]);
    disk.deliver();
    expect([errors, disk.peek('/d/f')]).toEqual([[null], bytes(1, 2)]);
    disk.deliver();
    expect([errors, disk.peek('/d/f')]).toEqual([[null, null], bytes(1, 2, 3)]);
    expect(disk.deliver()).toBe(false);
  });

  it('keeps the order within an open file only, when the order is random', () => {
    const orders = new Set<string>();
    for (let seed = 1; seed <= 50; seed++) {
      const { disk, file } = diskWithFile();
      disk.order = new Dice(seed);
      const completed: string[] = [];
      for (const name of ['a', 'b', 'c']) file.write(0, bytes(1), () => void completed.push(name));
      disk.open('/d/f', { readOnly: true }, () => void completed.push('open'));
      disk.list('/d', () => void completed.push('list'));
      while (disk.nextOperation !== null) {
        const next = disk.nextOperation;
        const before = completed.length;
        disk.deliver();
        const isWrite = !['open', 'list'].includes(completed[before]!);
        expect(next).toBe(isWrite ? 'write' : completed[before]);
      }
      expect(completed.filter((name) => name.length === 1)).toEqual(['a', 'b', 'c']);
      orders.add(completed.join(' '));
    }
    expect(orders.size).toBeGreaterThan(8);
  });

  it('returns unsynced writes to the process, and loses them in a power cut', () => {
    const { disk, file, note } = diskWithFile();
    file.write(0, bytes(1, 2), note);
    file.sync(note);
    disk.syncDirectory('/d', note);
    file.write(1, bytes(9, 9), note);
    disk.deliverAll();
    disk.kill();
    expect(disk.peek('/d/f')).toEqual(bytes(1, 9, 9));
    disk.crash('nothing');
    expect(disk.peek('/d/f')).toEqual(bytes(1, 2));
  });

  it('loses a creation, a removal and a rename unless the directory was synced', () => {
    const { disk, file, note } = diskWithFile();
    file.write(0, bytes(1), note);
    file.sync(note);
    disk.deliverAll();
    disk.crash('nothing');
    expect(disk.names('/d')).toEqual([]);
    disk.poke('/d/a', bytes(1));
    disk.poke('/d/b', bytes(2));
    disk.rename('/d/a', '/d/c', note);
    disk.remove('/d/b', note);
    disk.deliverAll();
    expect(disk.names('/d')).toEqual(['c']);
    disk.crash('nothing');
    expect(disk.names('/d')).toEqual(['a', 'b']);
    disk.rename('/d/a', '/d/c', note);
    disk.syncDirectory('/d', note);
    disk.deliverAll();
    disk.crash('nothing');
    expect(disk.names('/d')).toEqual(['b', 'c']);
  });

  it('keeps random units of 512 bytes, and always the same for one seed', () => {
    const seen = new Set<string>();
    for (let seed = 0; seed < 200; seed++) {
      const { disk, file, note } = diskWithFile();
      file.preallocate(2048, note);
      file.sync(note);
      disk.syncDirectory('/d', note);
      file.write(0, new Uint8Array(2048).fill(1), note);
      disk.deliverAll();
      disk.crash(new Dice(seed));
      const left = disk.peek('/d/f')!;
      const units = [0, 512, 1024, 1536].map((at) => new Set(left.subarray(at, at + 512)));
      expect(units.every((unit) => unit.size === 1)).toBe(true);
      seen.add(units.map((unit) => [...unit][0]).join(''));
    }
    expect(seen.size).toBe(16);
  });

  it('fails on request, and a later sync does not save what a failed one lost', () => {
    const { disk, file, errors, note } = diskWithFile();
    disk.syncDirectory('/d', note);
    disk.failNext({ operation: 'sync', code: 'EIO' });
    file.write(0, bytes(1), note);
    file.sync(note);
    file.sync(note);
    disk.deliverAll();
    expect(errors).toEqual([null, null, 'EIO', null]);
    disk.crash('nothing');
    expect(disk.peek('/d/f')).toEqual(bytes(0));
  });

  it('writes a part when the disk is full', () => {
    const { disk, file, errors, note } = diskWithFile();
    disk.failNext({ operation: 'write', code: 'ENOSPC' });
    file.write(0, bytes(1, 2, 3, 4), note);
    disk.deliverAll();
    expect([errors, disk.peek('/d/f')]).toEqual([['ENOSPC'], bytes(1, 2)]);
  });

  it('reports nothing about files of a process that has ended', () => {
    const { disk, file, errors, note } = diskWithFile();
    file.write(0, bytes(1), note);
    disk.kill();
    file.write(0, bytes(2), note);
    disk.deliverAll();
    expect([errors, disk.peek('/d/f')]).toEqual([[], bytes()]);
  });

  it('reports missing, locked and read-only files', () => {
    const { disk, errors, note } = diskWithFile();
    disk.open('/d/none', { readOnly: true }, note);
    disk.remove('/d/none', note);
    disk.list('/none', note);
    disk.hold('/d', note);
    disk.hold('/d', note);
    disk.deliverAll();
    disk.release('/d');
    disk.hold('/d', note);
    disk.open('/d/f', { readOnly: true }, (_error, file) => file.write(0, bytes(1), note));
    disk.deliverAll();
    expect(errors).toEqual(['ENOENT', 'ENOENT', 'ENOENT', null, 'EBUSY', null, 'EBADF']);
  });

  it('lists names with sizes, and a grown file as zeros', () => {
    const { disk, file, note } = diskWithFile();
    let listed: readonly DirectoryEntry[] = [];
    file.preallocate(10_000, note);
    file.truncate(5000, note);
    disk.list('/d', (_error, entries) => {
      listed = entries;
    });
    disk.deliverAll();
    expect(listed).toEqual([{ name: 'f', size: 5000 }]);
    expect(disk.peek('/d/f')).toEqual(new Uint8Array(5000));
  });
});
