import type { EnsembleView } from '@meerkat/core';
import { type Membership, parseMembership } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { describeWait, type FailureAt } from './quorum-wait.ts';

const membership = parseMembership(
  'server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2:observer\nversion=0',
) as Membership;

function view(more: Partial<EnsembleView>): EnsembleView {
  return {
    membership,
    hosts: () => [],
    role: 'looking',
    leader: null,
    connectedServers: [],
    observerMaster: null,
    feedsObservers: false,
    learners: () => [],
    pendingSyncs: 0,
    rememberedTxns: 0,
    proposalSizes: null,
    ...more,
  };
}

const noFailure = (): null => null;

test('a server says how many of the voters it can reach, and which it cannot', () => {
  expect(describeWait(view({}), 1, noFailure)).toBe(
    'looks for a leader: 1 of 3 voting servers is reachable, this one included; without a connection: 2, 3',
  );
  expect(describeWait(view({ connectedServers: [3, 4] }), 1, noFailure)).toBe(
    'looks for a leader: 2 of 3 voting servers are reachable, this one included; without a connection: 2',
  );
  expect(describeWait(view({ connectedServers: [1, 2, 3] }), 4, noFailure)).toBe(
    'looks for a leader: 3 of 3 voting servers are reachable',
  );
});

test('a leader waits for its quorum, a follower for its leader', () => {
  expect(describeWait(view({ role: 'leading', leader: 1 }), 1, noFailure)).toContain('waits for a quorum to follow it');
  expect(describeWait(view({ role: 'following', leader: 3 }), 1, noFailure)).toContain('waits for server 3 to lead');
});

test('what is known about a server that cannot be reached stands behind it', () => {
  const failureAt: FailureAt = ({ host, port }) => (host === 'c' ? `nothing listens at ${host}:${port}` : null);
  expect(describeWait(view({}), 1, failureAt)).toContain('without a connection: 2, 3 (nothing listens at c:2)');
});
