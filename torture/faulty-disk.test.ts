import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DiskError, DiskFile } from '@meerkat/core';
import { MemoryDisk } from '@meerkat/core';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FaultyDisk } from './faulty-disk.ts';
import type { DiskFault } from './messages.ts';

const BYTES = Uint8Array.of(1, 2, 3);
let files: MemoryDisk;
let disk: FaultyDisk;
let results: string[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  files = new MemoryDisk();
  disk = new FaultyDisk(files, '/attic', { deliver: (event) => event(), fraction: () => 0.5 });
  results = [];
});

afterEach(() => {
  vi.useRealTimers();
});

function note(what: string): (error: DiskError | null) => void {
  return (error) => void results.push(error === null ? what : `${what}: ${error.code}`);
}

function openFile(): DiskFile {
  let file: DiskFile | null = null;
  disk.makeDirectory('/data', () => {});
  disk.create('/data/log.1', (_error, created) => {
    file = created;
  });
  files.deliverAll();
  return file!;
}

function trouble(kind: DiskFault): void {
  disk.trouble = kind;
}

describe('a disk', () => {
  it('works normally without faults', () => {
    const file = openFile();
    file.write(0, BYTES, note('write'));
    file.sync(note('sync'));
    files.deliverAll();
    expect(results).toEqual(['write', 'sync']);
    expect(files.peek('/data/log.1')).toEqual(BYTES);
  });

  it('that hangs reports nothing until it continues, and then everything in order', () => {
    const file = openFile();
    trouble({ kind: 'stall' });
    file.write(0, BYTES, note('write'));
    disk.syncDirectory('/data', note('directory'));
    files.deliverAll();
    vi.advanceTimersByTime(60_000);
    expect(results).toEqual([]);
    trouble({ kind: 'none' });
    expect(results).toEqual(['write', 'directory']);
  });

  it('that is slow reports later, without reordering', () => {
    const file = openFile();
    trouble({ kind: 'slow', maxMs: 400 });
    file.write(0, BYTES, note('write'));
    files.deliverAll();
    trouble({ kind: 'none' });
    file.sync(note('sync'));
    files.deliverAll();
    vi.advanceTimersByTime(99);
    expect(results).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(results).toEqual(['write', 'sync']);
  });

  it('that fails once skips one effect and performs the next', () => {
    const file = openFile();
    trouble({ kind: 'error', skip: 1, takesPlace: false });
    file.write(0, BYTES, note('first'));
    file.write(3, BYTES, note('second'));
    file.write(6, BYTES, note('third'));
    files.deliverAll();
    expect(results).toEqual(['first', 'second: EIO', 'third']);
    expect(files.peek('/data/log.1')).toEqual(Uint8Array.of(1, 2, 3, 0, 0, 0, 1, 2, 3));
  });

  it('may have performed an effect that it reports as failed', () => {
    const file = openFile();
    trouble({ kind: 'error', skip: 0, takesPlace: true });
    file.write(0, BYTES, note('write'));
    files.deliverAll();
    expect(results).toEqual(['write: EIO']);
    expect(files.peek('/data/log.1')).toEqual(BYTES);
  });

  it('that is full fails all writes, but still syncs and removes', () => {
    const file = openFile();
    trouble({ kind: 'full' });
    file.write(0, BYTES, note('write'));
    file.sync(note('sync'));
    disk.create('/data/more', (error) => note('create')(error));
    files.deliverAll();
    expect(results).toEqual(['write: ENOSPC', 'sync', 'create: ENOSPC']);
  });
});

it('a log that is removed or set aside is kept under a second name', () => {
  const directory = mkdtempSync(join(tmpdir(), 'meerkat-attic-'));
  try {
    const attic = join(directory, 'attic');
    const path = join(directory, 'log.5');
    writeFileSync(path, 'txns');
    const own = new FaultyDisk(files, attic, { deliver: (event) => event(), fraction: () => 0 });
    own.remove(path, () => {});
    own.remove(join(directory, 'snapshot.5'), () => {});
    own.remove(join(directory, 'log.6'), () => {});
    writeFileSync(join(directory, 'log.7'), 'txns');
    own.rename(join(directory, 'log.7'), join(directory, 'replaced-1-6-log.7'), () => {});
    own.rename(join(directory, 'acceptedEpoch.tmp'), join(directory, 'acceptedEpoch'), () => {});
    expect(existsSync(attic)).toBe(true);
    expect(readdirSync(attic).sort()).toEqual([expect.stringMatching(/^log\.5-/), expect.stringMatching(/^log\.7-/)]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
