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
  /** What the servers hold at the end, after healing, when nothing is under way. Default: not looked at. */
  readonly finalStates?: readonly FinalState[];
  /** The tree that the first of the committed txns found. Default: an empty one. */
  readonly base?: CommittedBase;
  /** The largest txn that the servers may propose, header and digest included. Default: 2 * 0xfffff. */
  readonly txnBytesMax?: number;
  /** Milliseconds that a change may take from a connection to the program. Default 5000. */
  readonly watchGraceMs?: number;
  /** The history says when leaders have ended sessions. Default false: then nobody asks why a session was refused. */
  readonly knowsExpiries?: boolean;
  /** Servers refuse what exceeds a quota. Default false. */
  readonly enforcesQuota?: boolean;
  /** Sessions may be known to one server alone (`localSessionsEnabled`). Default false. */
  readonly hasLocalSessions?: boolean;
  /** Violations that are kept. Default 100. */
  readonly violationsMax?: number;
  /** Promises that are not looked after. Default: none. */
  readonly without?: readonly string[] | undefined;
}

/**
 * Judges what clients did and saw against what was committed, once a run is over.
 *
 * @param committed everything behind the base, in order; `LiveChecker.committed`
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

/** The tree behind these txns, as the base of those that follow. */
export function foldCommitted(committed: readonly TxnEntry[], base?: CommittedBase): CommittedBase {
  return new CommittedTree(committed, () => {}, base).base;
}
