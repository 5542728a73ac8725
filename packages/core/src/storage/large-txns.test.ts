/** Any txn that the log and the snapshots accept, however large, is read at the next start. */
import { type Acl, OPEN_ACL, OpCode, type Txn, txnBytesMaxOf } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StorageHost } from '../testing/storage-host.ts';
import type { Database } from '../tree/database.ts';
import { MemoryDisk } from './memory-disk.ts';

const TXN_BYTES_MAX = txnBytesMaxOf(0xfffff, null);
const KIB = 1024;

/** Lengths around what is read and joined at once, up to the maximum length of a txn. */
const bytes = fc.oneof(
  fc.nat(2000),
  fc.constantFrom(64, 256, 512, 1024).chain((kib) => fc.integer({ min: kib * KIB - 60, max: kib * KIB + 60 })),
  fc.integer({ min: TXN_BYTES_MAX - 300, max: TXN_BYTES_MAX - 200 }),
);

type Kind = 'data' | 'path' | 'acl' | 'list' | 'paths' | 'multi' | 'session';

const spec = fc.record({
  kind: fc.constantFrom<Kind>('data', 'path', 'acl', 'list', 'paths', 'multi', 'session'),
  length: bytes,
});

/** A txn whose largest part takes about `length` bytes. @param count children the root has had, this one included */
function txnOf({ kind, length }: { readonly kind: Kind; readonly length: number }, count: number): Txn {
  switch (kind) {
    case 'data':
      return create('/data', count, { data: new Uint8Array(length).fill(7) });
    case 'path':
      return create(`/${'p'.repeat(length)}`, count);
    case 'acl':
      return create('/acl', count, { acl: [{ perms: 31, scheme: 'digest', id: 'i'.repeat(length) }] });
    case 'list':
      return create('/list', count, { acl: entries(Math.ceil(length / 23)) });
    case 'paths':
      return { type: OpCode.closeSession, paths: new Array(Math.ceil(length / 6)).fill('/x') };
    case 'multi': {
      const setData = { type: OpCode.setData, path: '/m', data: new Uint8Array(length).fill(8), version: 1 };
      return { type: OpCode.multi, txns: [create('/m', count), setData] };
    }
    case 'session':
      return { type: OpCode.createSession, timeoutMs: length };
  }
}

function create(path: string, parentCversion: number, more: { data?: Uint8Array; acl?: readonly Acl[] } = {}) {
  const { data = null, acl = OPEN_ACL } = more;
  return { type: OpCode.create, path, data, acl, isEphemeral: false, parentCversion };
}

function entries(count: number): readonly Acl[] {
  return Array.from({ length: count }, (_, i) => ({ perms: 31, scheme: 'ip', id: `10.${i % 100}` }));
}

/** State that the digest does not cover. */
function shapeOf(database: Database): unknown {
  const { tree, sessions, lastZxid } = database;
  const acls = tree.acls.entries().map(([, list]) => list);
  const lists = acls.filter(([entry]) => entry?.perms !== 0).map((list) => JSON.stringify(list));
  return { lastZxid, digest: tree.treeDigest(), count: tree.count, sessions: [...sessions], lists: lists.sort() };
}

function restarted(host: StorageHost): StorageHost {
  host.disk.kill();
  const next = new StorageHost(host.disk).recover();
  expect(next.failure).toBeNull();
  return next;
}

describe('a start', () => {
  it('reads everything that was written, from the log and from snapshots', () => {
    fc.assert(
      fc.property(
        fc.array(spec, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 2, max: 8 }),
        (specs, snapCount) => {
          const host = new StorageHost(new MemoryDisk(), { snapCount }).recover().startAppending();
          host.storage.allowSnapshots();
          for (const [i, one] of specs.entries()) {
            host.append(txnOf(one, i + 1), { sessionId: BigInt(i) });
            host.settle();
          }
          const written = shapeOf(host.database!);
          expect(shapeOf(restarted(host).database!)).toEqual(written);
        },
      ),
      { numRuns: 20 },
    );
  });

  it('reads an entry that is longer than any that is proposed now', () => {
    // As written by servers without a limit: the end of a session with 30,000 ephemerals of long names.
    const host = new StorageHost().recover().startAppending();
    const paths = Array.from({ length: 30_000 }, (_, i) => `/${i}${'n'.repeat(2300)}`);
    host.append({ type: OpCode.createSession, timeoutMs: 4000 });
    host.append({ type: OpCode.closeSession, paths });
    host.append(create('/after', 1));
    host.settle();
    expect(restarted(host).summary).toMatchObject({ lastZxid: 3, txns: 3 });
  });
});
