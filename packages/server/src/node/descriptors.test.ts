import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import {
  ConnectionShare,
  type CountedConnection,
  countOpenFiles,
  planDescriptors,
  readOpenFilesMax,
} from './descriptors.ts';

describe('the plan', () => {
  test('keeps an eighth for files, 12 to 64, and a quarter for ports between servers', () => {
    // In use, files, ports.
    expect(planDescriptors(1024, 24, 0, 0)).toEqual({ clientsMax: 1024 - 24 - 64, peersMax: 0 });
    expect(planDescriptors(1024, 24, 0, 2)).toEqual({ clientsMax: 1024 - 24 - 64 - 256, peersMax: 128 });
    expect(planDescriptors(1024, 24, 0, 4)).toEqual({ clientsMax: 1024 - 24 - 64 - 256, peersMax: 64 });
    expect(planDescriptors(80, 24, 0, 2)).toEqual({ clientsMax: 80 - 24 - 12 - 20, peersMax: 10 });
    expect(planDescriptors(1_000_000, 24, 0, 2)).toEqual({
      clientsMax: 1_000_000 - 24 - 64 - 250_000,
      peersMax: 125_000,
    });
  });

  test('keeps five for each thread that is to come', () => {
    expect(planDescriptors(128, 24, 2, 2)).toEqual({ clientsMax: 128 - 24 - 10 - 16 - 32, peersMax: 16 });
  });

  test('has what Node.js opens for a thread', { skip: process.platform !== 'linux' }, async () => {
    const before = countOpenFiles()!;
    const worker = new Worker('setInterval(() => {}, 1e6)', { eval: true });
    await once(worker, 'online');
    const opened = countOpenFiles()! - before;
    await worker.terminate();
    const { clientsMax } = planDescriptors(1024, 24, 0, 0);
    expect(opened).toBeGreaterThan(0);
    expect(opened).toBeLessThanOrEqual(clientsMax - planDescriptors(1024, 24, 1, 0).clientsMax);
  });

  test('leaves every port something, however low the limit', () => {
    expect(planDescriptors(20, 24, 0, 2)).toEqual({ clientsMax: 4, peersMax: 4 });
  });

  test('limits nothing where the system does not tell its limit', () => {
    const all = Number.POSITIVE_INFINITY;
    expect(planDescriptors(all, 0, 0, 2)).toEqual({ clientsMax: all, peersMax: all });
  });

  test('begins with what Linux says', { skip: process.platform !== 'linux' }, () => {
    expect(countOpenFiles()).toBeGreaterThan(3);
    expect(readOpenFilesMax()).toBeGreaterThan(countOpenFiles()!);
  });
});

describe('a share', () => {
  function make(max: number): {
    share: ConnectionShare;
    crowded: () => number;
    connection: () => CountedConnection & { gone: number };
  } {
    let count = 0;
    const share = new ConnectionShare(max, () => count++);
    const connection = (): CountedConnection & { gone: number } => ({
      gone: 0,
      destroy() {
        this.gone++;
        share.close(this);
      },
    });
    return { share, crowded: () => count, connection };
  }

  test('counts connections for as long as they are open, and tells of each that is one too many', () => {
    const { share, crowded, connection } = make(2);
    expect([share.open(), share.open(), share.open()]).toEqual([false, false, true]);
    expect([share.count, crowded()]).toEqual([3, 1]);
    share.close(connection());
    share.close(connection());
    expect(share.open()).toBe(false);
    expect([share.count, crowded()]).toEqual([2, 1]);
  });

  test('has no more than one too many when those that are told to go for others linger', () => {
    const { share, connection } = make(2);
    const open: (CountedConnection & { gone: number })[] = [];
    for (let i = 0; i < 50; i++) {
      const crowds = share.open();
      // The core closes the oldest.
      if (crowds) share.linger(open.find(({ gone }) => gone === 0)!);
      open.push(connection());
    }
    expect(open.filter(({ gone }) => gone === 0)).toHaveLength(3);
    expect(share.count).toBe(3);
  });

  test('takes room from those that only wait for their peers to close, the oldest first', () => {
    const { share, crowded, connection } = make(2);
    const [first, second] = [connection(), connection()];
    share.open();
    share.open();
    share.linger(first);
    share.linger(second);
    expect([share.open(), share.open(), share.open()]).toEqual([false, false, true]);
    expect([first.gone, second.gone, crowded(), share.count]).toEqual([1, 1, 1, 3]);
  });

  test('counts on no room from those that have closed by themselves', () => {
    const { share, connection } = make(2);
    for (let i = 0; i < 5; i++) {
      const lingering = connection();
      share.open();
      share.linger(lingering);
      share.close(lingering);
    }
    expect([share.open(), share.open(), share.open()]).toEqual([false, false, true]);
    expect(share.count).toBe(3);
  });
});
