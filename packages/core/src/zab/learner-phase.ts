/**
 * Phases in which a follower or an observer synchronizes with its leader.
 *
 *     connecting ─ FOLLOWERINFO ─► discovery ─ LEADERINFO(e) ─► accepting ─ ACKEPOCH ─► choosing
 *                                                                                          │
 *            ┌── DIFF: keep all, TRUNC(z): cut behind z ───────────────────────────────────┤
 *            │                      receiving ◄─ SNAP(z): the whole database ──────────────┘
 *            ▼                          │
 *        preparing ◄────────────────────┘       own history becomes a prefix of the leader's; link paused
 *            │
 *        catching-up    PROPOSAL, COMMIT, INFORM …  into the log as they come
 *            │  NEWLEADER(e)
 *        securing       all of it durable, then currentEpoch := e, then ACK(e,0)
 *            │
 *        waiting        ACK of txns that are not committed yet, and from here on of every proposal
 *            │  UPTODATE
 *        finishing      until everything committed so far is reported as committed, then ACK(e,0) again
 *            ▼
 *        broadcast      clients are served
 *
 * Each may end in `stopped`. `accepting` is skipped if the epoch was accepted before.
 */
export type LearnerPhase =
  | 'connecting'
  | 'discovery'
  | 'accepting'
  | 'choosing'
  | 'receiving'
  | 'preparing'
  | 'catching-up'
  | 'securing'
  | 'waiting'
  | 'finishing'
  | 'broadcast'
  | 'stopped';

/** True once the learner's history is a prefix of the leader's that incoming txns continue. */
export function takesTxns(phase: LearnerPhase): boolean {
  return phase === 'catching-up' || hasNewLeader(phase);
}

/** True once NEWLEADER has arrived: what follows is of the leader's own epoch. */
export function hasNewLeader(phase: LearnerPhase): boolean {
  return phase === 'securing' || hasAdopted(phase);
}

/** True once NEWLEADER has been acknowledged. */
export function hasAdopted(phase: LearnerPhase): boolean {
  return phase === 'waiting' || isUpToDate(phase);
}

/** True once UPTODATE has arrived. */
export function isUpToDate(phase: LearnerPhase): boolean {
  return phase === 'finishing' || phase === 'broadcast';
}

/** True while the learner waits for its own disk: the leader may be silent then. */
export function waitsForDisk(phase: LearnerPhase): boolean {
  return phase === 'accepting' || phase === 'preparing' || phase === 'securing';
}
