import { makeZxid, ServerState, VOTE_NONE } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { TestElection, THREE } from '../testing/test-election.ts';

describe('while a change is proposed', () => {
  const ONE = { voters: [5] };
  const TWO = { voters: [2, 5] };

  function changing(serverId: number, before = ONE, after = TWO): TestElection {
    const server = new TestElection(serverId, before);
    server.change(before, after, 'version=0');
    return server;
  }

  /** A newcomer with one txn more than server 5, which it followed and which failed. */
  function afterAFailure(): TestElection {
    const newcomer = changing(2);
    newcomer.look({ lastZxid: makeZxid(1, 2) });
    newcomer.ballot(5, 5, 1);
    newcomer.advance(200);
    expect(newcomer.decision).toMatchObject({ state: ServerState.following, leader: 5 });
    newcomer.look({ lastZxid: makeZxid(1, 2) });
    return newcomer;
  }

  it('a newcomer stands after a leader with an older history has failed, and leads with both quorums', () => {
    const newcomer = afterAFailure();
    expect(newcomer.election.vote).toMatchObject({ leader: 2, zxid: makeZxid(1, 2) });
    newcomer.ballot(5, 2, 2, { zxid: makeZxid(1, 2) });
    newcomer.advance(200);
    expect(newcomer.decision).toMatchObject({ state: ServerState.leading, leader: 2, supporters: [2, 5] });
  });

  it('a newcomer steps back in a later round when it is not elected in time', () => {
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

  it('a newcomer does not stand if its history is no later, or after an epoch had begun', () => {
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

  it('a committed voter that failed to lead steps back for a turn, and backs no older history', () => {
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

  it('a leader followed by a quorum of the committed voters is followed even if it knows of no change', () => {
    const newcomer = changing(5, THREE, { voters: [3, 4, 5] });
    newcomer.look({ lastZxid: makeZxid(1, 2) });
    newcomer.following(1, 2, 1);
    expect(newcomer.decision).toBeUndefined();
    newcomer.leading(2, 1);
    expect(newcomer.decision).toMatchObject({ state: ServerState.following, leader: 2 });
  });

  it('claims of the committed voters alone do not make a server lead', () => {
    const voter = changing(3, THREE, { voters: [3, 4, 5] });
    voter.look();
    for (const id of [1, 2]) voter.following(id, 3, 1);
    voter.advance(1000);
    expect(voter.decision).toBeUndefined();
  });
});
