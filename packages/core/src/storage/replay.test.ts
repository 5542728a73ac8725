import {
  type Acl,
  JuteReader,
  JuteWriter,
  OPEN_ACL,
  OpCode,
  READ_ACL,
  readTxnEntry,
  type Txn,
  writeTxn,
  writeTxnDigest,
  type Zxid,
} from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TraceEvent } from '../base/ports.ts';
import { describeDatabase, StorageHost } from '../testing/storage-host.ts';
import { Database } from '../tree/database.ts';
import { SILENT_EVENTS } from '../tree/tree-events.ts';
import { Replay } from './replay.ts';

const TREE_OPTIONS = { digestEnabled: true, extendedTypesEnabled: true };
const NO_TRACE = { emit: () => {} };

interface CreateOptions {
  readonly data?: Uint8Array | null;
  readonly acl?: readonly Acl[];
  readonly isEphemeral?: boolean;
  readonly parentCversion?: number;
}

function create(path: string, options: CreateOptions = {}): Txn {
  return {
    type: OpCode.create,
    path,
    data: null,
    acl: OPEN_ACL,
    isEphemeral: false,
    parentCversion: -1,
    ...options,
  };
}

/** The payload of a txn, preceded by some other bytes. */
function payload(zxid: number, txn: Txn, digest: bigint | null = null): JuteReader {
  const writer = new JuteWriter();
  writer.long(-1);
  writeTxn(writer, { sessionId: 7n, cxid: 1, zxid: zxid as Zxid, time: 1_700_000_000_000 + zxid }, txn);
  if (digest !== null) writeTxnDigest(writer, 2, digest);
  const reader = new JuteReader();
  reader.reset(writer.bytes, 8, writer.position);
  return reader;
}

describe('the replay of a log', () => {
  it('has the same result for any creates as decoding and applying them, digests and sizes included', () => {
    const name = fc.constantFrom('a', 'b', 'ü', 'zookeeper', 'zookeeperish', 'quota', 'zookeeper_limits');
    const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => `/${names.join('/')}`);
    const options = fc.record({
      data: fc.option(fc.uint8Array({ maxLength: 100, size: 'max' })),
      acl: fc.constantFrom(OPEN_ACL, OPEN_ACL, READ_ACL),
      isEphemeral: fc.nat(5).map((n) => n === 0),
      parentCversion: fc.integer({ min: -1, max: 6 }),
    });
    fc.assert(
      fc.property(fc.array(fc.tuple(path, options), { maxLength: 40, size: 'max' }), (creates) => {
        const replayed = new Database(TREE_OPTIONS, NO_TRACE);
        const applied = new Database(TREE_OPTIONS, NO_TRACE);
        const replay = new Replay(replayed, null, NO_TRACE);
        for (const [i, [createdPath, createOptions]] of creates.entries()) {
          // Every third zxid is repeated, as when a fuzzy snapshot already contains the txn.
          const zxid = 1 + i - (i % 3 === 2 ? 1 : 0);
          const txn = create(createdPath, createOptions);
          expect(replay.apply(payload(zxid, txn))).toBe(true);
          const entry = readTxnEntry(payload(zxid, txn))!;
          applied.apply(entry.header, entry.txn, SILENT_EVENTS);
        }
        expect(replay.txns).toBe(creates.length);
        expect(describeDatabase(replayed)).toBe(describeDatabase(applied));
        expect(replayed.tree.treeDigest()).toBe(applied.tree.treeDigest());
        expect(replayed.tree.approximateDataSize).toBe(applied.tree.approximateDataSize);
        expect(replayed.tree.count).toBe(applied.tree.count);
        expect(replayed.lastZxid).toBe(applied.lastZxid);
      }),
    );
  });

  it('records no digests where they are off', () => {
    const database = new Database({ ...TREE_OPTIONS, digestEnabled: false }, NO_TRACE);
    const replay = new Replay(database, null, NO_TRACE);
    replay.apply(payload(1, create('/a', { data: Uint8Array.of(1) })));
    expect(database.tree.treeDigest()).toBe(0n);
    expect(database.tree.znodes.digestOf(database.tree.znodes.find('/a'))).toBe(0);
    expect(database.tree.dataOf(database.tree.znodes.find('/a'))).toEqual(Uint8Array.of(1));
  });

  it('reports once that the digest of a create differs from the tree, and again after it has matched', () => {
    const trace: TraceEvent[] = [];
    const database = new Database(TREE_OPTIONS, NO_TRACE);
    const model = new Database(TREE_OPTIONS, NO_TRACE);
    const start = { zxid: 0, version: 2, treeDigest: database.tree.treeDigest() };
    const replay = new Replay(database, start, { emit: (event) => void trace.push(event) });
    const digestError = [0n, 1n, 5n, 0n, 0n, -3n];
    for (const [i, error] of digestError.entries()) {
      const txn = create(`/n${i}`);
      const { header } = readTxnEntry(payload(i + 1, txn))!;
      model.apply(header, txn, SILENT_EVENTS);
      replay.apply(payload(i + 1, txn, model.tree.treeDigest() + error));
    }
    const mismatches = trace.filter((event) => event.kind === 'digest-mismatch');
    expect(mismatches.map(({ zxid }) => zxid)).toEqual([2, 6]);
  });

  // An Apache server computes the same numbers in a directory of its own in which both are wrong.
  it.each([
    ['is right in the log', 0n, [2]],
    ['is wrong there too', 5n, [2, 2]],
  ] as const)('reports that the digest of the snapshot differs, which %s', (_, error, expected) => {
    const trace: TraceEvent[] = [];
    const model = new Database(TREE_OPTIONS, NO_TRACE);
    const payloads = ['/a', '/b', '/c'].map((path, i) => {
      const { header } = readTxnEntry(payload(i + 1, create(path)))!;
      model.apply(header, create(path), SILENT_EVENTS);
      return { treeDigest: model.tree.treeDigest(), zxid: i + 1, path };
    });
    const start = { zxid: 2, version: 2, treeDigest: payloads[1]!.treeDigest + 5n };
    const replay = new Replay(new Database(TREE_OPTIONS, NO_TRACE), start, { emit: (event) => void trace.push(event) });
    for (const { zxid, path, treeDigest } of payloads) {
      replay.apply(payload(zxid, create(path), zxid === 2 ? treeDigest + error : treeDigest));
    }
    const mismatches = trace.filter((event) => event.kind === 'digest-mismatch');
    expect(mismatches.map(({ zxid }) => zxid)).toEqual(expected);
  });

  it('rejects what is not a txn', () => {
    const replay = new Replay(new Database(TREE_OPTIONS, NO_TRACE), null, NO_TRACE);
    const cut = payload(1, create('/a'));
    cut.end -= 10;
    expect(replay.apply(cut)).toBe(false);
    expect(replay.txns).toBe(0);
  });

  it('reads entries of every size across slice boundaries', () => {
    const host = new StorageHost().recover().startAppending();
    // Some hundred KiB of small entries, then some that exceed a slice or leave a long rest of one.
    const sizes = [...Array<number>(3000).fill(100), 300_000, 5, 200_000, 90_000, 90_000, 90_000, 700_000, 5];
    for (const [i, size] of sizes.entries()) {
      host.append(create(`/n${i}`, { data: new Uint8Array(size).fill(i), parentCversion: i + 2 }));
      if (i % 100 === 0) host.settle();
    }
    host.settle();
    host.disk.kill();
    const again = new StorageHost(host.disk).recover();
    expect(again.failure).toBeNull();
    expect(again.summary?.txns).toBe(sizes.length);
    expect(again.eventsOf('digest-mismatch')).toEqual([]);
    expect(describeDatabase(again.database!)).toBe(describeDatabase(host.database!));
  });
});
