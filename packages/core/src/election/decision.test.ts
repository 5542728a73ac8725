import { makeZxid, ServerState } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { FIVE, TestElection, THREE } from '../testing/test-election.ts';

describe('a decision by votes', () => {
  it('is immediate when all voters agree and all are Meerkat servers', () => {
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
      checksPromises: true,
      round: 1,
      supporters: [3, 1, 2],
    });
  });

  it('does not wait for an unreachable voter, but for one that may still appear', () => {
    const server = new TestElection(2, THREE, { areOurs: true, peers: [1] });
    server.look();
    server.ballot(1, 2, 1);
    expect(server.decision).toBeUndefined();
    server.election.onPeerUnreachable(3);
    expect(server.decision?.state).toBe(ServerState.leading);
  });

  it("comes after 200 ms when a voter is Apache's, which may receive a better vote until then", () => {
    const server = new TestElection(3, THREE);
    server.look();
    server.ballot(1, 3, 1);
    server.ballot(2, 3, 1);
    server.advance(199);
    expect(server.decision).toBeUndefined();
    server.advance(1);
    expect(server.decision?.leader).toBe(3);
  });

  it('is not immediate after one that failed, until one has led to an epoch', () => {
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

  it('restarts the 200 ms when another vote arrives, but not when one is repeated', () => {
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

  it('is delayed by a better vote, and by the loss of a voter', () => {
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

  it('is immediate for a single server', () => {
    const server = new TestElection(1, { voters: [1] });
    server.look();
    expect(server.decision).toEqual({
      state: ServerState.leading,
      leader: 1,
      historyEpoch: 1,
      historyZxid: makeZxid(1, 1),
      checksPromises: true,
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

describe('a decision by claims', () => {
  it('follows a leader that claims to lead, with a quorum, in any round', () => {
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
      checksPromises: false,
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

  it('does not follow a leader that is looking again, or whose connection broke, after its claim', () => {
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

  it('does not follow its former leader again because of claims from before the search began', () => {
    const server = new TestElection(1, FIVE);
    server.look();
    for (const id of [2, 3]) server.following(id, 5, 7);
    server.leading(5, 7);
    expect(server.decisions).toHaveLength(1);
    server.election.onPeerUnreachable(5);
    server.look();
    // They have not noticed the end of their leader yet.
    for (const id of [2, 3, 4]) server.following(id, 5, 7);
    server.advance(60_000);
    expect(server.decisions).toHaveLength(1);
    server.leading(5, 7);
    expect(server.decisions).toHaveLength(2);
  });

  it('does not count a vote once its server follows another leader, or this one in another round', () => {
    for (const [leader, round] of [
      [3, 1],
      [2, 7],
    ] as const) {
      const server = new TestElection(2, THREE);
      server.look();
      server.ballot(1, 2, 1);
      server.following(1, leader, round);
      server.advance(1000);
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

  it('joins an ensemble whose members differ in zxids, rounds and epochs (ZOOKEEPER-1732, 1805, 1817, 1818)', () => {
    const server = new TestElection(1, FIVE);
    server.look();
    server.leading(5, 9, { zxid: makeZxid(4, 7), peerEpoch: 5 });
    server.following(4, 5, 3, { zxid: makeZxid(4, 2), peerEpoch: 5 });
    server.following(3, 5, 9, { zxid: makeZxid(4, 7), peerEpoch: 4 });
    expect(server.decision).toBeUndefined();
    server.following(3, 5, 9, { zxid: makeZxid(4, 7), peerEpoch: 5 });
    expect(server.decision?.leader).toBe(5);
  });

  it('finds a leader of its own round by its id, while some have not adopted its epoch yet', () => {
    const server = new TestElection(1, THREE);
    server.look();
    server.following(2, 3, 1, { peerEpoch: 4 });
    server.leading(3, 1, { peerEpoch: 5 });
    expect(server.decision?.leader).toBe(3);
  });

  it('never votes twice in a round, even after following a leader of an earlier round', () => {
    const server = new TestElection(2, THREE);
    server.look();
    // A later round: it adopts the vote of 1, which is better than its own.
    server.ballot(1, 3, 7, { zxid: makeZxid(1, 9) });
    expect(server.election.round).toBe(7);
    // Then it finds the servers that have followed 3 since round 4.
    server.following(1, 3, 4);
    server.leading(3, 4);
    expect(server.decision).toMatchObject({ leader: 3, round: 4 });
    server.takeSent();
    server.look();
    expect(server.takeSent().map(({ electionEpoch }) => electionEpoch)).toEqual([8, 8]);
  });

  it('adds up votes and claims of one round, once the leader claims to lead', () => {
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

  it('does not count a voter that observes, as one with another configuration may', () => {
    const server = new TestElection(1, FIVE);
    server.look();
    server.leading(5, 7);
    server.following(2, 5, 7);
    server.following(3, 5, 7, { state: ServerState.observing });
    expect(server.decision).toBeUndefined();
    server.following(3, 5, 7);
    expect(server.decision?.supporters).toEqual([5, 2, 3]);
  });

  it('does not follow a server that cannot lead, even if others do (ZOOKEEPER-498)', () => {
    const weights = new Map([[4, 0]]);
    const server = new TestElection(1, { voters: [1, 2, 3, 4], groups: [[1, 2, 3, 4]], weights });
    server.look();
    for (const id of [2, 3]) server.following(id, 4, 1);
    server.leading(4, 1);
    expect(server.decision).toBeUndefined();
  });

  it('announces the established epoch from then on, also to servers that had asked before (ZOOKEEPER-1732)', () => {
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

describe('a decision that does not hold', () => {
  it('is reported to a leader when a voter of its quorum votes for another (ZOOKEEPER-3109)', () => {
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

    // Once for every decision.
    server.look();
    server.ballot(1, 2, 2);
    server.advance(200);
    expect(server.decisions).toHaveLength(2);
    server.ballot(1, 3, 2, { peerEpoch: 2 });
    expect(server.decisionsLost).toBe(2);
  });

  it('is not reported while the remaining voters are a quorum', () => {
    const server = new TestElection(5, FIVE, { areOurs: true });
    server.look();
    for (const id of [1, 2, 3, 4]) server.ballot(id, 5, 1);
    for (const id of [1, 2]) server.ballot(id, id, 2);
    expect(server.decisionsLost).toBe(0);
    server.ballot(3, 3, 2);
    expect(server.decisionsLost).toBe(1);
  });

  it('counts a voter again that has come back to it', () => {
    const server = new TestElection(5, FIVE, { areOurs: true });
    server.look();
    for (const id of [1, 2, 3, 4]) server.ballot(id, 5, 1);
    for (const id of [1, 2]) server.ballot(id, id, 2);
    server.ballot(1, 5, 1);
    server.ballot(3, 3, 2);
    expect(server.decisionsLost).toBe(0);
    server.ballot(4, 4, 2);
    expect(server.decisionsLost).toBe(1);
  });

  it('is reported to a follower when its leader votes for another or in another round', () => {
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
