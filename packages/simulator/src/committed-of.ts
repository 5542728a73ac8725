import { JuteReader, readTxnEntry, type TxnEntry } from '@meerkat/protocol';
import { CommittedTree } from './checkers/committed-tree.ts';
import { readLogs } from './disk-reader.ts';
import type { VirtualEnsemble } from './virtual-ensemble.ts';

/**
 * The tree after each txn, rebuilt from the servers' logs, for programs that compare what they saw with what was there.
 * Once everything is healed and the ensemble is whole, its logs hold only committed txns, and all of them unless a disk
 * was wiped or has rotted.
 */
export function committedTree(ensemble: VirtualEnsemble): CommittedTree {
  const byZxid: Map<number, TxnEntry> = new Map();
  const reader = new JuteReader(undefined, 0x10000000);
  for (const { disk, options } of ensemble.servers) {
    for (const { zxid, payload } of readLogs(disk, options.logDirectory)) {
      if (byZxid.has(zxid)) continue;
      reader.reset(payload, 0, payload.length);
      const entry = readTxnEntry(reader);
      if (entry !== null) byZxid.set(zxid, entry);
    }
  }
  const committed = [...byZxid.values()].sort((a, b) => a.header.zxid - b.header.zxid);
  return new CommittedTree(committed, (invariant, message) => {
    throw new Error(`${invariant}: ${message}`);
  });
}
