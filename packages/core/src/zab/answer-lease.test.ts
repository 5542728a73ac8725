import { describe, expect, test } from 'vitest';
import { Electorate } from '../election/electorate.ts';
import { makeQuorum } from '../election/quorum.ts';
import { LeaderLease, LearnerLease } from './answer-lease.ts';

const LEASE_MS = 400;

function leaderOf(voters: readonly number[], leaseMs = LEASE_MS): LeaderLease {
  return new LeaderLease(1, new Electorate(makeQuorum({ voters })), leaseMs);
}

describe('the lease of a leader', () => {
  test('is counted from when the pings were sent that a quorum has answered, not from the answers', () => {
    const lease = leaderOf([1, 2, 3, 4, 5]);
    expect(lease.untilMs).toBe(Number.NEGATIVE_INFINITY);
    lease.onAnswered(2, 100);
    expect(lease.untilMs).toBe(Number.NEGATIVE_INFINITY);
    lease.onAnswered(3, 50);
    expect(lease.untilMs).toBe(50 + LEASE_MS);
    lease.onAnswered(2, 1000);
    expect(lease.untilMs).toBe(50 + LEASE_MS);
    lease.onAnswered(4, 900);
    expect(lease.untilMs).toBe(900 + LEASE_MS);
  });

  test('does not end earlier when a voter disconnects', () => {
    const lease = leaderOf([1, 2, 3]);
    lease.onAnswered(2, 100);
    lease.forget(2);
    expect(lease.untilMs).toBe(100 + LEASE_MS);
  });

  test('has no end if the leader is a quorum by itself, or there are no leases', () => {
    expect(leaderOf([1]).untilMs).toBe(Number.POSITIVE_INFINITY);
    expect(leaderOf([1, 2, 3], 0).untilMs).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('the lease of a learner', () => {
  test('counts from its last answer, once that is confirmed', () => {
    const lease = new LearnerLease();
    lease.begin(LEASE_MS);
    lease.onAnswering(100, true);
    expect(lease.untilMs).toBe(Number.NEGATIVE_INFINITY);
    lease.onConfirmed();
    expect(lease.untilMs).toBe(100 + LEASE_MS);
    lease.onAnswering(700, true);
    expect(lease.untilMs).toBe(100 + LEASE_MS);
    lease.onConfirmed();
    expect(lease.untilMs).toBe(700 + LEASE_MS);
  });

  test('does not count from an answer that did not name all sessions', () => {
    const lease = new LearnerLease();
    lease.begin(LEASE_MS);
    lease.onAnswering(100, true);
    lease.onAnswering(200, false);
    lease.onConfirmed();
    expect(lease.untilMs).toBe(Number.NEGATIVE_INFINITY);
  });

  test('has no end if the leader grants none', () => {
    const lease = new LearnerLease();
    expect(lease.untilMs).toBe(Number.POSITIVE_INFINITY);
    lease.begin(0);
    expect([lease.untilMs, lease.isHeld]).toEqual([Number.POSITIVE_INFINITY, false]);
  });
});

describe('while members change', () => {
  test('a leader left alone by a membership change has no lease limit, and has one again once others join', () => {
    const electorate = new Electorate(makeQuorum({ voters: [1, 2] }));
    const lease = new LeaderLease(1, electorate, 100);
    lease.onAnswered(2, 1000);
    expect(lease.untilMs).toBe(1100);
    electorate.change(makeQuorum({ voters: [1] }), null);
    lease.onElectorateChanged(1050);
    expect(lease.untilMs).toBe(Number.POSITIVE_INFINITY);
    electorate.change(makeQuorum({ voters: [1] }), makeQuorum({ voters: [1, 3] }));
    lease.onElectorateChanged(2000);
    expect(lease.untilMs).toBe(2100);
    lease.onAnswered(3, 2050);
    expect(lease.untilMs).toBe(2150);
  });

  test('while a change is proposed, voters of both memberships have to answer', () => {
    const electorate = new Electorate(makeQuorum({ voters: [1, 2, 3] }));
    const lease = new LeaderLease(1, electorate, 100);
    lease.onAnswered(2, 1000);
    electorate.change(makeQuorum({ voters: [1, 2, 3] }), makeQuorum({ voters: [1, 4, 5] }));
    lease.onElectorateChanged(1010);
    lease.onAnswered(2, 1050);
    expect(lease.untilMs).toBe(1100);
    lease.onAnswered(4, 1060);
    expect(lease.untilMs).toBe(1150);
  });
});
