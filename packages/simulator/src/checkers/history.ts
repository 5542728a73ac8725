import type { TxnEntry } from '@meerkat/protocol';
import type { History } from '../history.ts';
import { ClientLog } from './client-log.ts';
import { type CommittedBase, CommittedTree } from './committed-tree.ts';
import { checkFinalStates, type FinalState } from './final-rules.ts';
import { checkOrder } from './order-rules.ts';
import { QuotaRules } from './quota-rules.ts';
import { ReadRules } from './read-rules.ts';
import { checkRefusals, checkSameness } from './session-rules.ts';
import { StirRules } from './stir-rules.ts';
import { type Violation, Violations } from './violation.ts';
import { WatchRules } from './watch-rules.ts';
import { WriteRules } from './write-rules.ts';

export interface CheckHistoryOptions {
  /** What the servers hold at the end, after healing, when nothing is in flight. Default: not checked. */
  readonly finalStates?: readonly FinalState[];
  /** The tree before the first of the committed txns. Default: an empty one. */
  readonly base?: CommittedBase;
  /** The largest txn that the servers may propose, header and digest included. Default: 2 * 0xfffff. */
  readonly txnBytesMax?: number;
  /** Milliseconds for a change to get from a connection to the program. Default 5000. */
  readonly watchGraceMs?: number;
  /** The history says when leaders expired sessions. Default false: refused sessions are then not checked. */
  readonly knowsExpiries?: boolean;
  /** Servers refuse what exceeds a quota. Default false. */
  readonly enforcesQuota?: boolean;
  /** Sessions may be known to one server alone (`localSessionsEnabled`). Default false. */
  readonly hasLocalSessions?: boolean;
  /** Violations that are kept. Default 100. */
  readonly violationsMax?: number;
  /** Invariants that are not checked. Default: none. */
  readonly without?: readonly string[] | undefined;
}

/**
 * Checks what clients did and saw against what was committed, once a run is over.
 *
 * @param committed everything after the base, in order; `LiveChecker.committed`
 */
export function checkHistory(
  history: History,
  committed: readonly TxnEntry[],
  options: CheckHistoryOptions = {},
): Violation[] {
  const endMs = history.entries[history.entries.length - 1]?.atMs ?? 0;
  const violations = new Violations(() => endMs, options.violationsMax, options.without);
  const tree = new CommittedTree(
    committed,
    (invariant, message) => violations.report(invariant, [], message),
    options.base,
    options.txnBytesMax,
  );
  const log = new ClientLog(history);
  checkOrder(log, violations);
  new WriteRules(log, tree, violations, options.hasLocalSessions ?? false).check();
  new ReadRules(log, tree, violations).check();
  new WatchRules(log, tree, violations, options.watchGraceMs ?? 5000).check();
  new StirRules(log, tree, violations).check();
  if (options.knowsExpiries === true) checkRefusals(history, tree, violations);
  checkSameness(history, violations);
  checkFinalStates(options.finalStates ?? [], tree, violations);
  const quotas = new QuotaRules(tree, violations);
  quotas.checkLimits(log, options.enforcesQuota ?? false);
  quotas.checkFinalStates(options.finalStates ?? []);
  return violations.list;
}

/** The tree after these txns, as the base of those that follow. */
export function foldCommitted(committed: readonly TxnEntry[], base?: CommittedBase): CommittedBase {
  return new CommittedTree(committed, () => {}, base).base;
}
