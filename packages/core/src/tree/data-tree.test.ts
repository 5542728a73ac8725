import { JuteWriter, makeZxid, OPEN_ACL, OpCode, type Txn, type TxnHeader } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { DataTree, SILENT_EVENTS } from './data-tree.ts';

const QUIET = { emit() {} };

describe('a fresh tree', () => {
  const tree = new DataTree({ extendedTypesEnabled: false, digestEnabled: true }, QUIET);

  it('has the four system znodes, counts five as Apache does, and has the digest that Apache has', () => {
    expect(tree.count).toBe(5);
    expect(tree.treeDigest()).toBe(1371985504n);
    expect(tree.approximateDataSize).toBe(44);
    for (const path of ['/', '', '/zookeeper', '/zookeeper/quota', '/zookeeper/config'])
      expect(tree.find(path)).toBeGreaterThan(0);
  });
});

describe('apply', () => {
  it('creates', () => {
    const tree = new DataTree({ extendedTypesEnabled: false, digestEnabled: true }, QUIET);
    const header: TxnHeader = { sessionId: 5n, cxid: 1, zxid: makeZxid(0, 1), time: 1000 };
    const txn: Txn = {
      type: OpCode.create,
      path: '/a',
      data: new Uint8Array([1, 2, 3]),
      acl: OPEN_ACL,
      isEphemeral: true,
      parentCversion: 1,
    };
    const r = tree.apply(header, txn, SILENT_EVENTS);
    expect(r.error).toBe(0);
    const w = new JuteWriter();
    tree.writeDataAndStat(r.znode, w);
    expect(w.position).toBe(75);
    expect(tree.ephemeralsOf(5n)).toEqual(['/a']);
    tree.apply({ ...header, zxid: makeZxid(0, 2) }, { type: OpCode.closeSession, paths: null }, SILENT_EVENTS);
    expect(tree.find('/a')).toBe(0);
  });
});
