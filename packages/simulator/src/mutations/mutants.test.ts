import { expect, test } from 'vitest';
import { type MutantCase, testMutants } from '../testing/mutants.ts';

/** One for each checker that is quick to find one; the others are in `mutants.long.test.ts`. */
const CASES: readonly MutantCase[] = [
  ['A1', 'multi-stats-grow-once', '--faults none --rate 20 --minutes 0.1', 1],
  ['E5', 'epoch-directory-not-synced', '--faults power,restart-all', 1],
  ['E8', 'commit-by-the-leader-alone', '--faults slow', 1],
  ['E10', 'votes-of-older-rounds-counted', '--faults crash,isolate,break,one-way --minutes 0.5', 4],
  ['Z4', 'follower-applies-before-commit', '--faults crash', 1],
  ['Z17', 'digest-of-refused-multi', '--faults crash', 1],
  ['D1', 'log-not-synced', '--faults crash', 1],
  ['S3', 'close-session-without-paths', '--faults none', 1],
  ['S4', 'learners-sessions-not-touched', '--faults none', 1],
  ['S8', 'session-reported-once', '--faults none', 1],
  ['S13', 'session-stays-elsewhere', '--faults none --minutes 0.05', 1],
  ['L4', 'silent-learner-waited-for', '--faults isolate,partition --minutes 0.5', 1],
  ['C1', 'reads-overtake-writes', '--faults none --minutes 0.05', 1],
  ['C4', 'check-without-read', '--faults none --traits acls --rate 20', 1],
  ['C8', 'sync-joins-begun-round', '--faults break --rate 20 --minutes 0.05', 1],
  ['W1', 'watch-event-behind-reply', '--faults none --minutes 0.05', 1],
];

const makeOriginal = testMutants(CASES);

test('and nothing where nothing was taken away', { timeout: 600_000 }, async () => {
  const original = await makeOriginal();
  const { broken, output } = await original.run(['--seeds', '1..2', '--servers', '3', '--minutes', '0.3']);
  expect(broken, output).toEqual([]);
});
