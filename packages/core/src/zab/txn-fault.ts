import { counterOf, epochOf, hexZxid, type Zxid } from '@meerkat/protocol';
import { hasNewLeader, type LearnerPhase, takesTxns } from './learner-phase.ts';
import type { ReceivedProposals } from './received-proposals.ts';

export interface TxnFault {
  /** Human-readable; appended to the name of the txn. */
  readonly reason: string;
  /** Txns are missing before it: only a snapshot can synchronize the two histories. */
  readonly isGap: boolean;
}

/**
 * Why a txn from the leader is invalid; null when it is valid.
 *
 * @param epoch the leader's
 */
export function faultOfTxn(
  zxid: Zxid,
  phase: LearnerPhase,
  epoch: number,
  received: ReceivedProposals,
): TxnFault | null {
  if (!takesTxns(phase)) return { reason: ' before the synchronization has begun', isGap: false };
  if (zxid < 0 || counterOf(zxid) === 0) return { reason: ', which is no zxid of a txn', isGap: false };
  if (!received.follows(zxid)) {
    const reason = ` after ${hexZxid(received.last)}: its history has a gap`;
    return { reason, isGap: zxid > received.last };
  }
  if (epochOf(zxid) > epoch) return { reason: `, which is of a later epoch than its own, ${epoch}`, isGap: false };
  if (epochOf(zxid) === epoch || !hasNewLeader(phase)) return null;
  return { reason: ' of an older epoch behind NEWLEADER', isGap: false };
}
