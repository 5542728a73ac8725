import { OpCode, readTxnEntry, ZXID_NONE, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { CoreOptions } from '../base/options.ts';
import type { TraceEvent } from '../base/ports.ts';
import { Dice, StorageHost, TEST_DIRECTORY } from '../testing/storage-host.ts';
import { MemoryDisk } from './memory-disk.ts';
import { TxnLogReader } from './txn-log-reader.ts';

const LOG = `${TEST_DIRECTORY}/log.1`;
const OPTIONS: Partial<CoreOptions> = { preallocateBytes: 32_768 };
const HEADER_BYTES = 16;

/** The files of a server that wrote `count` txns, each with `dataBytes` of data (0: small ones of every kind). */
function writtenDirectory(
  count: number,
  dataOf: (i: number) => Uint8Array | null = () => null,
): Map<string, Uint8Array> {
  const host = new StorageHost(new MemoryDisk(), OPTIONS).recover().startAppending();
  const dice = new Dice(count);
  for (let i = 0; i < count; i++) {
    const data = dataOf(i);
    if (data === null) host.appendRandom(dice);
    else host.append({ type: OpCode.setData, path: '/zookeeper', data, version: i + 1 });
  }
  host.settle();
  expect(host.durable).toBe(count);
  return new Map(host.disk.names(TEST_DIRECTORY).map((name) => [name, host.disk.peek(`${TEST_DIRECTORY}/${name}`)!]));
}

/** A little distinct data for each txn, including bytes that look like the end of an entry. */
function littleData(i: number): Uint8Array {
  return Uint8Array.from({ length: 5 + i * 7 }, (_, k) => 0x40 + ((i + k) % 4));
}

function diskWith(files: ReadonlyMap<string, Uint8Array>, log: Uint8Array): MemoryDisk {
  const disk = new MemoryDisk();
  for (const [name, bytes] of files) disk.poke(`${TEST_DIRECTORY}/${name}`, name === 'log.1' ? log : bytes);
  return disk;
}

/** Where each entry starts, and where the last one ends, from the lengths alone. */
function entryPositions(log: Uint8Array): number[] {
  const view = new DataView(log.buffer, log.byteOffset, log.byteLength);
  const positions = [HEADER_BYTES];
  for (let at = HEADER_BYTES; at + 12 < log.length && view.getInt32(at + 8) > 0; ) {
    at += 13 + view.getInt32(at + 8);
    positions.push(at);
  }
  return positions;
}

/** Recovers without a mark, as if nothing at the end of the log had been acknowledged. */
function recover(files: ReadonlyMap<string, Uint8Array>, log: Uint8Array): StorageHost {
  const unmarked = new Map([...files].filter(([name]) => name !== 'durableZxid'));
  return new StorageHost(diskWith(unmarked, log), OPTIONS).recover();
}

interface Reading {
  readonly failure: Error | null;
  readonly lastZxid: number;
  readonly trace: readonly TraceEvent[];
  readonly disk: MemoryDisk;
}

/** Reads log.1 after snapshot.0: the reader's part of a recovery, without a database. */
function read(log: Uint8Array, disk: MemoryDisk = new MemoryDisk()): Reading {
  if (log.length > 0) disk.poke(LOG, log);
  const trace: TraceEvent[] = [];
  let lastZxid = 0;
  let failure: Error | null = null;
  const files = [{ name: 'log.1', zxid: 1 as Zxid, size: 0 }];
  new TxnLogReader(
    { disk, trace: { emit: (event) => void trace.push(event) } },
    {
      logDirectory: TEST_DIRECTORY,
      snapshotDirectory: TEST_DIRECTORY,
      durable: ZXID_NONE,
      forceSync: true,
      files,
      after: ZXID_ZERO,
      startAt: 0,
      areSizesExact: false,
      isEnsemble: false,
      rewritesEnd: false,
    },
    {
      onTxn: (payload) => {
        lastZxid = readTxnEntry(payload)!.header.zxid;
        return true;
      },
      onLogFileRead: () => {},
      onLogRead: () => {},
      onLogFault: (error) => {
        failure = error;
      },
    },
  ).start();
  disk.deliverAll();
  return { failure, lastZxid, trace, disk };
}

describe('a torn tail', () => {
  const files = writtenDirectory(6, littleData);
  const log = files.get('log.1')!;
  const positions = entryPositions(log);
  const end = positions.at(-1)!;
  const lastEntryAt = positions.at(-2)!;

  it('of any length is cut, reported, and gone at the next start, whether or not zeros follow', () => {
    for (const isPadded of [true, false]) {
      for (let cutAt = HEADER_BYTES; cutAt < end; cutAt++) {
        const torn = isPadded ? log.slice() : log.slice(0, cutAt);
        torn.fill(0, cutAt);
        const whole = positions.filter((position) => position <= cutAt).length - 1;
        const reading = read(torn);
        expect(reading.failure, `cut at ${cutAt}`).toBeNull();
        expect(reading.lastZxid, `cut at ${cutAt}`).toBe(whole);
        // An entry with only the four zeros that every checksum begins with cannot be seen at all.
        const isSeen = torn.subarray(positions[whole]).some((byte) => byte !== 0);
        const cut = { kind: 'log-tail-cut', file: LOG, position: positions[whole] };
        expect(reading.trace).toEqual(isSeen ? [expect.objectContaining(cut)] : []);
        reading.disk.crash('nothing');
        const again = read(new Uint8Array(0), reading.disk);
        expect(again).toMatchObject({ failure: null, lastZxid: whole, trace: [] });
      }
    }
  });

  it('is followed by the next zxid in a new file, which another restart reads after the cut one', () => {
    const torn = log.slice(0, end - 3);
    const host = recover(files, torn).startAppending();
    const { header } = host.append({ type: OpCode.error, error: -101 });
    host.settle();
    expect(header.zxid).toBe(6);
    host.disk.crash('nothing');
    expect(new StorageHost(host.disk, OPTIONS).recover().database!.lastZxid).toBe(6);
    expect(host.disk.names(TEST_DIRECTORY)).toContain('log.6');
  });

  it('may lack a unit in its middle and have whole entries after it: all of it is cut', () => {
    const data = Uint8Array.from({ length: 1500 }, (_, i) => (i % 250) + 1);
    const bytes = writtenDirectory(8, () => data).get('log.1')!;
    const at = entryPositions(bytes);
    for (let unit = 512; unit + 512 <= at.at(-1)!; unit += 512) {
      const holed = bytes.slice();
      holed.fill(0, unit, unit + 512);
      const whole = at.filter((position) => position <= unit).length - 1;
      const { failure, lastZxid, trace } = read(holed);
      expect(failure, `hole at ${unit}`).toBeNull();
      expect(lastZxid, `hole at ${unit}`).toBe(whole);
      expect(trace, `hole at ${unit}`).toEqual([expect.objectContaining({ kind: 'log-tail-cut' })]);
    }
  });

  it('in an earlier file is kept when the next file continues where it ends, as after a crash of Apache', () => {
    const next = recover(files, log.slice(0, lastEntryAt + 20)).startAppending();
    next.append({ type: OpCode.error, error: -101 });
    next.settle();
    const logAfter = next.disk.peek(`${TEST_DIRECTORY}/log.6`)!;
    const apache = new Map([...files, ['log.6', logAfter]]);
    const torn = log.slice();
    torn.fill(0, lastEntryAt + 20);
    const host = recover(apache, torn);
    expect(host.failure).toBeNull();
    expect(host.database!.lastZxid).toBe(6);
    expect(host.eventsOf('log-tail-cut')).toEqual([]);
    expect(host.eventsOf('warning').map((event) => event.message)).toEqual([
      expect.stringMatching(`log.1 at position ${lastEntryAt}: an entry of \\d+ bytes is cut after`),
    ]);
  });
});

describe('a last file without entries', () => {
  const files = writtenDirectory(5);

  it.each([
    ['of no bytes', new Uint8Array(0)],
    ['of zeros', new Uint8Array(8192)],
    ['with part of a header', Uint8Array.of(0x5a, 0x4b, 0x4c)],
    ['with part of a header in front of zeros', Uint8Array.from({ length: 4096 }, (_, i) => (i === 0 ? 0x5a : 0))],
  ])('%s is removed and reported', (_what, bytes) => {
    const host = recover(new Map([...files, ['log.6', bytes]]), files.get('log.1')!);
    expect(host.failure).toBeNull();
    expect(host.database!.lastZxid).toBe(5);
    expect(host.disk.names(TEST_DIRECTORY)).not.toContain('log.6');
    expect(host.eventsOf('log-tail-cut')).toHaveLength(1);
  });

  // A killed process leaves its last write up to some byte: header and first batch are one write.
  it.each([0, 4096])(
    'with a header that stops at some byte, followed by %d zeros, is removed and reported',
    (zeros) => {
      // Zxid 5 before it, after which the file continues: ~5 as the dbid.
      const header = Uint8Array.of(0x5a, 0x4b, 0x4c, 0x47, 0, 0, 0, 2, 255, 255, 255, 255, 255, 255, 255, 250);
      const faults: string[] = [];
      for (let cut = 1; cut < header.length; cut++) {
        const bytes = new Uint8Array(zeros === 0 ? cut : header.length + zeros);
        bytes.set(header.subarray(0, cut));
        const host = recover(new Map([...files, ['log.6', bytes]]), files.get('log.1')!);
        const names = host.disk.names(TEST_DIRECTORY);
        // With zeros after its first half it is an empty file of Apache, which is kept.
        const isLeft = names.includes('log.6') && !(zeros > 0 && (cut === 8 || cut === 9));
        if (host.failure !== null || host.database?.lastZxid !== 5 || isLeft) {
          faults.push(`${cut} bytes: ${host.failure?.message ?? names.join(' ')}`);
        }
      }
      expect(faults).toEqual([]);
    },
  );

  it('is recreated under the same name by the next txn', () => {
    const header = files.get('log.1')!.slice(0, HEADER_BYTES);
    const host = recover(new Map([...files, ['log.6', header]]), files.get('log.1')!).startAppending();
    host.append({ type: OpCode.error, error: -101 });
    host.settle();
    host.disk.crash('nothing');
    expect(new StorageHost(host.disk, OPTIONS).recover().database!.lastZxid).toBe(6);
  });
});

describe('flipped bits in acknowledged entries', () => {
  const refused = /log\.1 at position \d+: .*does not start\. Restore/s;

  it('stop the start, whichever byte has changed, with file, position and what to do', () => {
    const log = writtenDirectory(6, littleData).get('log.1')!;
    const end = entryPositions(log).at(-1)!;
    for (let at = 0; at < end; at++) {
      // The dbid of the header carries no checksum and is not examined.
      if (at >= 8 && at < HEADER_BYTES) continue;
      for (const bit of [0, 3, 7]) {
        const rotten = log.slice();
        rotten[at] = rotten[at]! ^ (1 << bit);
        const { failure, disk } = read(rotten);
        expect(failure?.message, `bit ${bit} of byte ${at}`).toMatch(refused);
        expect(Buffer.from(disk.peek(LOG)!).equals(rotten), 'nothing is cut').toBe(true);
      }
    }
  });

  it('stop the start even where the data is all zeros, as if never written', () => {
    const log = writtenDirectory(4, () => new Uint8Array(1200)).get('log.1')!;
    const end = entryPositions(log).at(-1)!;
    for (let at = HEADER_BYTES; at < end; at += 5) {
      for (const bit of [0, 3, 7]) {
        const rotten = log.slice();
        rotten[at] = rotten[at]! ^ (1 << bit);
        expect(read(rotten).failure?.message, `bit ${bit} of byte ${at}`).toMatch(refused);
      }
    }
  });

  it('stop the start when whole bytes changed, even in the last entry', () => {
    const log = writtenDirectory(12).get('log.1')!;
    const positions = entryPositions(log);
    const dice = new Dice(5);
    for (let i = 0; i < 300; i++) {
      const entry = dice.below(positions.length - 1);
      const start = positions[entry]! + 12;
      const length = Math.min(1 + dice.below(20), positions[entry + 1]! - start - 1);
      const rotten = log.slice();
      for (let k = 0; k < length; k++) {
        const at = start + k;
        rotten[at] = (rotten[at]! + 1 + dice.below(254)) & 255 || 1;
      }
      if (rotten.every((byte, k) => byte === log[k])) continue;
      expect(read(rotten).failure?.message, `entry ${entry}`).toMatch(refused);
    }
  });

  it('stop the start when more follows than fits in one batch, although a unit is missing', () => {
    const log = writtenDirectory(40, () => new Uint8Array(500_000).fill(7)).get('log.1')!;
    const holed = log.slice();
    holed.fill(0, 1024, 1536);
    expect(read(holed).failure?.message).toMatch(/more follows \(\d+ bytes\) than a crash can leave/);
  });
});

describe('a hole in the sequence of zxids', () => {
  function withFiles(count: number, rollAt: number): Map<string, Uint8Array> {
    const options = { ...OPTIONS, logBytesMax: 1 };
    const host = new StorageHost(new MemoryDisk(), options).recover().startAppending();
    for (let i = 1; i <= count; i++) {
      host.append({ type: OpCode.error, error: -101 });
      if (i % rollAt === 0) host.settle();
    }
    host.settle();
    return new Map(host.disk.names(TEST_DIRECTORY).map((name) => [name, host.disk.peek(`${TEST_DIRECTORY}/${name}`)!]));
  }

  function start(files: ReadonlyMap<string, Uint8Array>): StorageHost {
    const disk = new MemoryDisk();
    for (const [name, bytes] of files) disk.poke(`${TEST_DIRECTORY}/${name}`, bytes);
    return new StorageHost(disk, OPTIONS).recover();
  }

  it('between two files stops the start', () => {
    const files = withFiles(15, 5);
    const names = ['acceptedEpoch', 'currentEpoch', 'durableZxid', 'log.1', 'log.6', 'log.b', 'snapshot.0'];
    expect([...files.keys()]).toEqual(names);
    expect(start(files).database?.lastZxid).toBe(15);
    files.delete('log.6');
    expect(start(files).failure?.message).toMatch(
      /log\.b at position 0: it continues after zxid 0xa, but the log has 0x5 before it: txns are missing/,
    );
  });

  it('between the snapshot and the log stops the start', () => {
    const files = withFiles(15, 5);
    files.delete('log.1');
    expect(start(files).failure?.message).toMatch(
      /log\.6 .*continues after zxid 0x5, but the snapshot ends with 0x0: txns are missing/,
    );
  });

  it('that a snapshot covers needs no log', () => {
    const host = new StorageHost(new MemoryDisk(), { ...OPTIONS, snapCount: 4 }).recover().startAppending();
    for (let i = 0; i < 30; i++) {
      host.append({ type: OpCode.error, error: -101 });
      host.settle();
    }
    host.disk.kill();
    const names = host.disk.names(TEST_DIRECTORY);
    const snapshots = names
      .filter((name) => name.startsWith('snapshot.'))
      .map((name) => Number.parseInt(name.slice(9), 16));
    const newest = Math.max(...snapshots);
    for (const name of names) {
      if (name.startsWith('log.') && Number.parseInt(name.slice(4), 16) <= newest / 2)
        host.disk.remove(`${TEST_DIRECTORY}/${name}`, () => {});
    }
    const restarted = new StorageHost(host.disk, OPTIONS).recover();
    expect(restarted.failure).toBeNull();
    expect(restarted.database!.lastZxid).toBe(30);
  });
});
