import {
  type CommittedBase,
  checkHistory,
  type FinalState,
  foldCommitted,
  type History,
  type Violation,
} from '@meerkat/simulator';
import { composeCommitted, type LogsOfServer } from './committed-log.ts';

/** The evidence of one round, collected when the ensemble is at rest. */
export interface Evidence {
  /** What clients did and saw. */
  readonly history: History;
  readonly logs: readonly LogsOfServer[];
  /** For each epoch, the zxid after which its leader started it. */
  readonly established: ReadonlyMap<number, number>;
  /** What each server holds at the end. */
  readonly finalStates: readonly FinalState[];
  /** Digests that each server had at some zxids. */
  readonly digests: readonly { readonly server: number; readonly digests: ReadonlyMap<number, string> }[];
}

/**
 * Checks each round with the checkers of the simulator. Only the tree is kept between rounds.
 *
 * The simulator observes each commit; here the committed sequence is reconstructed from the logs.
 */
export class RunChecker {
  /** Where the last round ended; null before the first. */
  #base: CommittedBase | null = null;
  /** Number of checked txns. */
  txns = 0;

  /** Logs are needed from this zxid on. */
  get behind(): number {
    return this.#base?.zxid ?? 0;
  }

  check({ history, logs, established, finalStates, digests }: Evidence): readonly Violation[] {
    const last = Math.max(this.behind, ...finalStates.map(({ lastZxid }) => lastZxid));
    const { entries, violations } = composeCommitted(logs, this.behind, last, established);
    const base = this.#base ?? undefined;
    const options = base === undefined ? { finalStates } : { finalStates, base };
    const found = [...violations, ...compareDigests(digests), ...checkHistory(history, entries, options)];
    this.#base = foldCommitted(entries, base);
    this.txns += entries.length;
    return found.sort((a, b) => a.atMs - b.atMs);
  }
}

/** Servers that were at the same zxid had the same tree. */
function compareDigests(all: Evidence['digests']): readonly Violation[] {
  const known = new Map<number, { readonly server: number; readonly digest: string }>();
  const violations: Violation[] = [];
  for (const { server, digests } of all) {
    for (const [zxid, digest] of digests) {
      const first = known.get(zxid);
      if (first === undefined) known.set(zxid, { server, digest });
      else if (first.digest !== digest) {
        const message = `two trees at 0x${zxid.toString(16)}: server ${first.server} had ${first.digest}, server ${server} ${digest}`;
        violations.push({ invariant: 'Z17', message, servers: [first.server, server], atMs: 0 });
        break;
      }
    }
  }
  return violations;
}
