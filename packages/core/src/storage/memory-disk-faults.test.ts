import { describe, expect, test } from 'vitest';
import type { DiskError, DiskFile } from '../base/ports.ts';
import { MemoryDisk } from './memory-disk.ts';

/** The outcome of an effect, once it has been delivered. */
function outcomeOf(disk: MemoryDisk, ask: (done: (error: DiskError | null) => void) => void): string {
  let outcome = 'nothing';
  ask((error) => {
    outcome = error === null ? 'done' : error.code;
  });
  disk.deliverAll();
  return outcome;
}

function createFile(disk: MemoryDisk, path: string): DiskFile {
  let file: DiskFile | null = null;
  disk.makeDirectory('/d', () => {});
  disk.create(path, (_error, created) => {
    file = created;
  });
  disk.deliverAll();
  if (file === null) throw new Error(`${path} was not created`);
  return file;
}

describe('a memory disk that fails', () => {
  test('keeps failing, after a power cut too, until it is healed', () => {
    const disk = new MemoryDisk();
    createFile(disk, '/d/f');
    disk.failNext({ operation: 'sync', code: 'EIO', isLasting: true });
    for (let life = 0; life < 3; life++) {
      const file = createFile(disk, '/d/f');
      expect(outcomeOf(disk, (done) => file.sync(done))).toBe('EIO');
      disk.crash();
    }
    disk.clearFaults();
    const file = createFile(disk, '/d/f');
    expect(outcomeOf(disk, (done) => file.sync(done))).toBe('done');
  });

  test('forgets a one-time fault when the process ends', () => {
    const disk = new MemoryDisk();
    disk.failNext({ operation: 'sync', code: 'EIO' });
    disk.kill();
    const file = createFile(disk, '/d/f');
    expect(outcomeOf(disk, (done) => file.sync(done))).toBe('done');
  });

  test('accepts no writes when it is full, and still syncs, truncates and removes', () => {
    const disk = new MemoryDisk();
    const file = createFile(disk, '/d/f');
    disk.fill();
    expect(outcomeOf(disk, (done) => file.write(0, new Uint8Array(10), done))).toBe('ENOSPC');
    expect(outcomeOf(disk, (done) => file.preallocate(100, done))).toBe('ENOSPC');
    expect(outcomeOf(disk, (done) => disk.create('/d/g', (error) => done(error)))).toBe('ENOSPC');
    expect(outcomeOf(disk, (done) => file.sync(done))).toBe('done');
    expect(outcomeOf(disk, (done) => file.truncate(0, done))).toBe('done');
    expect(outcomeOf(disk, (done) => disk.remove('/d/f', done))).toBe('done');
  });

  test('returns a flipped bit, before and after a power cut', () => {
    const disk = new MemoryDisk();
    disk.poke('/d/f', new Uint8Array([0, 0, 0]));
    expect(disk.flipBit('/d/f', 1, 3)).toBe(true);
    expect(disk.peek('/d/f')).toEqual(new Uint8Array([0, 8, 0]));
    disk.crash();
    expect(disk.peek('/d/f')).toEqual(new Uint8Array([0, 8, 0]));
    expect(disk.flipBit('/d/f', 3, 0)).toBe(false);
    expect(disk.flipBit('/d/g', 0, 0)).toBe(false);
  });

  test('reports its next effect', () => {
    const disk = new MemoryDisk();
    expect(disk.nextOperation).toBeNull();
    const file = createFile(disk, '/d/f');
    file.write(0, new Uint8Array(1), () => {});
    file.sync(() => {});
    expect(disk.nextOperation).toBe('write');
    disk.deliver();
    expect(disk.nextOperation).toBe('sync');
  });
});
