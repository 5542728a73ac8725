import { makeZxid, OpCode, type Txn, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import { buildLog } from '../testing/log-builder.ts';
import { copyDisk, Dice, grownDirectory, StorageHost, TEST_DIRECTORY, TEST_ENSEMBLE } from '../testing/storage-host.ts';
import { MemoryDisk } from './memory-disk.ts';
import type { Survivors } from './memory-file.ts';

const NOTHING: Txn = { type: OpCode.error, error: -101 };
const PATH = `${TEST_DIRECTORY}/durableZxid`;
const MEMBER: Partial<CoreOptions> = {
  ensemble: TEST_ENSEMBLE,
  preallocateBytes: 8192,
  snapCount: 20,
  logBytesMax: 2048,
};

function textOf(disk: MemoryDisk): string {
  return new TextDecoder().decode(disk.peek(PATH) ?? new Uint8Array(0));
}

/** Zxid and acceptedEpoch in the file. */
function markOf(disk: MemoryDisk): [zxid: number, acceptedEpoch: number] {
  const [zxid = '', acceptedEpoch = ''] = textOf(disk).split(' ');
  return [Number.parseInt(zxid, 16), Number(acceptedEpoch)];
}

/** An independent Adler-32, in its simplest form. */
function adlerOf(text: string): string {
  let a = 1;
  let b = 0;
  for (const byte of new TextEncoder().encode(text)) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return (b * 65536 + a).toString(16).padStart(8, '0');
}

describe('the mark of what is durable', () => {
  it('is a line of 64 bytes: the zxid, acceptedEpoch and a checksum', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    expect(textOf(host.disk)).toBe(`${`0 0 ${adlerOf('0 0')}`.padEnd(63)}\n`);
    host.storage.writeEpoch('acceptedEpoch', 12);
    host.settle();
    host.beginEpoch(12);
    host.append(NOTHING);
    host.settle();
    expect(textOf(host.disk)).toBe(`${`c00000001 12 ${adlerOf('c00000001 12')}`.padEnd(63)}\n`);
  });

  it('equals what was acknowledged when the process ends, and is durable a second later', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    for (let i = 1; i <= 3; i++) {
      host.append(NOTHING);
      host.settle();
      expect(markOf(host.disk)).toEqual([i, 0]);
      host.clock.nowMs += 300;
    }
    const killed = copyDisk(host.disk);
    expect(markOf(killed)).toEqual([3, 0]);
    expect(host.storage.nextDeadlineMs()).toBe(1000);
    host.storage.onTick(1000);
    host.settle();
    expect(host.storage.nextDeadlineMs()).toBe(Number.POSITIVE_INFINITY);
    host.append(NOTHING);
    host.settle();
    host.disk.crash('nothing');
    expect(markOf(host.disk)).toEqual([3, 0]);
  });

  it('is durable once the server has stopped, and once it has started', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    host.append(NOTHING);
    host.storage.stop();
    host.settle();
    expect(host.isStopped).toBe(true);
    host.disk.crash('nothing');
    expect(markOf(host.disk)).toEqual([1, 0]);
    host.disk.remove(PATH, () => {});
    host.disk.syncDirectory(TEST_DIRECTORY, () => {});
    host.disk.deliverAll();
    new StorageHost(host.disk, MEMBER).recover();
    host.disk.crash('nothing');
    expect(markOf(host.disk)).toEqual([1, 0]);
  });

  it('is never above the end of the log, wherever a truncation, an installation or the server is interrupted', () => {
    const ways: ((seed: number) => Survivors)[] = [() => 'nothing', () => 'everything', (seed) => new Dice(seed)];
    const { disk: grown, history } = grownDirectory(new Dice(2), MEMBER);
    const { zxid } = history[history.length >> 1]!.header;
    for (const work of ['truncate', 'install', 'append'] as const) {
      for (const survivors of ways) {
        for (let cutAfter = 0; ; cutAfter++) {
          const disk = copyDisk(grown);
          const host = new StorageHost(disk, MEMBER).recover().startAppending();
          if (work === 'truncate') host.truncate(zxid);
          if (work === 'install') host.installSnapshot(new StorageHost().recover().database!);
          if (work === 'append') {
            host.beginEpoch(8);
            for (let i = 0; i < 3; i++) host.append(NOTHING);
            host.storage.flush();
          }
          let isOver = false;
          for (let i = 0; i < cutAfter && !isOver; i++) {
            isOver = !disk.deliver();
            host.storage.onTick(2000);
          }
          disk.crash(survivors(cutAfter));
          const again = new StorageHost(disk, MEMBER).recover();
          expect(again.failure, `${work}, cut after ${cutAfter} completions`).toBeNull();
          expect(markOf(disk)[0]).toBe(again.history!.lastZxid);
          if (isOver) break;
        }
      }
    }
  });

  it('that cannot be lowered prevents the history from being cut or replaced', () => {
    for (const work of ['truncate', 'install'] as const) {
      const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
      for (let i = 0; i < 3; i++) host.append(NOTHING);
      host.settle();
      host.disk.failNext({ operation: 'write', code: 'EIO', path: 'durableZxid' });
      if (work === 'truncate') host.truncate(ZXID_ZERO);
      else host.installSnapshot(new StorageHost().recover().database!);
      host.settle();
      expect(host.failure?.message).toMatch(
        /^cannot (cut the log after|install the snapshot).*cannot write .*durableZxid: EIO/,
      );
      host.disk.kill();
      const again = new StorageHost(host.disk, MEMBER).recover();
      expect(again).toMatchObject({ failure: null, durable: work === 'truncate' ? 3 : 0 });
      expect(markOf(host.disk)[0]).toBe(again.durable);
    }
  });

  it('is void when another program has accepted a later epoch, and perhaps truncated the log', () => {
    const { disk } = grownDirectory(new Dice(2), { ...MEMBER, snapCount: 1000 });
    const host = new StorageHost(disk, MEMBER).recover();
    const { lastZxid } = host.history!;
    disk.kill();
    const newest = disk
      .names(TEST_DIRECTORY)
      .filter((name) => name.startsWith('log.'))
      .at(-1)!;
    const cut = copyDisk(disk);
    cut.poke(`${TEST_DIRECTORY}/${newest}`, disk.peek(`${TEST_DIRECTORY}/${newest}`)!.slice(0, 16));
    expect(new StorageHost(copyDisk(cut), MEMBER).recover().failure?.message).toMatch(
      'had acknowledged everything up to',
    );
    cut.poke(`${TEST_DIRECTORY}/acceptedEpoch`, new TextEncoder().encode('9'));
    const again = new StorageHost(cut, MEMBER).recover();
    expect(again.failure).toBeNull();
    expect(again.history!.lastZxid).toBeLessThan(lastZxid);
    expect(markOf(cut)).toEqual([again.history!.lastZxid, 9]);
  });

  it('reveals that acceptedEpoch was lost or restored, and is void', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    host.storage.writeEpoch('acceptedEpoch', 12);
    host.settle();
    host.disk.kill();
    for (const [text, found] of [
      ['1', 'holds 1'],
      [null, 'is missing'],
    ] as const) {
      const disk = copyDisk(host.disk);
      if (text === null) disk.remove(`${TEST_DIRECTORY}/acceptedEpoch`, () => {});
      else disk.poke(`${TEST_DIRECTORY}/acceptedEpoch`, new TextEncoder().encode(text));
      disk.deliverAll();
      const again = new StorageHost(disk, MEMBER).recover();
      expect(again.failure).toBeNull();
      expect(again.eventsOf('warning').map(({ message }) => message)).toEqual([
        expect.stringMatching(`^acceptedEpoch ${found} although ${PATH} says that it was 12: `),
      ]);
      expect(markOf(disk)).toEqual([0, Number(text ?? 0)]);
    }
  });

  it('follows the epochs that this server accepts', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    host.storage.writeEpoch('acceptedEpoch', 4);
    host.storage.writeEpoch('currentEpoch', 4);
    host.beginEpoch(4);
    host.append(NOTHING);
    host.settle();
    expect(markOf(host.disk)).toEqual([makeZxid(4, 1), 4]);
    host.storage.stop({ keepsHold: true });
    host.settle();
    const next = new StorageHost(host.disk, MEMBER, new Dice(1), host.storage.carriedState).recover({ isHeld: true });
    next.storage.writeEpoch('acceptedEpoch', 5);
    next.settle();
    expect(markOf(host.disk)).toEqual([makeZxid(4, 1), 5]);
  });

  it('that is damaged is reported and ignored', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    host.append(NOTHING);
    host.settle();
    const text = textOf(host.disk);
    const zeros = '\0'.repeat(64);
    for (const damaged of [
      text.replace('1 0', '2 0'),
      text.slice(0, 5),
      '',
      zeros,
      `${text}x`,
      text.replace(/^1/, 'x'),
    ]) {
      const disk = copyDisk(host.disk);
      disk.poke(PATH, new TextEncoder().encode(damaged));
      const again = new StorageHost(disk, MEMBER).recover();
      expect(again.failure, JSON.stringify(damaged)).toBeNull();
      expect(again.eventsOf('warning').map(({ message }) => message)).toEqual([
        `${PATH} is damaged: whether the log reaches as far as this server has acknowledged is not checked`,
      ]);
      expect(textOf(disk)).toBe(text);
    }
  });

  it('that cannot be written stays behind, which is reported once, and the server continues', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    host.append(NOTHING);
    host.settle();
    host.disk.failNext({ operation: 'write', code: 'EIO', path: 'durableZxid' });
    for (let i = 0; i < 3; i++) {
      host.append(NOTHING);
      host.settle();
    }
    expect(host).toMatchObject({ failure: null, durable: 4 });
    expect(host.eventsOf('warning').map(({ message }) => message)).toEqual([
      expect.stringContaining('durableZxid lags behind what is acknowledged until the next start'),
    ]);
    host.storage.stop();
    host.settle();
    expect(markOf(host.disk)[0]).toBeLessThan(4);
    expect(new StorageHost(host.disk, MEMBER).recover().durable).toBe(4);
  });

  it.each(['open', 'create', 'write', 'sync', 'syncDirectory'] as const)(
    'that cannot be created at the start is reported, and the server continues, when the disk fails at its %s',
    (operation) => {
      const disk = new MemoryDisk();
      // Other files are accessed first.
      const isOfOthers = operation === 'syncDirectory' ? { skip: 4 } : { path: 'durableZxid' };
      const skip = operation === 'open' ? { skip: 1 } : {};
      disk.failNext({ operation, code: 'ENOSPC', ...isOfOthers, ...skip });
      const host = new StorageHost(disk, MEMBER).recover().startAppending();
      expect(host.eventsOf('warning').map(({ message }) => message)).toEqual([
        expect.stringMatching(/^durableZxid is not written until the next start: .*ENOSPC/),
      ]);
      host.append(NOTHING);
      host.settle();
      host.storage.stop();
      host.settle();
      expect(host).toMatchObject({ failure: null, durable: 1, isStopped: true });
      const again = new StorageHost(disk, MEMBER).recover();
      expect(again).toMatchObject({ failure: null, durable: 1 });
      expect(markOf(disk)).toEqual([1, 0]);
    },
  );

  it.each(['open', 'read'] as const)('that cannot be read is reported, when the disk fails at its %s', (operation) => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    host.append(NOTHING);
    host.settle();
    host.disk.kill();
    host.disk.failNext({ operation, code: 'EIO', path: 'durableZxid' });
    const again = new StorageHost(host.disk, MEMBER).recover();
    expect(again).toMatchObject({ failure: null, durable: 1 });
    expect(again.eventsOf('warning').map(({ message }) => message)).toEqual([
      `cannot ${operation} ${PATH}: EIO: whether the log reaches as far as this server has acknowledged is not checked`,
    ]);
  });

  it('does not stop the start after another program has continued the log, or when a snapshot covers it', () => {
    const host = new StorageHost(new MemoryDisk(), MEMBER).recover().startAppending();
    for (let i = 0; i < 3; i++) host.append(NOTHING);
    host.settle();
    host.disk.kill();
    const continued = copyDisk(host.disk);
    continued.poke(`${TEST_DIRECTORY}/log.4`, buildLog({ txns: [4, 5, 6] }));
    const again = new StorageHost(continued, MEMBER).recover();
    expect(again.failure).toBeNull();
    expect(markOf(continued)).toEqual([6, 0]);
    continued.kill();

    const other = new StorageHost(continued, MEMBER).recover().startAppending();
    other.storage.allowSnapshots();
    other.storage.onTick(1000);
    other.settle();
    expect(continued.names(TEST_DIRECTORY)).toContain('snapshot.6');
    continued.kill();
    for (const log of continued.names(TEST_DIRECTORY)) {
      if (log.startsWith('log.')) continued.remove(`${TEST_DIRECTORY}/${log}`, () => {});
    }
    continued.deliverAll();
    expect(new StorageHost(continued, MEMBER).recover()).toMatchObject({ failure: null, durable: 6 });
  });

  it('promises nothing without forceSync', () => {
    const host = new StorageHost(new MemoryDisk(), { ...MEMBER, forceSync: false }).recover().startAppending();
    host.append(NOTHING);
    host.settle();
    expect(host.durable).toBe(1 as Zxid);
    expect(markOf(host.disk)).toEqual([0, 0]);
  });
});
