import { getInt, makeZxid, OpCode, type Txn, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import { Dice, StorageHost, TEST_DIRECTORY, TEST_ENSEMBLE } from '../testing/storage-host.ts';
import { HistoryTail } from './history-tail.ts';
import { MemoryDisk } from './memory-disk.ts';

const NOTHING: Txn = { type: OpCode.error, error: -101 };
const MEMBER: Partial<CoreOptions> = { ensemble: TEST_ENSEMBLE };

/** The payloads of a log file, read as simply as the format allows. */
function payloadsOf(bytes: Uint8Array): Uint8Array[] {
  const payloads: Uint8Array[] = [];
  for (let at = 16; at + 12 < bytes.length && getInt(bytes, at + 8) > 0; ) {
    const end = at + 12 + getInt(bytes, at + 8);
    payloads.push(bytes.slice(at + 12, end));
    at = end + 1;
  }
  return payloads;
}

/** The disk of a server that wrote txns of these zxids and was stopped gracefully. */
function diskWith(zxids: readonly number[], options: Partial<CoreOptions> = {}): MemoryDisk {
  const host = new StorageHost(new MemoryDisk(), options).recover().startAppending();
  for (const zxid of zxids) host.append(NOTHING, { zxid });
  host.storage.stop();
  host.settle();
  return host.disk;
}

function poke(disk: MemoryDisk, name: string, text: string): void {
  disk.poke(`${TEST_DIRECTORY}/${name}`, new TextEncoder().encode(text));
}

function textOf(disk: MemoryDisk, name: string): string {
  return new TextDecoder().decode(disk.peek(`${TEST_DIRECTORY}/${name}`)!);
}

describe('the history that a recovery returns', () => {
  it('ends with the newest txns of the log, as the logged bytes', () => {
    const disk = diskWith([1, 2, 3, makeZxid(2, 1), makeZxid(2, 2)]);
    const { history } = new StorageHost(disk, MEMBER).recover();
    const payloads = payloadsOf(disk.peek(`${TEST_DIRECTORY}/log.1`)!);
    expect(history!.tail.map(({ zxid }) => zxid)).toEqual([1, 2, 3, makeZxid(2, 1), makeZxid(2, 2)]);
    expect(history!.tail.map(({ payload }) => payload)).toEqual(payloads);
    expect(history).toMatchObject({ lastZxid: makeZxid(2, 2), currentEpoch: 2, acceptedEpoch: 2 });
  });

  it('keeps as many of them as learners are sent from memory, and none in a standalone server', () => {
    const disk = diskWith(Array.from({ length: 50 }, (_, i) => i + 1));
    const few = { ensemble: { ...TEST_ENSEMBLE, commitLogCount: 7 } };
    const { history } = new StorageHost(disk, few).recover();
    expect(history!.tail.map(({ zxid }) => zxid)).toEqual([44, 45, 46, 47, 48, 49, 50]);
    disk.kill();
    expect(new StorageHost(disk).recover().history!.tail).toEqual([]);
  });

  it('has no txns when the newest snapshot is newer than the whole log', () => {
    const host = new StorageHost(diskWith([1, 2, 3]), MEMBER).recover();
    host.storage.allowSnapshots();
    host.storage.onTick(1000);
    host.settle();
    host.disk.kill();
    expect(new StorageHost(host.disk, MEMBER).recover().history).toMatchObject({ lastZxid: 3, tail: [] });
  });

  it('keeps no more bytes than a few MiB, and still ends with the last txn', () => {
    const tail = new HistoryTail(100, 1000);
    const dice = new Dice(4);
    const sizes = new Map<number, number>();
    for (let zxid = 1; zxid <= 200; zxid++) {
      const bytes = new Uint8Array(20 + dice.below(200)).fill(zxid & 0xff);
      sizes.set(zxid, bytes.length);
      tail.add(zxid as Zxid, { bytes, position: 10, end: bytes.length });
      const entries = tail.entries();
      const first = entries[0]!.zxid;
      expect(entries.map((entry) => entry.zxid)).toEqual(Array.from({ length: zxid - first + 1 }, (_, i) => first + i));
      for (const entry of entries) {
        expect(entry.payload).toEqual(new Uint8Array(sizes.get(entry.zxid)! - 10).fill(entry.zxid & 0xff));
      }
      const total = entries.reduce((sum, { payload }) => sum + payload.length, 0);
      expect(total).toBeLessThanOrEqual(1000);
    }
  });
});

describe('the epoch files at a start in an ensemble', () => {
  it('are raised to the epoch of the last txn', () => {
    const disk = diskWith([makeZxid(3, 1)]);
    poke(disk, 'acceptedEpoch', '2');
    poke(disk, 'currentEpoch', '1');
    const { history } = new StorageHost(disk, MEMBER).recover();
    expect(history).toMatchObject({ acceptedEpoch: 3, currentEpoch: 3 });
    disk.crash('nothing');
    expect([textOf(disk, 'acceptedEpoch'), textOf(disk, 'currentEpoch')]).toEqual(['3', '3']);
  });

  it('may be ahead of the last txn', () => {
    const disk = diskWith([makeZxid(3, 1)]);
    poke(disk, 'acceptedEpoch', '8');
    poke(disk, 'currentEpoch', '5');
    expect(new StorageHost(disk, MEMBER).recover().history).toMatchObject({ acceptedEpoch: 8, currentEpoch: 5 });
  });

  it('stop the start when an epoch was entered that was not promised', () => {
    const disk = diskWith([makeZxid(3, 1)]);
    poke(disk, 'acceptedEpoch', '4');
    poke(disk, 'currentEpoch', '5');
    expect(new StorageHost(disk, MEMBER).recover().failure?.message).toMatch(
      'acceptedEpoch holds 4 although currentEpoch holds 5',
    );
    expect(new StorageHost(disk).recover().failure, 'a server of its own enters no epochs').toBeNull();
    disk.kill();
    disk.remove(`${TEST_DIRECTORY}/acceptedEpoch`, () => {});
    disk.deliverAll();
    expect(new StorageHost(disk, MEMBER).recover().failure?.message).toMatch(
      'acceptedEpoch is missing although currentEpoch holds 5',
    );
  });

  it.each(['acceptedEpoch', 'currentEpoch'])('stop the start when %s holds an impossible epoch', (name) => {
    const disk = diskWith([makeZxid(3, 1)]);
    poke(disk, 'acceptedEpoch', '2097152');
    poke(disk, name, '2097152');
    expect(new StorageHost(disk, MEMBER).recover().failure?.message).toMatch(
      `${name} holds 2097152, and there is no epoch after 2097151: the file is damaged`,
    );
  });

  it('may include a partial file under another name', () => {
    const disk = diskWith([makeZxid(3, 1)]);
    poke(disk, 'currentEpoch.tmp', '');
    poke(disk, 'acceptedEpoch.tmp', 'x');
    const host = new StorageHost(disk, MEMBER).recover();
    expect(host.history).toMatchObject({ acceptedEpoch: 3, currentEpoch: 3 });
    host.storage.writeEpoch('currentEpoch', 4);
    host.storage.writeEpoch('acceptedEpoch', 4);
    host.settle();
    expect(disk.names(TEST_DIRECTORY).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('are durable once the recovery has reported them, even if a killed process left their names unsynced', () => {
    for (let deliveries = 0; deliveries < 8; deliveries++) {
      // In the directory of the logs the reader syncs the names.
      const options = { ...MEMBER, logDirectory: '/log' };
      const disk = diskWith([makeZxid(3, 1)], options);
      const host = new StorageHost(disk, options).recover();
      host.storage.writeEpoch('acceptedEpoch', 7);
      for (let i = 0; i < deliveries; i++) disk.deliver();
      disk.kill();
      const { acceptedEpoch } = new StorageHost(disk, options).recover().history!;
      disk.crash('nothing');
      expect(new StorageHost(disk, options).recover().history!.acceptedEpoch).toBe(acceptedEpoch);
    }
  });
});
