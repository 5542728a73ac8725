import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DiskDone, DiskError, DiskFile } from '@meerkat/core';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { NODE_CLOCK } from './clock.ts';
import { NodeDisk } from './disk.ts';
import { Turn } from './turn.ts';

const directories: string[] = [];
let directory = '';
let turn: Turn;
let disk: NodeDisk;
let turnEnds = 0;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-disk-'));
  directories.push(directory);
  turn = new Turn(NODE_CLOCK, (error) => {
    throw error;
  });
  disk = new NodeDisk(turn);
  turnEnds = 0;
  const core = { onTurnEnd: () => turnEnds++, nextDeadlineMs: () => Number.POSITIVE_INFINITY, onTick() {} };
  turn.start(core, disk);
});

afterEach(async () => {
  await disk.abandon();
  turn.stop();
  for (const path of directories.splice(0)) rmSync(path, { recursive: true, force: true });
});

/** Turns the completion of one effect into a promise. */
function completion<T>(effect: (done: DiskDone<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => effect((error, value) => (error === null ? resolve(value) : reject(error))));
}

function create(name: string): Promise<DiskFile> {
  return completion((done) => disk.create(join(directory, name), done));
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('a file', () => {
  test('effects take place in the order in which they were asked for', async () => {
    const file = await create('log');
    const order: string[] = [];
    const note = (what: string) => (error: DiskError | null) =>
      order.push(error === null ? what : `${what} ${error.code}`);
    file.write(0, bytes('hello world'), note('write'));
    file.write(6, bytes('there'), note('write again'));
    file.truncate(9, note('truncate'));
    file.preallocate(12, note('preallocate'));
    expect(file.size).toBe(12);
    file.sync(note('sync'));
    const content = await completion<Uint8Array>((done) => file.read(0, 100, done));
    expect(order).toEqual(['write', 'write again', 'truncate', 'preallocate', 'sync']);
    expect(Buffer.from(content).toString()).toBe('hello the\0\0\0');
    file.close();
  });

  test('a note is with the kernel at once, but not before writes that were asked for; only a failure is told', async () => {
    const file = await create('mark');
    const content = (): string => readFileSync(join(directory, 'mark'), 'utf8');
    const calls: string[] = [];
    const note = (text: string): void => {
      const copied = bytes(text);
      file.note(0, copied, ({ code }) => calls.push(code));
      copied.fill(0);
    };
    note('one');
    expect(content()).toBe('one');
    expect(file.size).toBe(3);
    const synced = completion<void>((done) => file.sync(done));
    note('two');
    expect(content()).toBe('two');
    await synced;
    file.write(0, bytes('thr'), () => calls.push('three'));
    note('four');
    await completion<void>((done) => file.sync(done));
    expect(content()).toBe('four');
    expect(calls).toEqual(['three']);
    file.close();
    const sealed = await completion<DiskFile>((done) => disk.open(join(directory, 'mark'), { readOnly: true }, done));
    const failure = await new Promise<DiskError>((resolve) => sealed.note(0, bytes('five'), resolve));
    expect(failure).toMatchObject({ code: 'EBADF', path: join(directory, 'mark') });
    sealed.close();
  });

  test('no completion arrives before its effect has returned, and each one is followed by the end of a turn', async () => {
    const file = await create('log');
    let isInside = true;
    const done = completion<void>((completed) =>
      file.write(0, bytes('x'), (error, value) => {
        expect(isInside).toBe(false);
        completed(error, value);
      }),
    );
    isInside = false;
    await done;
    const before = turnEnds;
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(turnEnds).toBeGreaterThan(before);
  });

  test('a large write and a read beyond the end are completed', async () => {
    const file = await create('large');
    const content = new Uint8Array(9_000_000).map((_, i) => i * 7);
    await completion<void>((done) => file.write(0, content, done));
    expect(Buffer.compare(readFileSync(file.path), content)).toBe(0);
    const tail = await completion<Uint8Array>((done) => file.read(8_999_990, 100, done));
    expect(Buffer.compare(tail, content.subarray(8_999_990))).toBe(0);
    expect(await completion<Uint8Array>((done) => file.read(10_000_000, 5, done))).toHaveLength(0);
  });

  test('reads are told in order, and fill the room that they are given', async () => {
    const file = await create('read');
    await completion<void>((done) => file.write(0, bytes('abcdefgh'), done));
    const room = new Uint8Array(3);
    const calls: string[] = [];
    const note = (_error: DiskError | null, content: Uint8Array) => calls.push(Buffer.from(content).toString());
    file.read(0, 3, note, room);
    file.read(3, 3, note);
    const last = await completion<Uint8Array>((done) => file.read(6, 3, done));
    expect([...calls, Buffer.from(last).toString()]).toEqual(['abc', 'def', 'gh']);
    expect(Buffer.from(room).toString()).toBe('abc');
  });

  test('a lone small write and its sync are done at the end of the turn, once syncs are known to be quick', async () => {
    const file = await create('log');
    disk.pace.onSynced(0.1, false);
    const order: string[] = [];
    file.write(0, bytes('lone'), () => order.push('written'));
    file.sync(() => order.push('synced'));
    // The check phase that follows is the end of this turn.
    await new Promise((resolve) => setImmediate(resolve));
    expect(order).toEqual(['written', 'synced']);
    expect(readFileSync(file.path, 'utf8')).toBe('lone');
  });

  test('what the completions of a lone write ask for takes place, too', async () => {
    const file = await create('log');
    disk.pace.onSynced(0.1, false);
    const order: string[] = [];
    file.write(0, bytes('lone'), () => order.push('written'));
    file.sync(() => {
      order.push('synced');
      file.preallocate(16, () => order.push('grown'));
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(order).toEqual(['written', 'synced']);
    await expect.poll(() => order).toEqual(['written', 'synced', 'grown']);
    expect(readFileSync(file.path)).toHaveLength(16);
  });

  test('a slow disk, two files or a large write go through the thread pool', async () => {
    const file = await create('log');
    const other = await create('other');
    const order: string[] = [];
    disk.pace.onSynced(5, false);
    file.write(0, bytes('slow'), () => {});
    file.sync(() => order.push('slow'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(order).toEqual([]);
    await completion<void>((done) => file.sync(done));
    expect(order).toEqual(['slow']);

    for (let i = 0; i < 100; i++) disk.pace.onSynced(0.01, false);
    expect(disk.pace.isQuick).toBe(true);
    file.write(0, bytes('two'), () => {});
    file.sync(() => order.push('first of two'));
    other.write(0, bytes('two'), () => {});
    await new Promise((resolve) => setImmediate(resolve));
    expect(order).toEqual(['slow']);
    await completion<void>((done) => file.sync(done));

    file.write(0, new Uint8Array(17 * 1024), () => {});
    const large = completion<void>((done) => file.sync(done));
    let isSynced = false;
    void large.then(() => {
      isSynced = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isSynced).toBe(false);
    await large;
  });

  test('in a turn with many events it goes through the thread pool: others would wait', async () => {
    const file = await create('log');
    disk.pace.onSynced(0.1, false);
    let isSynced = false;
    for (let i = 0; i < 10; i++) turn.mark();
    file.write(0, bytes('one of many'), () => {});
    const synced = completion<void>((done) => file.sync(done));
    void synced.then(() => {
      isSynced = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isSynced).toBe(false);
    await synced;
  });

  test('a lone write of one of several clients goes through the thread pool: the others would wait', async () => {
    const file = await create('log');
    const now = vi.spyOn(performance, 'now').mockReturnValue(1000);
    disk.pace.onSynced(0.1, false);
    const writeAlone = async (): Promise<readonly string[]> => {
      const order: string[] = [];
      file.write(0, bytes('lone'), () => order.push('written'));
      const synced = completion<void>((done) => file.sync(done));
      void synced.then(() => order.push('synced'));
      await new Promise((resolve) => setImmediate(resolve));
      const seen = [...order];
      await synced;
      return seen;
    };
    const [one, other] = [{}, {}];
    turn.clients.touch(one);
    turn.clients.touch(one);
    expect(await writeAlone()).toEqual(['written', 'synced']);
    turn.clients.touch(other);
    expect(await writeAlone()).not.toContain('synced');
    now.mockReturnValue(2000);
    turn.clients.touch(other);
    expect(await writeAlone()).toEqual(['written', 'synced']);
    now.mockRestore();
  });

  describe('that is synced often', () => {
    const createLog = (name: string): Promise<DiskFile> =>
      completion((done) => disk.create(join(directory, name), done, true));

    test.runIf(process.platform === 'linux')('is written through to the disk', async () => {
      const file = await createLog('log');
      const fd = readdirSync('/proc/self/fd').find((name) => {
        try {
          return readlinkSync(`/proc/self/fd/${name}`) === file.path;
        } catch {
          return false;
        }
      });
      const flags = /flags:\s+0(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))![1]!;
      expect(Number.parseInt(flags, 8) & constants.O_DSYNC).toBe(constants.O_DSYNC);
    });

    test('effects take place in their order, in the thread pool and at the end of a turn', async () => {
      const file = await createLog('log');
      const order: string[] = [];
      const note = (what: string) => (error: DiskError | null) =>
        order.push(error === null ? what : `${what} ${error.code}`);
      file.preallocate(16, note('grow'));
      file.write(0, bytes('first'), note('write'));
      file.sync(note('sync'));
      file.sync(note('sync again'));
      file.truncate(7, note('truncate'));
      await completion<void>((done) => file.sync(done));
      expect(order).toEqual(['grow', 'write', 'sync', 'sync again', 'truncate']);
      for (let i = 0; i < 100; i++) disk.pace.onSynced(0.01, false);
      file.write(5, bytes('lone'), note('lone write'));
      file.sync(note('lone sync'));
      await new Promise((resolve) => setImmediate(resolve));
      expect(order.slice(5)).toEqual(['lone write', 'lone sync']);
      expect(readFileSync(file.path, 'utf8')).toBe('firstlone');
    });

    test('a write and its sync count once, as one sync, for whether the next one may be done on the loop', async () => {
      const file = await createLog('log');
      const counted = vi.spyOn(disk.pace, 'onSynced');
      file.write(0, bytes('in the thread pool'), () => {});
      await completion<void>((done) => file.sync(done));
      expect(counted.mock.calls.map(([, isOnLoop]) => isOnLoop)).toEqual([false]);
      for (let i = 0; i < 100; i++) disk.pace.onSynced(0.01, false);
      counted.mockClear();
      file.write(0, bytes('on the loop'), () => {});
      await completion<void>((done) => file.sync(done));
      expect(counted.mock.calls.map(([, isOnLoop]) => isOnLoop)).toEqual([true]);
    });

    test.skipIf(!existsSync('/dev/full'))(
      'after a failed write nothing succeeds: it may have been the sync',
      async () => {
        symlinkSync('/dev/full', join(directory, 'full'));
        for (const isOnLoop of [false, true]) {
          const file = await createLog('full');
          if (isOnLoop) for (let i = 0; i < 100; i++) disk.pace.onSynced(0.01, false);
          const outcomes: (string | undefined)[] = [];
          file.write(0, bytes('x'), (error) => outcomes.push(error?.code));
          file.sync((error) => outcomes.push(error?.code));
          await expect(completion<void>((done) => file.truncate(0, done))).rejects.toMatchObject({ code: 'ENOSPC' });
          expect(outcomes).toEqual(['ENOSPC', 'ENOSPC']);
        }
      },
    );
  });

  test('one slow sync on the loop sends the next ones to the thread pool for a while', () => {
    for (let i = 0; i < 100; i++) disk.pace.onSynced(0.01, true);
    disk.pace.onSynced(5, true);
    expect(disk.pace.isQuick).toBe(false);
  });

  test.skipIf(!existsSync('/dev/full'))('a full disk fails the write and names file, attempt and code', async () => {
    symlinkSync('/dev/full', join(directory, 'full'));
    const file = await completion<DiskFile>((done) => disk.open(join(directory, 'full'), { readOnly: false }, done));
    const failure = completion<void>((done) => file.write(0, bytes('x'), done));
    await expect(failure).rejects.toMatchObject({
      code: 'ENOSPC',
      path: join(directory, 'full'),
      message: `cannot write ${join(directory, 'full')}: ENOSPC`,
    });
    disk.pace.onSynced(0.01, false);
    const outcomes: (string | undefined)[] = [];
    file.write(0, bytes('x'), (error) => outcomes.push(error?.code));
    file.sync((error) => outcomes.push(error?.code));
    await new Promise((resolve) => setImmediate(resolve));
    expect(outcomes).toEqual(['ENOSPC', 'ENOSPC']);
  });

  test.skipIf(!existsSync('/dev/null'))('after a failed sync nothing on this file succeeds', async () => {
    // A character device cannot be synced: EINVAL.
    symlinkSync('/dev/null', join(directory, 'device'));
    const file = await completion<DiskFile>((done) => disk.open(join(directory, 'device'), { readOnly: false }, done));
    await expect(completion<void>((done) => file.sync(done))).rejects.toMatchObject({ code: 'EINVAL' });
    await expect(completion<void>((done) => file.write(0, bytes('x'), done))).rejects.toMatchObject({ code: 'EINVAL' });
  });
});

describe('an abandoned disk', () => {
  test('finishes what is in progress, starts nothing else, closes its files and releases its holds', async () => {
    const file = await create('log');
    await completion<void>((done) => disk.hold(directory, done));
    // Two files at once, so that both go through the thread pool.
    const other = await create('other');
    file.write(0, new Uint8Array(100_000).fill(1), () => {});
    file.write(0, new Uint8Array(100_000).fill(2), () => {});
    other.write(0, bytes('x'), () => {});
    await new Promise((resolve) => setImmediate(resolve));
    disk.create(join(directory, 'late'), () => {});
    turn.stop();
    await disk.abandon();
    expect(readFileSync(file.path)).toEqual(Buffer.alloc(100_000, 1));
    expect(openFilesBelow(directory)).toEqual([]);
    expect(readdirSync(directory).sort()).toEqual(['late', 'log', 'other']);
  });
});

/** Paths below a directory that this process has open, if the system reports them. */
function openFilesBelow(path: string): string[] {
  const table = '/proc/self/fd';
  if (!existsSync(table)) return [];
  return readdirSync(table).flatMap((fd) => {
    try {
      const target = readlinkSync(join(table, fd));
      return target.startsWith(path) ? [target] : [];
    } catch {
      // The listing itself was a file.
      return [];
    }
  });
}

describe('a directory', () => {
  test('lists plain files with their sizes; files are renamed, removed and synced', async () => {
    const nested = join(directory, 'a', 'b');
    await completion<void>((done) => disk.makeDirectory(nested, done));
    await completion<void>((done) => disk.makeDirectory(nested, done));
    writeFileSync(join(nested, 'one'), '12345');
    writeFileSync(join(nested, 'two'), '');
    await completion<void>((done) => disk.makeDirectory(join(nested, 'directory'), done));
    await completion<void>((done) => disk.rename(join(nested, 'two'), join(nested, 'three'), done));
    const entries = await completion((done) => disk.list(nested, done));
    expect([...(entries as { name: string }[])].sort((a, b) => (a.name < b.name ? -1 : 1))).toEqual([
      { name: 'one', size: 5 },
      { name: 'three', size: 0 },
    ]);
    await completion<void>((done) => disk.syncDirectory(nested, done));
    await completion<void>((done) => disk.remove(join(nested, 'one'), done));
    expect(existsSync(join(nested, 'one'))).toBe(false);
  });

  test('lists a file behind a link, and fails when one leads nowhere: it may be a log', async () => {
    writeFileSync(join(directory, 'elsewhere'), '12345');
    const nested = join(directory, 'nested');
    await completion<void>((done) => disk.makeDirectory(nested, done));
    symlinkSync(join(directory, 'elsewhere'), join(nested, 'log.1'));
    symlinkSync(directory, join(nested, 'directory'));
    expect(await completion((done) => disk.list(nested, done))).toEqual([{ name: 'log.1', size: 5 }]);
    symlinkSync('nowhere', join(nested, 'log.2'));
    await expect(completion((done) => disk.list(nested, done))).rejects.toMatchObject({
      code: 'ENOENT',
      path: join(nested, 'log.2'),
    });
  });

  test.skipIf(process.platform !== 'linux')('that the kernel does not make is ENOENT', async () => {
    for (const path of ['/proc/meerkat', '/proc/meerkat/more']) {
      await expect(completion<void>((done) => disk.makeDirectory(path, done))).rejects.toMatchObject({
        code: 'ENOENT',
      });
    }
  });

  test('what is missing is ENOENT', async () => {
    const missing = join(directory, 'missing');
    await expect(completion((done) => disk.open(missing, { readOnly: true }, done))).rejects.toMatchObject({
      code: 'ENOENT',
      message: `cannot open ${missing}: ENOENT`,
    });
    await expect(completion((done) => disk.list(missing, done))).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(completion((done) => disk.remove(missing, done))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('a hold', () => {
  const hold = (path: string): Promise<void> => completion((done) => disk.hold(path, done));

  test('keeps a second one out until it is released, and leaves no file behind', async () => {
    await hold(directory);
    const second = new NodeDisk(turn);
    await expect(completion((done) => second.hold(directory, done))).rejects.toMatchObject({ code: 'EBUSY' });
    disk.release(directory);
    await completion((done) => second.hold(directory, done));
    await second.abandon();
    expect(readdirSync(directory)).toEqual([]);
  });

  test('of many that start together at most one gets it', async () => {
    for (let round = 0; round < 10; round++) {
      const disks = Array.from({ length: 8 }, () => new NodeDisk(turn));
      const outcomes = await Promise.allSettled(
        disks.map((candidate) => completion((done) => candidate.hold(directory, done))),
      );
      expect(outcomes.filter((outcome) => outcome.status === 'fulfilled').length).toBeLessThanOrEqual(1);
      for (const candidate of disks) await candidate.abandon();
    }
  });

  test('a path too long for a socket is no obstacle', async () => {
    const long = join(directory, 'x'.repeat(120));
    await completion<void>((done) => disk.makeDirectory(long, done));
    await hold(long);
    await expect(completion((done) => new NodeDisk(turn).hold(long, done))).rejects.toMatchObject({ code: 'EBUSY' });
  });

  test('another process is kept out, and its kill -9 does not block the next one', async () => {
    const target = join(directory, 'data');
    await completion<void>((done) => disk.makeDirectory(target, done));
    // A claim as hold.ts describes it, made by a process of its own.
    const script = `
      require('node:net').createServer((socket) => socket.end('holding process ' + process.pid))
        .listen(${JSON.stringify(join(target, 'meerkat.0123456789abcdef.hold'))}, () => console.log('held'))`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    await expect(hold(target)).rejects.toMatchObject({
      code: 'EBUSY',
      cause: { message: `${target} is held by another server (holding process ${child.pid})` },
    });
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(readdirSync(target)).toHaveLength(1);
    await hold(target);
    expect(readdirSync(target)).toHaveLength(1);
  });
});
