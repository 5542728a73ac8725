import { announcedLease, makeZxid, ServerState, VOTE_NONE, ZXID_NONE, ZXID_VOTE_NONE } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TestElection } from '../testing/test-election.ts';

const THREE = { voters: [1, 2, 3] };
const FIVE = { voters: [1, 2, 3, 4, 5] };

describe('a decision by votes', () => {
  it('comes at once when every voter votes alike and all of them are ours', () => {
    const server = new TestElection(3, THREE, { areOurs: true });
    server.look();
    server.ballot(1, 3, 1);
    expect(server.decision).toBeUndefined();
    server.ballot(2, 3, 1);
    expect(server.decision).toEqual({
      state: ServerState.leading,
      leader: 3,
      historyEpoch: 1,
      historyZxid: makeZxid(1, 1),
      judgesPromises: true,
      round: 1,
      supporters: [3, 1, 2],
    });
  });

  it('does not wait for a voter that cannot be reached, but for one that may still turn up', () => {
    const server = new TestElection(2, THREE, { areOurs: true, peers: [1] });
    server.look();
    server.ballot(1, 2, 1);
    expect(server.decision).toBeUndefined();
    server.election.onPeerUnreachable(3);
    expect(server.decision?.state).toBe(ServerState.leading);
  });

  it("comes after 200 ms when a voter is Apache's, which may hear a better vote as long", () => {
    const server = new TestElection(3, THREE);
    server.look();
    server.ballot(1, 3, 1);
    server.ballot(2, 3, 1);
    server.advance(199);
    expect(server.decision).toBeUndefined();
    server.advance(1);
    expect(server.decision?.leader).toBe(3);
  });

  it('is not made at once again after one that came to nothing, until one has led to an epoch', () => {
    const server = new TestElection(2, THREE, { areOurs: true, peers: [1] });
    server.election.onPeerUnreachable(3);
    server.look();
    server.ballot(1, 2, 1);
    expect(server.decisions).toHaveLength(1);
    server.look();
    server.ballot(1, 2, 2);
    server.advance(199);
    expect(server.decisions).toHaveLength(1);
    server.advance(1);
    expect(server.decisions).toHaveLength(2);
    server.election.onEpochEstablished(2);
    server.look();
    server.ballot(1, 2, 3);
    expect(server.decisions).toHaveLength(3);
  });

  it('waits anew for 200 ms when another vote comes, and not when one is repeated', () => {
    const server = new TestElection(5, FIVE);
    server.look();
    for (const id of [1, 2]) server.ballot(id, 5, 1);
    server.advance(150);
    server.ballot(3, 5, 1);
    server.advance(150);
    server.ballot(3, 5, 1);
    expect(server.decision).toBeUndefined();
    server.advance(50);
    expect(server.decision?.leader).toBe(5);
  });

  it('is put off by a better vote, and by the loss of a voter', () => {
    const server = new TestElection(2, THREE);
    server.look();
    server.ballot(1, 2, 1);
    server.advance(100);
    server.ballot(3, 3, 1);
    expect(server.election.vote.leader).toBe(3);
    server.advance(100);
    server.election.onPeerUnreachable(3);
    server.advance(1000);
    expect(server.decision).toBeUndefined();
  });

  it('is made by a single server at once', () => {
    const server = new TestElection(1, { voters: [1] });
    server.look();
    expect(server.decision).toEqual({
      state: ServerState.leading,
      leader: 1,
      historyEpoch: 1,
      historyZxid: makeZxid(1, 1),
      judgesPromises: true,
      round: 1,
      supporters: [1],
    });
  });

  it('needs a quorum of both configurations while one is being changed (ZOOKEEPER-1699)', () => {
    const server = new TestElection(3, THREE, { areOurs: true, peers: [1, 2, 4, 5] });
    server.change(THREE, { voters: [3, 4, 5] }, 'version=0');
    server.look();
    for (const id of [1, 2]) server.ballot(id, 3, 1);
    server.advance(1000);
    expect(server.decision).toBeUndefined();
    server.ballot(4, 3, 1);
    server.advance(200);
    expect(server.decision?.supporters).toEqual([3, 1, 2, 4]);
  });
});

describe('a decision by what others have found', () => {
  it('follows a leader that says so itself, with a quorum, whatever round they are in', () => {
    const server = new TestElection(1, FIVE);
    server.look();
    server.following(2, 5, 7);
    server.following(3, 5, 7);
    expect(server.decision).toBeUndefined();
    server.leading(5, 7);
    expect(server.decision).toEqual({
      state: ServerState.following,
      leader: 5,
      historyEpoch: 1,
      historyZxid: makeZxid(1, 1),
      judgesPromises: false,
      round: 7,
      supporters: [2, 3, 5],
    });
    expect(server.election.round).toBe(7);
  });

  it('does not follow a dead leader that others still follow (ZOOKEEPER-131, 480, 569)', () => {
    const server = new TestElection(4, FIVE);
    server.look();
    for (const id of [1, 2, 3]) server.following(id, 5, 1);
    server.advance(60_000);
    expect(server.decision).toBeUndefined();
  });

  it('does not follow a leader that is looking again, or whose connection broke, since it said that it leads', () => {
    for (const loseLeader of [
      (server: TestElection) => server.ballot(5, 5, 8),
      (server: TestElection) => server.election.onPeerUnreachable(5),
    ]) {
      const server = new TestElection(4, FIVE);
      server.look();
      server.leading(5, 7);
      loseLeader(server);
      for (const id of [1, 2, 3]) server.following(id, 5, 7);
      expect(server.decision).toBeUndefined();
    }
  });

  it('does not take votes of an older round for its own leadership (ZOOKEEPER-1514)', () => {
    const server = new TestElection(3, THREE);
    for (let round = 1; round <= 5; round++) server.look();
    server.following(1, 3, 3);
    server.following(2, 3, 3);
    server.advance(1000);
    expect(server.decision).toBeUndefined();
    server.following(1, 3, 5);
    expect(server.decision?.state).toBe(ServerState.leading);
  });

  it('joins an ensemble whose members tell different zxids, rounds and epochs (ZOOKEEPER-1732, 1805, 1817, 1818)', () => {
    const server = new TestElection(1, FIVE);
    server.look();
    server.leading(5, 9, { zxid: makeZxid(4, 7), peerEpoch: 5 });
    server.following(4, 5, 3, { zxid: makeZxid(4, 2), peerEpoch: 5 });
    server.following(3, 5, 9, { zxid: makeZxid(4, 7), peerEpoch: 4 });
    expect(server.decision).toBeUndefined();
    server.following(3, 5, 9, { zxid: makeZxid(4, 7), peerEpoch: 5 });
    expect(server.decision?.leader).toBe(5);
  });

  it('lets a leader in its own round be found by its id, while some have not taken over its epoch yet', () => {
    const server = new TestElection(1, THREE);
    server.look();
    server.following(2, 3, 1, { peerEpoch: 4 });
    server.leading(3, 1, { peerEpoch: 5 });
    expect(server.decision?.leader).toBe(3);
  });

  it('never votes anew in a round that it has voted in, also when those it followed were in an earlier one', () => {
    const server = new TestElection(2, THREE);
    server.look();
    // A later round: it takes over the vote of 1, which is better than its own.
    server.ballot(1, 3, 7, { zxid: makeZxid(1, 9) });
    expect(server.election.round).toBe(7);
    // Then it finds those who have followed 3 since round 4.
    server.following(1, 3, 4);
    server.leading(3, 4);
    expect(server.decision).toMatchObject({ leader: 3, round: 4 });
    server.takeSent();
    server.look();
    expect(server.takeSent().map(({ electionEpoch }) => electionEpoch)).toEqual([8, 8]);
  });

  it('adds up votes and claims of one round, once the leader says that it leads', () => {
    const server = new TestElection(1, FIVE);
    server.look();
    server.ballot(2, 5, 1);
    server.following(3, 5, 1);
    server.following(4, 5, 2, { peerEpoch: 9 });
    server.advance(1000);
    expect(server.decision).toBeUndefined();
    server.leading(5, 1);
    expect(server.decision?.supporters).toEqual([1, 2, 3, 5]);
  });

  it('does not follow a server that cannot lead, whoever follows it (ZOOKEEPER-498)', () => {
    const weights = new Map([[4, 0]]);
    const server = new TestElection(1, { voters: [1, 2, 3, 4], groups: [[1, 2, 3, 4]], weights });
    server.look();
    for (const id of [2, 3]) server.following(id, 4, 1);
    server.leading(4, 1);
    expect(server.decision).toBeUndefined();
  });

  it('says the established epoch from then on, also to those that had asked before (ZOOKEEPER-1732)', () => {
    const server = new TestElection(3, THREE, { areOurs: true });
    server.look();
    for (const id of [1, 2]) server.ballot(id, 3, 1);
    server.ballot(1, 1, 2);
    server.takeSent();
    server.election.onEpochEstablished(8);
    expect(server.takeSent()).toMatchObject([{ to: 1, state: ServerState.leading, peerEpoch: 8, electionEpoch: 1 }]);
    server.ballot(2, 2, 2);
    expect(server.takeSent()).toMatchObject([{ to: 2, state: ServerState.leading, peerEpoch: 8 }]);
  });
});

describe('rounds', () => {
  it('are joined when they are later, with its own vote unless the one that was heard is better', () => {
    const server = new TestElection(2, THREE);
    server.look();
    server.ballot(1, 1, 6);
    expect([server.election.round, server.election.vote.leader]).toEqual([6, 2]);
    server.ballot(3, 3, 9);
    expect([server.election.round, server.election.vote.leader]).toEqual([9, 3]);
  });

  it('that are earlier get an answer and count for nothing', () => {
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

  it('of one that looks for nobody, as it is only in the proposed configuration, are joined too', () => {
    const server = new TestElection(2, THREE);
    server.look();
    server.ballot(3, VOTE_NONE, 5, { zxid: ZXID_VOTE_NONE, peerEpoch: VOTE_NONE });
    expect([server.election.round, server.election.vote.leader]).toEqual([5, 2]);
    expect(server.takeSent().filter(({ to }) => to === 3)).toMatchObject([{}, { electionEpoch: 5, leader: 2 }]);
  });
});

describe('data that is gone', () => {
  it('is not voted with: an untrusted empty server neither counts nor leads, but finds a leader (ZOOKEEPER-261)', () => {
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

  it('does not make a server lead that others followed before its directory was lost (ZOOKEEPER-261)', () => {
    const wiped = new TestElection(3, THREE);
    wiped.look({ lastZxid: makeZxid(0, 0), currentEpoch: 0 });
    wiped.following(1, 3, 1, { zxid: makeZxid(4, 9), peerEpoch: 5 });
    wiped.following(2, 3, 1, { zxid: makeZxid(4, 9), peerEpoch: 5 });
    wiped.advance(1000);
    expect(wiped.decision).toBeUndefined();
  });

  it('is not stood for again because others still vote for it: a later round begins (ZOOKEEPER-261)', () => {
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

describe('who has no vote', () => {
  it('is answered when it is looking, and never counted (ZOOKEEPER-764, 769)', () => {
    const server = new TestElection(3, THREE, { peers: [1, 2, 8, 9] });
    server.look();
    server.takeSent();
    for (const id of [8, 9]) server.ballot(id, 3, 1);
    expect(server.takeSent()).toMatchObject([{ to: 8 }, { to: 9 }]);
    for (const id of [8, 9]) server.following(id, 2, 1);
    server.leading(8, 1);
    server.advance(199);
    expect(server.takeSent()).toEqual([]);
    expect(server.decision).toBeUndefined();
    expect(server.election.vote.leader).toBe(3);
  });

  it('does not end an ensemble that has a leader, however late its round (LogCabin 205)', () => {
    const server = new TestElection(3, THREE, { areOurs: true, peers: [1, 2, 9] });
    server.look();
    for (const id of [1, 2]) server.ballot(id, 3, 1);
    for (let round = 2; round < 50; round++) server.ballot(9, 9, round, { peerEpoch: 99 });
    expect(server.election.state).toBe(ServerState.leading);
    expect(server.decisionsLost).toBe(0);
  });

  it('is told the same only once per interval, lest its answers be answered for ever (ZOOKEEPER-1807, 1840)', () => {
    const server = new TestElection(3, THREE, { peers: [1, 2, 9] });
    server.look();
    server.takeSent();
    for (let i = 0; i < 100; i++) server.ballot(9, VOTE_NONE, 8);
    expect(server.takeSent()).toHaveLength(1);
    server.advance(200);
    server.takeSent();
    server.ballot(9, VOTE_NONE, 8);
    expect(server.takeSent()).toHaveLength(1);
  });

  it('is told when a leader has been found, without asking again', () => {
    const server = new TestElection(3, THREE, { areOurs: true, peers: [1, 2, 9] });
    server.look();
    server.ballot(9, VOTE_NONE, 1);
    server.ballot(1, 3, 1);
    server.takeSent();
    server.ballot(2, 3, 1);
    expect(server.takeSent()).toMatchObject([{ to: 9, state: ServerState.leading, leader: 3 }]);
  });

  it('observes whoever leads, and votes for nobody', () => {
    const observer = new TestElection(9, THREE, { areOurs: true, peers: [1, 2, 3] });
    observer.look({ learnerType: 'observer' });
    expect(observer.takeSent()).toMatchObject([1, 2, 3].map((to) => ({ to, leader: VOTE_NONE, zxid: ZXID_VOTE_NONE })));
    for (const id of [1, 2, 3]) observer.ballot(id, 3, 1);
    expect(observer.decision).toBeUndefined();
    observer.following(1, 3, 1);
    observer.leading(3, 1);
    expect(observer.decision?.state).toBe(ServerState.observing);
  });

  it('is a server that takes itself for an observer, though the others count on it (ZOOKEEPER-769)', () => {
    const server = new TestElection(3, THREE);
    server.look({ learnerType: 'observer' });
    for (const id of [1, 2]) server.ballot(id, 2, 1);
    for (const { leader } of server.takeSent()) expect(leader).toBe(VOTE_NONE);
    server.following(1, 2, 1);
    server.leading(2, 1);
    expect(server.decision?.state).toBe(ServerState.observing);
  });

  it('is a server without weight: it never leads, and does not cling to itself (ZOOKEEPER-498, 479)', () => {
    const weights = new Map([[3, 0]]);
    const server = new TestElection(3, { voters: [1, 2, 3], groups: [[1, 2, 3]], weights }, { areOurs: true });
    server.look({ lastZxid: makeZxid(1, 9) });
    server.ballot(1, 1, 1);
    expect(server.election.vote.leader).toBe(1);
    server.ballot(2, 2, 1);
    server.ballot(1, 2, 1);
    expect(server.decision).toMatchObject({ state: ServerState.following, leader: 2 });
  });
});

describe('a server that followers cannot reach', () => {
  it('does not stand, and helps another one to win', () => {
    const deaf = new TestElection(3, THREE, { areOurs: true });
    deaf.look({ isCandidate: false });
    expect(deaf.takeSent()).toMatchObject([1, 2].map((to) => ({ to, leader: VOTE_NONE })));
    deaf.ballot(1, 2, 1);
    deaf.ballot(2, 2, 1);
    expect(deaf.decision).toMatchObject({ state: ServerState.following, leader: 2 });
  });

  it('helps no one to win that may lack what it has acknowledged, and follows whoever wins without it', () => {
    const deaf = new TestElection(3, THREE, { areOurs: true });
    deaf.look({ isCandidate: false, lastZxid: makeZxid(1, 2) });
    deaf.ballot(1, 2, 1);
    deaf.ballot(2, 2, 1);
    deaf.advance(1000);
    expect(deaf.decision).toBeUndefined();
    for (const { leader } of deaf.takeSent()) expect(leader).toBe(VOTE_NONE);
    deaf.following(1, 2, 1);
    deaf.leading(2, 1);
    expect(deaf.decision).toMatchObject({ state: ServerState.following, leader: 2 });
  });

  it('has others forget in a later round that it stood', () => {
    const deaf = new TestElection(3, THREE, { areOurs: true });
    deaf.look({ isCandidate: false });
    deaf.takeSent();
    deaf.ballot(1, 3, 1);
    deaf.ballot(2, 3, 1);
    expect(deaf.decision).toBeUndefined();
    expect(deaf.election.round).toBeGreaterThan(1);
  });

  it('stands as soon as they can, in a round of its own', () => {
    const server = new TestElection(3, THREE, { areOurs: true });
    server.look({ isCandidate: false });
    server.ballot(1, 2, 1);
    server.look();
    server.ballot(1, 3, 2);
    server.ballot(2, 3, 2);
    expect(server.decision).toMatchObject({ state: ServerState.leading, leader: 3 });
  });
});

describe('what connections do to votes', () => {
  it('only the newest is said again over a new one (ZOOKEEPER-481, 822, 880)', () => {
    const server = new TestElection(1, THREE);
    server.look();
    server.election.onPeerUnreachable(3);
    server.ballot(2, 2, 1);
    server.takeSent();
    server.election.onPeerConnected(3);
    expect(server.takeSent()).toMatchObject([{ to: 3, leader: 2 }]);
  });

  it('nothing that was said over a connection counts once another has taken its place', () => {
    const server = new TestElection(3, THREE, { areOurs: true });
    server.look();
    server.ballot(1, 3, 1);
    server.election.onPeerConnected(1);
    server.ballot(2, 3, 1);
    server.advance(1000);
    expect(server.decision).toMatchObject({ supporters: [3, 2] });

    // What it announced over the old one is forgotten too: it may have been replaced by one of Apache's.
    server.election.onEpochEstablished(2);
    server.look();
    server.election.onPeerConnected(1);
    server.ballot(1, 3, 2, { announces: 0 });
    server.ballot(2, 3, 2);
    expect(server.decisions).toHaveLength(1);
    server.advance(200);
    expect(server.decisions).toHaveLength(2);
  });

  it('one that was not looking when it heard the vote hears it again when it does', () => {
    const server = new TestElection(2, THREE);
    server.look();
    server.following(1, 3, 4);
    server.takeSent();
    server.ballot(1, 1, 1);
    expect(server.takeSent()).toMatchObject([{ to: 1, leader: 2 }]);
    server.ballot(1, 1, 1);
    expect(server.takeSent()).toEqual([]);
  });

  it('a server that dials itself hears nothing new (ZOOKEEPER-2164, 3725)', () => {
    const server = new TestElection(3, THREE);
    server.look();
    server.ballot(3, 3, 7, { peerEpoch: 9 });
    server.leading(3, 7);
    expect([server.election.round, server.decision]).toEqual([1, undefined]);
  });

  it('who is heard of no more is told the vote less and less often, and soon again when somebody turns up', () => {
    const server = new TestElection(1, THREE, { peers: [2] });
    server.look();
    server.takeSent();
    server.advance(120_000);
    const told = server.takeSent().length;
    expect(told).toBeLessThan(12);
    server.election.onPeerConnected(3);
    server.takeSent();
    server.advance(200);
    expect(server.takeSent().map(({ to }) => to)).toEqual([2, 3]);
  });
});

describe('a decision that does not hold', () => {
  it('is told a leader when a voter of its quorum votes for another (ZOOKEEPER-3109)', () => {
    const server = new TestElection(2, THREE);
    server.look();
    server.ballot(1, 2, 1);
    server.advance(200);
    expect(server.decision?.state).toBe(ServerState.leading);
    server.ballot(1, 2, 1);
    expect(server.decisionsLost).toBe(0);
    server.ballot(1, 3, 1, { peerEpoch: 2 });
    server.ballot(1, 3, 1, { peerEpoch: 2 });
    expect(server.decisionsLost).toBe(1);
    expect(server.election.state).toBe(ServerState.leading);
  });

  it('is none while the voters that are left are a quorum', () => {
    const server = new TestElection(5, FIVE, { areOurs: true });
    server.look();
    for (const id of [1, 2, 3, 4]) server.ballot(id, 5, 1);
    for (const id of [1, 2]) server.ballot(id, id, 2);
    expect(server.decisionsLost).toBe(0);
    server.ballot(3, 3, 2);
    expect(server.decisionsLost).toBe(1);
  });

  it('is told a follower when its leader looks for another or in another round', () => {
    const server = new TestElection(1, THREE, { areOurs: true });
    server.look();
    for (const id of [2, 3]) server.ballot(id, 3, 1);
    server.ballot(3, 3, 1);
    server.ballot(2, 2, 2);
    expect([server.decision?.leader, server.decisionsLost]).toEqual([3, 0]);
    server.ballot(3, 3, 2);
    expect(server.decisionsLost).toBe(1);
  });
});

describe('other configurations', () => {
  it('are heard of while looking and at no other time (ZOOKEEPER-2212)', () => {
    const server = new TestElection(3, THREE, { areOurs: true });
    server.look();
    server.ballot(1, 3, 1, { configText: 'version=100000001' });
    expect(server.configsHeard).toEqual(['version=100000001']);
    server.ballot(2, 3, 1);
    expect(server.decision).toBeDefined();
    server.ballot(1, 3, 1, { configText: 'version=100000002' });
    expect(server.configsHeard).toHaveLength(1);
  });

  it('begin the search anew when they are taken over, and are told to the others', () => {
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

it('remembers what a voter has announced, and of others only while they are connected', () => {
  const server = new TestElection(3, THREE);
  server.look();
  for (const id of [1, 9]) server.ballot(id, 3, 1, { announces: announcedLease(4000) });
  expect([1, 9].map((id) => server.election.leaseMsOf(id))).toEqual([4000, 4000]);
  for (const id of [1, 9]) server.election.onPeerUnreachable(id);
  expect([1, 9].map((id) => server.election.leaseMsOf(id))).toEqual([4000, 0]);
});

describe('peers of old releases', () => {
  const old = { version: 0, configText: null };

  it('vote and are told votes without a config (ZOOKEEPER-1789, 4247)', () => {
    const server = new TestElection(3, THREE);
    server.look();
    for (const id of [1, 2]) server.ballot(id, 3, 1, old);
    server.advance(200);
    expect(server.decision?.supporters).toEqual([3, 1, 2]);
    expect(server.configsHeard).toEqual([]);
    server.takeSent();
    server.ballot(1, 1, 2, old);
    expect(server.takeSent()).toMatchObject([{ to: 1, version: 2, configText: 'version=0' }]);
  });

  it('do not know the epoch of a leader, so that its id alone must do (ZOOKEEPER-1805)', () => {
    const server = new TestElection(1, THREE);
    server.look();
    server.leading(3, 7, { peerEpoch: 5 });
    server.following(2, 3, 7, { ...old, peerEpoch: 4 });
    expect(server.decision?.leader).toBe(3);
  });
});

it('whatever peers say, nothing is thrown and no promise is broken (ZOOKEEPER-547, 2186, 3769)', () => {
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
    fc.property(fc.constantFrom(3, 4, 9), fc.array(event, { maxLength: 60 }), (serverId, events) => {
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

describe('while a change is proposed', () => {
  const ONE = { voters: [5] };
  const TWO = { voters: [2, 5] };

  function changing(serverId: number, before = ONE, after = TWO): TestElection {
    const server = new TestElection(serverId, before);
    server.change(before, after, 'version=0');
    return server;
  }

  /** It has one txn more than server 5, which it follows and which gives up. */
  function afterAFailure(): TestElection {
    const newcomer = changing(2);
    newcomer.look({ lastZxid: makeZxid(1, 2) });
    newcomer.ballot(5, 5, 1);
    newcomer.advance(200);
    expect(newcomer.decision).toMatchObject({ state: ServerState.following, leader: 5 });
    newcomer.look({ lastZxid: makeZxid(1, 2) });
    return newcomer;
  }

  it('a newcomer stands when a leader has failed that is behind it, and leads with both quorums', () => {
    const newcomer = afterAFailure();
    expect(newcomer.election.vote).toMatchObject({ leader: 2, zxid: makeZxid(1, 2) });
    newcomer.ballot(5, 2, 2, { zxid: makeZxid(1, 2) });
    newcomer.advance(200);
    expect(newcomer.decision).toMatchObject({ state: ServerState.leading, leader: 2, supporters: [2, 5] });
  });

  it('a newcomer makes way in a later round when it is not elected in time', () => {
    const newcomer = afterAFailure();
    newcomer.ballot(5, 5, 2);
    newcomer.advance(1999);
    expect(newcomer.election.vote.leader).toBe(2);
    newcomer.advance(1);
    expect([newcomer.election.round, newcomer.election.vote.leader]).toEqual([3, VOTE_NONE]);
    newcomer.ballot(5, 5, 3);
    newcomer.advance(200);
    expect(newcomer.decision).toMatchObject({ state: ServerState.following, leader: 5 });
  });

  it('a newcomer does not stand that is not ahead of who failed, or after an epoch that had begun', () => {
    for (const isAhead of [true, false]) {
      const lastZxid = makeZxid(1, isAhead ? 2 : 1);
      const newcomer = changing(2);
      newcomer.look({ lastZxid });
      newcomer.ballot(5, 5, 1);
      newcomer.advance(200);
      if (isAhead) newcomer.election.onEpochEstablished(2);
      newcomer.look({ lastZxid });
      expect(newcomer.election.vote.leader).toBe(VOTE_NONE);
    }
  });

  it('a committed voter that has led in vain makes way for a turn, and backs nobody that is behind it', () => {
    const voter = changing(5, { voters: [3, 4, 5] }, { voters: [2, 5] });
    voter.look({ lastZxid: makeZxid(1, 3) });
    for (const id of [2, 3, 4]) voter.ballot(id, 5, 1, { zxid: makeZxid(1, 3) });
    voter.advance(200);
    expect(voter.decision?.state).toBe(ServerState.leading);
    voter.look({ lastZxid: makeZxid(1, 3) });
    voter.ballot(4, 4, 2);
    expect(voter.election.vote.leader).toBe(VOTE_NONE);
    voter.ballot(2, 2, 2, { zxid: makeZxid(1, 4) });
    expect(voter.election.vote.leader).toBe(2);
    voter.advance(2000);
    expect([voter.election.round, voter.election.vote.leader]).toEqual([3, 5]);
  });

  it('a leader is followed that a quorum of the committed voters follows, and that knows of no change', () => {
    const newcomer = changing(5, THREE, { voters: [3, 4, 5] });
    newcomer.look({ lastZxid: makeZxid(1, 2) });
    newcomer.following(1, 2, 1);
    expect(newcomer.decision).toBeUndefined();
    newcomer.leading(2, 1);
    expect(newcomer.decision).toMatchObject({ state: ServerState.following, leader: 2 });
  });

  it('nobody leads because the committed voters alone say so', () => {
    const voter = changing(3, THREE, { voters: [3, 4, 5] });
    voter.look();
    for (const id of [1, 2]) voter.following(id, 3, 1);
    voter.advance(1000);
    expect(voter.decision).toBeUndefined();
  });
});
