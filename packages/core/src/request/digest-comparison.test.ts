import { DIGEST_VERSION } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { createTxn, ForwardingLearner } from '../testing/forwarding-learner.ts';

describe("the comparison of a learner's tree with the leader's", () => {
  const PATHS = ['/a', '/b', '/c', '/d', '/e', '/f'];

  /** @returns zxids of the reported mismatches when the learner receives right or wrong digests */
  function mismatches(isRight: readonly boolean[]): number[] {
    const reference = new ForwardingLearner();
    const learner = new ForwardingLearner();
    isRight.forEach((right, i) => {
      const txn = createTxn(PATHS[i]!);
      const zxid = reference.proposeTxn(0n, 0, txn);
      reference.commit(zxid);
      const treeDigest = reference.serving.database.tree.treeDigest() + (right ? 0n : 1n);
      learner.propose({
        header: { sessionId: 0n, cxid: 0, zxid, time: 0 },
        txn,
        digest: { version: DIGEST_VERSION, treeDigest },
      });
      learner.commit(zxid);
    });
    return learner.trace.flatMap((event) => (event.kind === 'digest-mismatch' ? [event.zxid] : []));
  }

  test('reports a mismatch once, and again after a match', () => {
    expect(mismatches([true, true, true])).toEqual([]);
    expect(mismatches([true, false, false, true, false])).toEqual([2, 5]);
  });

  test('starts at the first match', () => {
    expect(mismatches([false, false, true, true, false])).toEqual([5]);
    expect(mismatches([false, false])).toEqual([]);
  });
});
