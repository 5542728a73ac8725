import { DIGEST_VERSION, type TxnDigest, type Zxid } from '@meerkat/protocol';
import type { Trace } from '../base/ports.ts';
import type { DataTree } from '../tree/data-tree.ts';

/**
 * Compares the digest of a learner's tree, after each txn, with that of the server that proposed the txn.
 *
 * Starts at the first match: after a fuzzy snapshot the learner's tree may be ahead for a while. A mismatch is traced
 * once, and again after a match. As in Apache's server, it has no other effect.
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
