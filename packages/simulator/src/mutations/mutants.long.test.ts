import { type MutantCase, testMutants } from '../testing/mutants.ts';

const CASES: readonly MutantCase[] = [
  ['A2', 'snapshot-not-synced', '--faults crash,power --minutes 0.3', 1],
  ['A3', 'previous-log-left-open', '--faults none --traits small-logs --minutes 0.3', 1],
  ['A4', 'nobody-to-feed', '--faults none --traits short-memory,observer-masters --minutes 0.3', 1],
  ['A5', 'lease-untold-over-a-new-connection', '--faults restart-all,isolate,one-way --servers 5 --rate 1', 11],
  ['E6', 'own-accepted-epoch-ignored', '--faults crash,power,isolate,one-way,port --minutes 0.5', 1],
  ['Z14', 'commits-between-newleader-and-uptodate', '--faults crash,isolate,break --minutes 0.5 --rate 20', 3],
  ['D5', 'purge-one-log-too-many', '--faults none --traits purge', 1],
  ['D7', 'follower-applies-before-durable', '--faults crash,disk-slow', 1],
  ['D8', 'log-directory-not-synced', '--faults power,restart-all --minutes 0.5', 1],
  ['L1', 'no-quorum-is-one', '--faults none', 1],
  ['L2', 'unlogged-waits-for-log', '--faults none --observers 1 --traits lazy-observers', 1],
  ['L3', 'sync-answered-by-the-next', '--faults none', 1],
  ['S9', 'expiry-keeps-its-place', '--faults pause,crash --minutes 0.6', 1],
  ['S10', 'sure-from-what-was-sent', '--servers 1 --faults isolate,one-way --minutes 0.4', 1],
  ['S12', 'dead-thread-keeps-streams', '--traits io-threads --faults slow', 1],
  ['C2', 'client-says-no-zxid', '--faults break,disk-stall --minutes 0.5 --rate 20', 6],
  ['C7', 'read-without-permission', '--faults none --traits acls --rate 20', 1],
  ['W3', 'data-watches-not-armed-again', '--faults break,isolate --minutes 0.3', 1],
  ['W4', 'client-waits-for-data-not-exist', '--faults break --minutes 0.5', 1],
  ['W6', 'prepare-sees-applied-tree-only', '--faults none', 1],
  ['W7', 'half-a-persistent-watch', '--faults break,isolate --minutes 0.5', 1],
  ['W8', 'ttl-cut-short', '--faults none --traits collectables', 1],
  ['R5', 'committed-membership-not-shown', '--spares 2 --faults crash', 1],
  ['R7', 'membership-files-stay-stale', '--spares 2 --faults crash', 1],
  ['W9', 'quota-not-given-back', '--faults none --traits quotas --rate 20', 1],
  ['W10', 'watches-outlive-connection', '--faults break --minutes 0.3', 1],
];

testMutants(CASES);
