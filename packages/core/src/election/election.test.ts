import {
  announcedLease,
  leaseMsOf,
  makeZxid,
  ServerState,
  VOTE_NONE,
  ZXID_NONE,
  ZXID_VOTE_NONE,
} from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FIVE, TestElection, THREE } from '../testing/test-election.ts';

describe('rounds', () => {
  it('are joined when they are later, with its own vote unless the received one is better', () => {
    const server = new TestElection(2, THREE);
    server.look();
    server.ballot(1, 1, 6);
    expect([server.election.round, server.election.vote.leader]).toEqual([6, 2]);
    server.ballot(3, 3, 9);
    expect([server.election.round, server.election.vote.leader]).toEqual([9, 3]);
  });

  it('that are earlier get a reply and are not counted', () => {
    const server = new TestElection(3, THREE);
    for (let round = 1; round <= 4; round++) server.look();
    server.takeSent();
    server.ballot(1, 3, 2);
    server.ballot(2, 3, 3);
    server.advance(199);
    expect(server.takeSent()).toMatchObject([
      { to: 1, state: ServerState.looking, leader: 3, electionEpoch: 4 },
      { to: 2, state: ServerState.looking, leader: 3, electionEpoch: 4 },
    ]);
    expect(server.decision).toBeUndefined();
  });

  it('of a server without a candidate, which is only in the proposed configuration, are joined too', () => {
    const server = new TestElection(2, THREE);
    server.look();
    server.ballot(3, VOTE_NONE, 5, { zxid: ZXID_VOTE_NONE, peerEpoch: VOTE_NONE });
    expect([server.election.round, server.election.vote.leader]).toEqual([5, 2]);
    expect(server.takeSent().filter(({ to }) => to === 3)).toMatchObject([{}, { electionEpoch: 5, leader: 2 }]);
  });
});

describe('lost data', () => {
  it('is not voted for: an untrusted empty server neither counts nor leads, but finds a leader (ZOOKEEPER-261)', () => {
    const untrusted = new TestElection(3, THREE, { areOurs: true });
    untrusted.look({ lastZxid: ZXID_NONE, currentEpoch: 0 });
    for (const id of [1, 2]) untrusted.ballot(id, 3, 1, { zxid: ZXID_NONE });
    for (const id of [1, 2]) untrusted.ballot(id, 2, 1);
    untrusted.advance(5000);
    expect(untrusted.decision).toBeUndefined();
    untrusted.following(1, 2, 1);
    untrusted.leading(2, 1);
    expect(untrusted.decision?.state).toBe(ServerState.following);

    const other = new TestElection(2, THREE, { areOurs: true });
    other.look();
    other.ballot(3, 3, 1, { zxid: ZXID_NONE, peerEpoch: 9 });
    other.advance(5000);
    expect(other.election.vote.leader).toBe(2);
    expect(other.decision).toBeUndefined();
  });

  it('does not make a server lead because others followed it before its directory was lost (ZOOKEEPER-261)', () => {
    const wiped = new TestElection(3, THREE);
    wiped.look({ lastZxid: makeZxid(0, 0), currentEpoch: 0 });
    wiped.following(1, 3, 1, { zxid: makeZxid(4, 9), peerEpoch: 5 });
    wiped.following(2, 3, 1, { zxid: makeZxid(4, 9), peerEpoch: 5 });
    wiped.advance(1000);
    expect(wiped.decision).toBeUndefined();
  });

  it('is not restored by votes of others: a later round begins (ZOOKEEPER-261)', () => {
    const wiped = new TestElection(3, THREE);
    wiped.look({ lastZxid: makeZxid(0, 0), currentEpoch: 0 });
    wiped.takeSent();
    wiped.ballot(1, 3, 1, { zxid: makeZxid(4, 9), peerEpoch: 4 });
    expect(wiped.election.vote).toEqual({ leader: 3, zxid: makeZxid(0, 0), peerEpoch: 0 });
    expect(wiped.takeSent()).toMatchObject([
      { to: 1, electionEpoch: 2, leader: 3, zxid: 0 },
      { to: 2, electionEpoch: 2, leader: 3, zxid: 0 },
    ]);
  });
});

describe('votes and connections', () => {
  it('only the newest vote is resent over a new connection (ZOOKEEPER-481, 822, 880)', () => {
    const server = new TestElection(1, THREE);
    server.look();
    server.election.onPeerUnreachable(3);
    server.ballot(2, 2, 1);
    server.takeSent();
    server.election.onPeerConnected(3);
    expect(server.takeSent()).toMatchObject([{ to: 3, leader: 2 }]);
  });

  it('notifications of a connection no longer count once it has been replaced', () => {
    const server = new TestElection(3, THREE, { areOurs: true });
    server.look();
    server.ballot(1, 3, 1);
    server.election.onPeerConnected(1);
    server.ballot(2, 3, 1);
    server.advance(1000);
    expect(server.decision).toMatchObject({ supporters: [3, 2] });

    // What it announced over the old connection is forgotten, too: an Apache server may have replaced it.
    server.election.onEpochEstablished(2);
    server.look();
    server.election.onPeerConnected(1);
    server.ballot(1, 3, 2, { announces: 0 });
    server.ballot(2, 3, 2);
    expect(server.decisions).toHaveLength(1);
    server.advance(200);
    expect(server.decisions).toHaveLength(2);
  });

  it('a server that was not looking when it received the vote is sent it again when it is', () => {
    const server = new TestElection(2, THREE);
    server.look();
    server.following(1, 3, 4);
    server.takeSent();
    server.ballot(1, 1, 1);
    expect(server.takeSent()).toMatchObject([{ to: 1, leader: 2 }]);
    server.ballot(1, 1, 1);
    expect(server.takeSent()).toEqual([]);
  });

  it('a server that dials itself ignores its own notifications (ZOOKEEPER-2164, 3725)', () => {
    const server = new TestElection(3, THREE);
    server.look();
    server.ballot(3, 3, 7, { peerEpoch: 9 });
    server.leading(3, 7);
    expect([server.election.round, server.decision]).toEqual([1, undefined]);
  });

  it('the vote is repeated less and less often, and soon again after a peer connects', () => {
    const server = new TestElection(1, THREE, { peers: [2] });
    server.look();
    server.takeSent();
    server.advance(120_000);
    const sentCount = server.takeSent().length;
    expect(sentCount).toBeLessThan(12);
    server.election.onPeerConnected(3);
    server.takeSent();
    server.advance(200);
    expect(server.takeSent().map(({ to }) => to)).toEqual([2, 3]);
  });
});

describe('other configurations', () => {
  it('are only reported while looking (ZOOKEEPER-2212)', () => {
    const server = new TestElection(3, THREE, { areOurs: true });
    server.look();
    server.ballot(1, 3, 1, { configText: 'version=100000001' });
    expect(server.configsReceived).toEqual(['version=100000001']);
    server.ballot(2, 3, 1);
    expect(server.decision).toBeDefined();
    server.ballot(1, 3, 1, { configText: 'version=100000002' });
    expect(server.configsReceived).toHaveLength(1);
  });

  it('restart the search when they are adopted, and are sent to the others', () => {
    const server = new TestElection(3, THREE, { peers: [1, 2, 4, 5] });
    server.look();
    server.ballot(1, 3, 1);
    server.takeSent();
    server.change(FIVE, null, 'version=100000001');
    expect(server.election.round).toBe(2);
    expect(server.takeSent()).toMatchObject(
      [1, 2, 4, 5].map((to) => ({ to, electionEpoch: 2, configText: 'version=100000001' })),
    );
    server.ballot(1, 3, 2);
    server.advance(1000);
    expect(server.decision).toBeUndefined();
  });
});

it('keeps what voters have announced, and what others have announced only while they are connected', () => {
  const server = new TestElection(3, THREE);
  server.look();
  for (const id of [1, 9]) server.ballot(id, 3, 1, { announces: announcedLease(4000) });
  expect([1, 9].map((id) => server.election.leaseMsOf(id))).toEqual([4000, 4000]);
  for (const id of [1, 9]) server.election.onPeerUnreachable(id);
  expect([1, 9].map((id) => server.election.leaseMsOf(id))).toEqual([4000, 0]);
});

it('knows the history of a candidate, and whether it asked, only while the connection lasts', () => {
  const server = new TestElection(3, THREE, { areOurs: true });
  server.look();
  for (const id of [1, 2]) server.ballot(id, 3, 1);
  for (const id of [1, 2]) server.ballot(id, id, 2);
  expect([1, 2].map((id) => server.election.historyEpochOf(id))).toEqual([1, 1]);
  server.takeSent();
  server.election.onPeerUnreachable(1);
  server.election.onPeerConnected(2);
  expect([1, 2].map((id) => server.election.historyEpochOf(id))).toEqual([null, null]);
  server.election.onEpochEstablished(2);
  expect(server.takeSent()).toEqual([]);
});

describe('a server that connects after the decision', () => {
  it.each([
    ['is sent the lease of a voter', 2, 1000, [1000]],
    ['is sent nothing where there are no leases', 2, 0, []],
    ['is sent nothing by an observer', 4, 1000, []],
  ] as const)('%s', (_, serverId, leaseMs, leasesSent) => {
    const server = new TestElection(serverId, THREE, { leaseMs });
    server.look(serverId === 4 ? { learnerType: 'observer', isCandidate: false } : {});
    server.leading(3, 1);
    server.following(1, 3, 1);
    expect(server.decision).toMatchObject({ leader: 3 });
    server.takeSent();
    server.election.onPeerConnected(1);
    expect(server.takeSent().map(({ announces }) => leaseMsOf(announces))).toEqual(leasesSent);
  });
});

it.each([
  [
    'is sent to an observer that has connected before, with the lease',
    4,
    [{ to: 4, state: ServerState.following, leases: 1000 }],
  ],
  ['is not sent to a voter that has, without a question', 1, []],
] as const)('a decision %s', (_, peer, sent) => {
  const server = new TestElection(2, THREE, { leaseMs: 1000, peers: [peer, 3] });
  server.look();
  server.takeSent();
  server.leading(3, 1);
  server.following(1, 3, 1);
  expect(server.decision).toMatchObject({ leader: 3 });
  const toPeer = server.takeSent().filter(({ to }) => to === peer);
  expect(toPeer.map(({ to, state, announces }) => ({ to, state, leases: leaseMsOf(announces) }))).toEqual(sent);
});

describe('peers of old releases', () => {
  const old = { version: 0, configText: null };

  it('vote and are sent votes although they send no config (ZOOKEEPER-1789, 4247)', () => {
    const server = new TestElection(3, THREE);
    server.look();
    for (const id of [1, 2]) server.ballot(id, 3, 1, old);
    server.advance(200);
    expect(server.decision?.supporters).toEqual([3, 1, 2]);
    expect(server.configsReceived).toEqual([]);
    server.takeSent();
    server.ballot(1, 1, 2, old);
    expect(server.takeSent()).toMatchObject([{ to: 1, version: 2, configText: 'version=0' }]);
  });

  it('do not know the epoch of a leader, so only its id is compared (ZOOKEEPER-1805)', () => {
    const server = new TestElection(1, THREE);
    server.look();
    server.leading(3, 7, { peerEpoch: 5 });
    server.following(2, 3, 7, { ...old, peerEpoch: 4 });
    expect(server.decision?.leader).toBe(3);
  });
});

it('no notification makes it throw or break a guarantee (ZOOKEEPER-547, 2186, 3769)', () => {
  const word = fc.record({
    from: fc.integer({ min: 0, max: 5 }),
    state: fc.constantFrom(0, 1, 2, 3) as fc.Arbitrary<ServerState>,
    leader: fc.constantFrom(VOTE_NONE, -1, 0, 1, 2, 3, 4, 9, Number.MAX_SAFE_INTEGER),
    zxid: fc.constantFrom(ZXID_VOTE_NONE, ZXID_NONE, makeZxid(0, 0), makeZxid(1, 1), makeZxid(2 ** 20, 1)),
    electionEpoch: fc.constantFrom(-1, 0, 1, 1, 2, 3, Number.MAX_SAFE_INTEGER),
    peerEpoch: fc.constantFrom(VOTE_NONE, -1, 0, 1, 2, 2 ** 20),
    version: fc.constantFrom(0, 1, 2, 3),
    configText: fc.constantFrom(null, '', 'version=0', 'version=1'),
    announces: fc.constantFrom(0, 1, -1),
  });
  const event = fc.record({ word, kind: fc.constantFrom('say', 'say', 'say', 'tick', 'lose', 'connect', 'look') });
  const shape = { voters: [1, 2, 3, 4], groups: [[1, 2, 3, 4]], weights: new Map([[4, 0]]) };
  fc.assert(
    fc.property(fc.constantFrom(3, 4, 9), fc.array(event, { maxLength: 60, size: 'max' }), (serverId, events) => {
      const server = new TestElection(serverId, shape);
      server.look();
      for (const { kind, word } of events) {
        if (kind === 'say') server.election.onNotification(word.from, word);
        else if (kind === 'tick') server.advance(200);
        else if (kind === 'lose') server.election.onPeerUnreachable(word.from);
        else if (kind === 'connect') server.election.onPeerConnected(word.from);
        else server.look();
      }
      for (const { leader } of server.decisions) expect([1, 2, 3]).toContain(leader);
    }),
    { numRuns: 2000 },
  );
});
