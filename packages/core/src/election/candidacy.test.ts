import { makeZxid, ServerState, VOTE_NONE, ZXID_VOTE_NONE } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { TestElection, THREE } from '../testing/test-election.ts';

describe('a server without a vote', () => {
  it('gets a reply while it is looking, and is never counted (ZOOKEEPER-764, 769)', () => {
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

  it('gets the same reply only once per interval, so that replies do not loop forever (ZOOKEEPER-1807, 1840)', () => {
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

  it('is notified when a leader has been found, without asking again', () => {
    const server = new TestElection(3, THREE, { areOurs: true, peers: [1, 2, 9] });
    server.look();
    server.ballot(9, VOTE_NONE, 1);
    server.ballot(1, 3, 1);
    server.takeSent();
    server.ballot(2, 3, 1);
    expect(server.takeSent()).toMatchObject([{ to: 9, state: ServerState.leading, leader: 3 }]);
  });

  it('observes the leader, and never votes', () => {
    const observer = new TestElection(9, THREE, { areOurs: true, peers: [1, 2, 3] });
    observer.look({ learnerType: 'observer' });
    expect(observer.takeSent()).toMatchObject([1, 2, 3].map((to) => ({ to, leader: VOTE_NONE, zxid: ZXID_VOTE_NONE })));
    for (const id of [1, 2, 3]) observer.ballot(id, 3, 1);
    expect(observer.decision).toBeUndefined();
    observer.following(1, 3, 1);
    observer.leading(3, 1);
    expect(observer.decision?.state).toBe(ServerState.observing);
  });

  it('is a server configured as an observer, although the others count on its vote (ZOOKEEPER-769)', () => {
    const server = new TestElection(3, THREE);
    server.look({ learnerType: 'observer' });
    for (const id of [1, 2]) server.ballot(id, 2, 1);
    for (const { leader } of server.takeSent()) expect(leader).toBe(VOTE_NONE);
    server.following(1, 2, 1);
    server.leading(2, 1);
    expect(server.decision?.state).toBe(ServerState.observing);
  });

  it('may be one without weight: it never leads, and does not cling to its own vote (ZOOKEEPER-498, 479)', () => {
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
  it('is not a candidate, and helps another server to win', () => {
    const deaf = new TestElection(3, THREE, { areOurs: true });
    deaf.look({ isCandidate: false });
    expect(deaf.takeSent()).toMatchObject([1, 2].map((to) => ({ to, leader: VOTE_NONE })));
    deaf.ballot(1, 2, 1);
    deaf.ballot(2, 2, 1);
    expect(deaf.decision).toMatchObject({ state: ServerState.following, leader: 2 });
  });

  it('backs no server that may lack txns it has acknowledged, and follows one that wins without its vote', () => {
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

  it('starts a later round when others still vote for it', () => {
    const deaf = new TestElection(3, THREE, { areOurs: true });
    deaf.look({ isCandidate: false });
    deaf.takeSent();
    deaf.ballot(1, 3, 1);
    deaf.ballot(2, 3, 1);
    expect(deaf.decision).toBeUndefined();
    expect(deaf.election.round).toBeGreaterThan(1);
  });

  it('becomes a candidate in a new round once followers can reach it', () => {
    const server = new TestElection(3, THREE, { areOurs: true });
    server.look({ isCandidate: false });
    server.ballot(1, 2, 1);
    server.look();
    server.ballot(1, 3, 2);
    server.ballot(2, 3, 2);
    expect(server.decision).toMatchObject({ state: ServerState.leading, leader: 3 });
  });
});
