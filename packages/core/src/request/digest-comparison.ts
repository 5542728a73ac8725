import { DIGEST_VERSION, type TxnDigest, type Zxid } from '@meerkat/protocol';
import type { Trace } from '../base/ports.ts';
import type { DataTree } from '../tree/data-tree.ts';

/**
 * Compares a learner's tree, after each txn, with that of the server that has proposed it.
 *
 * It begins where both are first the same: after a fuzzy snapshot the learner's may be ahead for a while. A difference
 * is told once, and again after it has gone; it stops nothing, as in Apache's server.
 */
export class DigestComparison {
  readonly #tree: DataTree;
  readonly #trace: Trace;
  #isSame = false;

  constructor(tree: DataTree, trace: Trace) {
    this.#tree = tree;
    this.#trace = trace;
  }

  onApplied(zxid: Zxid, digest: TxnDigest): void {
    if (digest.version !== DIGEST_VERSION) return;
    const sum = this.#tree.digestSum();
    const isSame = sum.isValue(digest.treeDigest);
    if (!isSame && this.#isSame) {
      this.#trace.emit({
        kind: 'digest-mismatch',
        zxid,
        expected: digest.treeDigest,
        actual: sum.toBigInt(),
      });
    }
    if (isSame && zxid < this.#tree.exactFrom) this.#tree.exactFrom = zxid;
    this.#isSame = isSame;
  }
}
