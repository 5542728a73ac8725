import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Mutant } from './mutant.ts';
import { readMutations } from './mutation.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const MUTATIONS = readMutations(join(ROOT, 'packages/simulator/mutations'));

/** Each case is tried with these seeds, until one of them breaks a promise: a change elsewhere moves what happens in each. */
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];

/** Which promise is found broken when what holds it is taken away, in which worlds, and which seed was found to do it. */
const CASES: readonly (readonly [invariant: string, mutation: string, options: string, seed: number])[] = [
  ['A1', 'multi-stats-grow-once', '--faults none --rate 20', 1],
  ['A2', 'snapshot-not-synced', '--faults crash,power --minutes 0.3', 1],
  ['E5', 'epoch-directory-not-synced', '--faults power,restart-all', 1],
  ['E6', 'own-accepted-epoch-ignored', '--faults crash,power,isolate,one-way,port --minutes 0.5', 1],
  ['E8', 'commit-by-the-leader-alone', '--faults slow', 1],
  ['E10', 'votes-of-older-rounds-counted', '--faults crash,isolate,break,one-way --minutes 0.5', 4],
  ['Z4', 'follower-applies-before-commit', '--faults crash', 1],
  ['Z14', 'commits-between-newleader-and-uptodate', '--faults crash,isolate,break --minutes 0.5 --rate 20', 3],
  ['Z17', 'digest-of-refused-multi', '--faults crash', 1],
  ['D1', 'log-not-synced', '--faults crash', 1],
  ['D5', 'purge-one-log-too-many', '--faults none --traits purge', 1],
  ['D7', 'follower-applies-before-durable', '--faults crash,disk-slow', 1],
  ['D8', 'log-directory-not-synced', '--faults power,restart-all --minutes 0.5', 1],
  ['S3', 'close-session-without-paths', '--faults none --minutes 0.5', 1],
  ['S4', 'learners-sessions-not-touched', '--faults none', 1],
  ['S8', 'session-heard-of-once', '--faults none', 1],
  ['L4', 'silent-learner-waited-for', '--faults isolate,partition --minutes 0.5', 1],
  ['L1', 'no-quorum-is-one', '--faults none', 1],
  ['L3', 'unlogged-waits-for-log', '--faults none --observers 1 --traits lazy-observers', 1],
  ['C1', 'reads-overtake-writes', '--faults none', 1],
  ['C2', 'client-says-no-zxid', '--faults break,disk-stall --minutes 0.5 --rate 20', 2],
  ['C4', 'check-without-read', '--faults none --traits acls --rate 20', 1],
  ['C7', 'read-without-permission', '--faults none --traits acls --rate 20', 1],
  ['W1', 'watch-event-behind-reply', '--faults none', 1],
  ['W3', 'data-watches-not-armed-again', '--faults break,isolate --minutes 0.3', 1],
  ['W4', 'client-waits-for-data-not-exist', '--faults break --minutes 0.5', 1],
  ['W6', 'prepare-sees-applied-tree-only', '--faults none', 1],
  ['W8', 'ttl-cut-short', '--faults none --traits collectables', 1],
  ['W9', 'quota-not-given-back', '--faults none --traits quotas --rate 20', 1],
  ['W7', 'half-a-persistent-watch', '--faults break,isolate --minutes 0.5', 1],
];

/** A case takes a second or two; a machine that has other things to do may take as long as it likes. */
const TIMEOUT_MS = 600_000;

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-mutants-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe.concurrent('the checkers find', () => {
  test.each(CASES)(
    '%s broken by %s',
    async (invariant, id, options, first) => {
      const mutation = MUTATIONS.find((known) => known.id === id)!;
      const mutant = await Mutant.make(ROOT, directory, mutation);
      const found: string[] = [];
      for (const seed of new Set([first, ...SEEDS])) {
        const words = `--seed ${seed} --servers 3 --minutes 0.2 --traits none ${options}`.split(' ');
        const { broken } = await mutant.run(words);
        if (broken.includes(invariant)) return;
        found.push(`seed ${seed}: ${broken.join(', ') || 'nothing'}`);
      }
      expect.unreachable(`${invariant} is not found; ${found.join('; ')}`);
    },
    TIMEOUT_MS,
  );
});

test(
  'and nothing where nothing was taken away',
  async () => {
    const original = await Mutant.make(ROOT, directory, null);
    const { broken, output } = await original.run(['--seeds', '1..2', '--servers', '3', '--minutes', '0.5']);
    expect(broken, output).toEqual([]);
  },
  TIMEOUT_MS,
);
