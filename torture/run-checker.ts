import {
  type CommittedBase,
  checkHistory,
  type FinalState,
  foldCommitted,
  type History,
  type Violation,
} from '@meerkat/simulator';
import { composeCommitted, type LogsOfServer } from './committed-log.ts';

/** What there is to know of a round that has come to rest. */
export interface Evidence {
  /** What clients did and saw. */
  readonly history: History;
  readonly logs: readonly LogsOfServer[];
  /** By epoch: the zxid behind which its leader has begun it. */
  readonly established: ReadonlyMap<number, number>;
  /** What each server holds at the end. */
  readonly finalStates: readonly FinalState[];
  /** Digests that each server had at some zxids. */
  readonly digests: readonly { readonly server: number; readonly digests: ReadonlyMap<number, string> }[];
}

/**
 * Checks one round after the other with the checkers of the simulator. Between two rounds only the tree is kept.
 *
 * What it adds to them is the committed sequence: the simulator sees each commit happen, here the logs are read.
 */
export class RunChecker {
  /** Where the last round has ended; null before the first. */
  #base: CommittedBase | null = null;
  /** Txns that were looked at. */
  txns = 0;

  /** Zxid from which on logs are of interest. */
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
