import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { holdDirectory } from '../node/hold.ts';
import {
  type ArchiveFiles,
  Backup,
  type BackupOptions,
  type BackupState,
  DirectoryFiles,
  isPassing,
  type LogEntry,
  openFile,
  rebuild,
  repairLogFile,
  restore,
  scanLog,
} from './index.ts';

const FIXTURES = fileURLToPath(new URL('../../../core/src/storage/fixtures/', import.meta.url));
/** log.1 (1 … b), log.c (c … 19), snapshot.0, snapshot.a. */
const APACHE = join(FIXTURES, 'apache-3.8.0');

let root: string;
let source: string;
let target: string;
let notes: string[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'backup-'));
  source = join(root, 'source', 'version-2');
  target = join(root, 'backup');
  mkdirSync(source, { recursive: true });
  notes = [];
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function options(more: Partial<BackupOptions> = {}): BackupOptions {
  const note = (text: string): void => void notes.push(text);
  return { snapshotEveryMs: 0, keepCount: null, keepMs: null, onWarning: note, onNotice: () => {}, ...more };
}

/** One run of the command. */
async function run(more: Partial<BackupOptions> = {}): Promise<BackupState> {
  const backup = await Backup.open(target, options(more));
  try {
    return await backup.catchUp(await DirectoryFiles.open(source, null));
  } finally {
    await backup.close();
  }
}

/** Files of which it is known which are open; each fault fails one read. */
function countingFiles(real: ArchiveFiles): { files: ArchiveFiles; open: Set<object>; faults: Error[] } {
  const open = new Set<object>();
  const faults: Error[] = [];
  const files: ArchiveFiles = {
    place: real.place,
    list: () => real.list(),
    pathOf: (name) => real.pathOf(name),
    close: () => real.close(),
    open: async (name) => {
      const file = await real.open(name);
      const close = (): Promise<void> => {
        open.delete(file);
        return file.close();
      };
      open.add(file);
      return {
        path: file.path,
        read: (position, length) => {
          const fault = faults.shift();
          return fault === undefined ? file.read(position, length) : Promise.reject(fault);
        },
        close,
        [Symbol.asyncDispose]: close,
      };
    },
  };
  return { files, open, faults };
}

async function digestAt(directory: string, zxid: number | null): Promise<bigint> {
  const { database } = await rebuild(await DirectoryFiles.open(directory, null), { target: zxid as never });
  return database.tree.treeDigest();
}

async function entriesOf(path: string): Promise<readonly Pick<LogEntry, 'zxid' | 'position' | 'end'>[]> {
  const file = await openFile(path);
  const entries: Pick<LogEntry, 'zxid' | 'position' | 'end'>[] = [];
  await scanLog(file, {
    onEntry: ({ zxid, position, end }) => entries.push({ zxid, position, end }) > 0,
  });
  await file.close();
  return entries;
}

/** The first entries of a log, and room that was grown ahead. */
async function copyUpTo(name: string, zxid: number): Promise<void> {
  const end = (await entriesOf(join(APACHE, name))).find((entry) => entry.zxid === zxid)?.end ?? 16;
  writeFileSync(
    join(source, name),
    Buffer.concat([readFileSync(join(APACHE, name)).subarray(0, end), Buffer.alloc(4096)]),
  );
}

describe('a backup', () => {
  test('follows a log that grows and rolls, and has every zxid of it', async () => {
    copyFileSync(join(APACHE, 'snapshot.0'), join(source, 'snapshot.0'));
    await copyUpTo('log.1', 4);
    const backup = await Backup.open(target, options());
    const files = await DirectoryFiles.open(source, null);
    expect((await backup.catchUp(files)).zxid).toBe(4);
    await copyUpTo('log.1', 9);
    expect((await backup.catchUp(files)).zxid).toBe(9);
    await copyUpTo('log.1', 0xb);
    copyFileSync(join(APACHE, 'snapshot.a'), join(source, 'snapshot.a'));
    await copyUpTo('log.c', 0xf);
    expect((await backup.catchUp(files)).zxid).toBe(0xf);
    await copyUpTo('log.c', 0x19);
    expect((await backup.catchUp(files)).zxid).toBe(0x19);
    expect((await backup.catchUp(files)).zxid).toBe(0x19);
    await backup.close();
    for (let zxid = 1; zxid <= 0x19; zxid++) expect(await digestAt(target, zxid)).toBe(await digestAt(APACHE, zxid));
    expect(notes).toEqual([]);
  });

  test('leaves no file of the server open when it cannot read', async () => {
    copyFileSync(join(APACHE, 'snapshot.0'), join(source, 'snapshot.0'));
    await copyUpTo('log.1', 4);
    const backup = await Backup.open(target, options());
    const { files, open, faults } = countingFiles(await DirectoryFiles.open(source, null));
    await backup.catchUp(files);
    for (let round = 0; round < 3; round++) {
      await copyUpTo('log.1', 5 + round);
      faults.push(new Error('damaged'));
      await expect(backup.catchUp(files)).rejects.toThrow('damaged');
      expect(open.size).toBe(0);
    }
    expect((await backup.catchUp(files)).zxid).toBe(7);
    await backup.close();
    expect(open.size).toBe(0);
  });

  test('copies a batch again that could not be written', async () => {
    copyFileSync(join(APACHE, 'snapshot.0'), join(source, 'snapshot.0'));
    copyFileSync(join(APACHE, 'log.1'), join(source, 'log.1'));
    const backup = await Backup.open(target, options());
    const files = await DirectoryFiles.open(source, null);
    const inTheWay = join(target, 'version-2', 'log.1');
    mkdirSync(inTheWay);
    await expect(backup.catchUp(files)).rejects.toThrow(`cannot begin ${inTheWay}`);
    rmSync(inTheWay, { recursive: true });
    expect((await backup.catchUp(files)).zxid).toBe(0xb);
    await backup.close();
    expect((await entriesOf(inTheWay)).map(({ zxid }) => zxid)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 0xa, 0xb]);
  });

  test('whose directory is gone says so, and that does not pass', async () => {
    cpSync(APACHE, source, { recursive: true });
    const backup = await Backup.open(target, options());
    const files = await DirectoryFiles.open(source, null);
    await backup.catchUp(files);
    rmSync(join(target, 'version-2'), { recursive: true });
    const failure = await backup.catchUp(files).catch((error: unknown) => error);
    expect(failure).toMatchObject({ fault: 'disk', message: expect.stringContaining('was removed, or its disk') });
    expect(isPassing(failure)).toBe(false);
    await backup.close();
  });

  test('killed at any position of its log resumes without loss', async () => {
    cpSync(APACHE, source, { recursive: true });
    await run();
    const whole = await digestAt(APACHE, null);
    const log = join(target, 'version-2', 'log.b');
    const written = readFileSync(log);
    for (let length = 0; length < written.length; length += 37) {
      writeFileSync(log, written.subarray(0, length));
      // What a batch leaves that was cut by the end of the machine.
      if (length % 2 === 0) truncateSync(log, length + 512);
      expect((await run()).zxid).toBe(0x19);
      expect(await digestAt(target, null)).toBe(whole);
    }
    expect(notes).toEqual([]);
  });

  test('whose first snapshot is not complete has none under its name', async () => {
    cpSync(APACHE, source, { recursive: true });
    const backup = await Backup.open(target, options());
    const files = await DirectoryFiles.open(source, null);
    const controller = new AbortController();
    const interrupted: ArchiveFiles = {
      place: files.place,
      list: () => files.list(),
      pathOf: (name) => files.pathOf(name),
      close: () => files.close(),
      open: (name) => {
        if (name.startsWith('log.')) controller.abort();
        return files.open(name);
      },
    };
    await expect(backup.catchUp(interrupted, controller.signal)).rejects.toThrow();
    await backup.close();
    expect(readdirSync(join(target, 'version-2'))).toEqual(['unfinished-snapshot.a']);
    expect((await run()).zxid).toBe(0x19);
    expect(readdirSync(join(target, 'version-2')).toSorted()).toEqual(['log.b', 'snapshot.a']);
  });

  test('is written by one process at a time', async () => {
    cpSync(APACHE, source, { recursive: true });
    const backup = await Backup.open(target, options());
    await expect(Backup.open(target, options())).rejects.toThrow('is in use: another backup writes it');
    await backup.close();
  });

  test('takes over what the server has replaced, and keeps what it had', async () => {
    cpSync(APACHE, source, { recursive: true });
    rmSync(join(source, 'snapshot.a'));
    await copyUpTo('log.c', 0x10);
    const backup = await Backup.open(target, options());
    const files = await DirectoryFiles.open(source, null);
    await backup.catchUp(files);
    // Another leader: 0xf and 0x10 were never committed, and are others now.
    const log = join(source, 'log.c');
    const entries = await entriesOf(log);
    const bytes = readFileSync(log);
    for (const { end } of entries.slice(-2)) bytes[end - 18]! ^= 1;
    writeFileSync(log, bytes);
    await repairLogFile(log, { recomputes: true, isDryRun: false });
    expect((await backup.catchUp(files)).zxid).toBe(0x10);
    await backup.close();
    expect(notes).toEqual([expect.stringContaining('has replaced what was not committed behind zxid 0xe')]);
    const kept = readdirSync(join(target, 'version-2')).filter((name) => name.startsWith('replaced-1-'));
    expect(kept).toHaveLength(1);
    expect((await entriesOf(join(target, 'version-2', kept[0] ?? ''))).at(-1)?.zxid).toBe(0x10);
    const own = (await entriesOf(join(target, 'version-2', 'log.f'))).map(({ zxid }) => zxid);
    expect(own).toEqual([0xf, 0x10]);
  });

  test('resumes after the next snapshot when the server has purged the txns before it', async () => {
    copyFileSync(join(APACHE, 'snapshot.0'), join(source, 'snapshot.0'));
    await copyUpTo('log.1', 5);
    await run();
    rmSync(source, { recursive: true });
    await restore(await DirectoryFiles.open(APACHE, null), join(root, 'source'), { target: 0xb as never });
    copyFileSync(join(APACHE, 'log.c'), join(source, 'log.c'));
    expect((await run()).zxid).toBe(0x19);
    expect(notes.join()).toContain('states between zxid 0x5 and that one cannot be had');
    expect(await digestAt(target, 4)).toBe(await digestAt(APACHE, 4));
    expect(await digestAt(target, 0x10)).toBe(await digestAt(APACHE, 0x10));
    await expect(digestAt(target, 8)).rejects.toThrow();
  });

  test('refuses the files of another service', async () => {
    cpSync(APACHE, source, { recursive: true });
    await run();
    rmSync(source, { recursive: true });
    cpSync(join(FIXTURES, 'apache-3.8.0-holes'), source, { recursive: true });
    const log = readFileSync(join(source, 'log.1'));
    await expect(run()).rejects.toThrow('is not that of the backup');
    expect(readFileSync(join(source, 'log.1'))).toEqual(log);
    expect(await digestAt(target, null)).toBe(await digestAt(APACHE, null));
  });

  test('keeps as many snapshots as it is told, with the log behind the oldest', async () => {
    cpSync(APACHE, source, { recursive: true });
    rmSync(join(source, 'snapshot.a'));
    await run({ keepCount: 1 });
    copyFileSync(join(APACHE, 'snapshot.a'), join(source, 'snapshot.a'));
    const { snapshots } = await run({ keepCount: 1 });
    expect(snapshots.map(({ name }) => name)).toEqual(['snapshot.a']);
    expect(await digestAt(target, 0xc)).toBe(await digestAt(APACHE, 0xc));
  });

  test('passes over a damaged snapshot and garbage, and takes what is good', async () => {
    cpSync(APACHE, source, { recursive: true });
    writeFileSync(join(source, 'snapshot.a'), 'nonsense');
    writeFileSync(join(source, 'snapshot.ff.gz'), 'nonsense');
    writeFileSync(join(source, 'log.zz'), 'nonsense');
    expect((await run()).snapshots.map(({ name }) => name)).toEqual(['snapshot.0']);
    expect(notes.some((note) => note.includes('snapshot.a'))).toBe(true);
    expect(await digestAt(target, null)).toBe(await digestAt(APACHE, null));
  });
});

describe('a restored directory', () => {
  test('has one snapshot, of exactly the zxid, and takes nothing over what is there', async () => {
    const files = await DirectoryFiles.open(APACHE, null);
    const { path, isVerified, zxid } = await restore(files, target, { target: 0xf as never });
    expect({ isVerified, zxid }).toEqual({ isVerified: true, zxid: 0xf });
    expect(path).toBe(join(target, 'version-2', 'snapshot.f'));
    expect(readdirSync(join(target, 'version-2'))).toEqual(['snapshot.f']);
    expect(await digestAt(target, null)).toBe(await digestAt(APACHE, 0xf));
    await expect(restore(files, target, { target: null })).rejects.toThrow('has snapshot.f already');
  });

  test('is not one in use: of a server that was started there, or of another restore', async () => {
    const below = join(target, 'version-2');
    mkdirSync(below, { recursive: true });
    const hold = await holdDirectory(below);
    const files = await DirectoryFiles.open(APACHE, null);
    await expect(restore(files, target, { target: null })).rejects.toThrow(/is in use: .*holding process/);
    hold.release();
    // A server that comes while a restore reads what may take minutes.
    let late: unknown = null;
    await restore(files, target, {
      target: null,
      onProgress: () => {
        late ??= holdDirectory(below).then(() => 'held', String);
      },
    });
    expect(await late).toMatch(/held by another server/);
  });
});
