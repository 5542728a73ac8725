/** Files written by an Apache server are read; files written here equal, byte for byte, those of an Apache server. */
import { readdirSync, readFileSync } from 'node:fs';
import { JuteReader, OpCode, readTxnEntry, type TxnEntry, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { describeDatabase, StorageHost, TEST_DIRECTORY } from '../testing/storage-host.ts';
import { Database } from '../tree/database.ts';
import { SILENT_EVENTS } from '../tree/tree-events.ts';
import { MemoryDisk } from './memory-disk.ts';
import { TxnLog } from './txn-log.ts';

const FIXTURES = new URL('fixtures/apache-3.8.0/', import.meta.url);

function fixture(name: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(name, FIXTURES)));
}

function diskWith(...names: string[]): MemoryDisk {
  const disk = new MemoryDisk();
  for (const name of names) disk.poke(`${TEST_DIRECTORY}/${name}`, fixture(name));
  return disk;
}

/** An independent reader, as short as the format allows: it trusts the file. */
function entriesOf(bytes: Uint8Array): TxnEntry[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries: TxnEntry[] = [];
  for (let at = 16; at + 12 < bytes.length && view.getInt32(at + 8) > 0; ) {
    const end = at + 12 + view.getInt32(at + 8);
    const reader = new JuteReader(bytes);
    reader.reset(bytes, at + 12, end);
    entries.push(readTxnEntry(reader)!);
    at = end + 1;
  }
  return entries;
}

describe("a directory of Apache's server", () => {
  it('opens with every txn of its log, and the digests in the log agree with the tree', () => {
    const host = new StorageHost(diskWith(...readdirSync(FIXTURES))).recover();
    expect(host.failure).toBeNull();
    const entries = [...entriesOf(fixture('log.1')), ...entriesOf(fixture('log.c'))];
    const lastZxid = entries.at(-1)!.header.zxid;
    expect(entries.map((entry) => entry.header.zxid)).toEqual(Array.from({ length: lastZxid }, (_, i) => i + 1));
    expect(host.summary).toMatchObject({ lastZxid, snapshot: { zxid: 0xa }, txns: lastZxid - 0xa, isNew: false });
    expect(host.eventsOf('digest-mismatch')).toEqual([]);
  });

  it('recovers the same database from its fuzzy snapshot as from its first one', () => {
    const fromNewest = new StorageHost(diskWith('snapshot.0', 'snapshot.a', 'log.1', 'log.c')).recover();
    const fromFirst = new StorageHost(diskWith('snapshot.0', 'log.1', 'log.c')).recover();
    expect(fromFirst.summary?.txns).toBeGreaterThan(fromNewest.summary!.txns);
    expect(describeDatabase(fromNewest.database!)).toBe(describeDatabase(fromFirst.database!));
    expect(fromFirst.eventsOf('digest-mismatch')).toEqual([]);
  });

  it('contains the digest of every txn, equal to that of a tree replayed from scratch', () => {
    const database = new Database({ extendedTypesEnabled: true, digestEnabled: true }, { emit() {} });
    for (const { header, txn, digest } of [...entriesOf(fixture('log.1')), ...entriesOf(fixture('log.c'))]) {
      database.apply(header, txn, SILENT_EVENTS);
      // A failed request changes nothing, and Apache logs no digest with it.
      if (digest === null) expect(txn.type).toBe(OpCode.error);
      else expect(database.tree.treeDigest(), `zxid 0x${header.zxid.toString(16)}`).toBe(digest.treeDigest);
    }
  });
});

describe('files written here', () => {
  it.each(['log.1', 'log.c'])(
    "equals Apache's %s except for the dbid, when its txns are appended one by one",
    (name) => {
      const disk = diskWith();
      disk.makeDirectory(TEST_DIRECTORY, () => {});
      const log = new TxnLog(
        { disk, clock: { monotonicMs: () => 0, wallMs: () => 0 }, trace: { emit() {} } },
        { logDirectory: TEST_DIRECTORY, preallocateBytes: 4096, logBytesMax: -1, forceSync: true, syncWarningMs: 1000 },
        { onSynced() {}, onLogFailed() {}, onLogClosed() {} },
      );
      const entries = entriesOf(fixture(name));
      log.follow((entries[0]!.header.zxid - 1) as Zxid);
      for (const { header, txn, digest } of entries) {
        log.append(header, txn, digest?.treeDigest ?? null);
        log.flush();
        disk.deliverAll();
      }
      const written = disk.peek(`${TEST_DIRECTORY}/${name}`)!;
      written.fill(0, 8, 16);
      expect(written).toEqual(fixture(name));
    },
  );

  it('a snapshot has the header and end of an Apache snapshot, and the part that 3.9 adds', () => {
    const disk = diskWith(...readdirSync(FIXTURES));
    const host = new StorageHost(disk).recover();
    host.startAppending();
    const { header } = host.append({ type: OpCode.createSession, timeoutMs: 4000 });
    host.settle();
    host.clock.nowMs = 10_000;
    host.storage.onTick(host.clock.nowMs);
    disk.deliverAll();
    const bytes = disk.peek(`${TEST_DIRECTORY}/snapshot.${header.zxid.toString(16)}`)!;
    expect(bytes.subarray(0, 16)).toEqual(fixture('snapshot.a').subarray(0, 16));
    // Counted from the end: seal, last zxid, seal, digest, seal.
    const lastSealAt = bytes.length - 13;
    const digestSealAt = lastSealAt - 8 - 13;
    const bodySealAt = digestSealAt - 20 - 13;
    for (const at of [bodySealAt, digestSealAt, lastSealAt])
      expect(bytes.subarray(at, at + 13)).toEqual(sealOf(bytes, at));
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const digestAt = bodySealAt + 13;
    expect(view.getBigInt64(digestAt)).toBe(BigInt(header.zxid));
    expect(view.getInt32(digestAt + 8)).toBe(2);
    expect(view.getBigInt64(digestAt + 12)).toBe(host.database!.tree.treeDigest());
    expect(view.getBigInt64(digestSealAt + 13)).toBe(BigInt(header.zxid));
    for (const name of ['snapshot.0', 'snapshot.a']) {
      const apache = fixture(name);
      const at = apache.length - 13;
      expect(apache.subarray(at), 'the test knows what a seal is').toEqual(sealOf(apache, at));
    }
  });
});

/** long Adler-32 of all bytes before `at`, by its definition; ustring "/". */
function sealOf(bytes: Uint8Array, at: number): Uint8Array {
  let a = 1;
  let b = 0;
  for (const byte of bytes.subarray(0, at)) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return Uint8Array.of(0, 0, 0, 0, b >> 8, b & 255, a >> 8, a & 255, 0, 0, 0, 1, 0x2f);
}
