import { MAX_EPOCH, makeZxid, ServerState, VOTE_NONE, ZXID_NONE } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { TestElection } from '../testing/test-election.ts';
import { EPOCHS_FAR, isPossible, ROUNDS_FAR } from './plausible.ts';

const THREE = { voters: [1, 2, 3] };

/** Server 3 leads epoch 2, which is established; the others are ours. */
function leading(): TestElection {
  const server = new TestElection(3, THREE, { areOurs: true });
  server.look();
  server.ballot(1, 3, 1);
  server.ballot(2, 3, 1);
  server.election.onEpochEstablished(2);
  server.takeSent();
  return server;
}

describe('a vote', () => {
  it.each([
    ['of an epoch beyond the last', { peerEpoch: MAX_EPOCH + 1, zxid: makeZxid(1, 1) }],
    ['whose log is of a later epoch than it has adopted', { peerEpoch: 1, zxid: makeZxid(2, 1) }],
    ['of an epoch without any evidence', { peerEpoch: 2 + EPOCHS_FAR, zxid: makeZxid(1, 1) }],
  ])('%s is neither counted nor adopted', (_what, vote) => {
    const server = new TestElection(3, THREE, { areOurs: true });
    server.look();
    server.ballot(1, 2, 1, vote);
    server.ballot(2, 2, 1, vote);
    server.advance(1000);
    expect(server.decision).toBeUndefined();
    expect(server.election.vote.leader).toBe(3);
    server.ballot(1, 3, 1);
    server.ballot(2, 3, 1);
    expect(server.decision?.leader).toBe(3);
  });

  it('is possible when its epoch is near that of its log, or that of the history of the receiving server', () => {
    const vote = { leader: 1, zxid: makeZxid(90_000, 1), peerEpoch: 90_000 };
    expect(isPossible(vote, 0)).toBe(true);
    expect(isPossible({ ...vote, zxid: makeZxid(1, 1) }, 0)).toBe(false);
    expect(isPossible({ ...vote, zxid: makeZxid(1, 1) }, 89_990)).toBe(true);
  });
});

describe('a round', () => {
  it('that is far ahead is joined step by step, without losing a round', () => {
    const server = new TestElection(3, THREE, { areOurs: true });
    server.look();
    const far = 2 * ROUNDS_FAR + 7;
    for (const round of [1 + ROUNDS_FAR, 1 + 2 * ROUNDS_FAR, far]) {
      server.ballot(1, 3, far);
      expect(server.election.round).toBe(round);
      // A server in an earlier round is sent this server's vote.
      expect(server.takeSent().some(({ to }) => to === 1)).toBe(true);
    }
    expect(server.decision).toBeUndefined();
    server.ballot(2, 3, far);
    expect(server.decision).toMatchObject({ state: ServerState.leading, round: far });
  });

  it('from one packet leaves room for later rounds', () => {
    const server = new TestElection(3, THREE, { areOurs: true });
    server.look();
    server.ballot(1, 3, Number.MAX_SAFE_INTEGER);
    server.look();
    server.following(1, 2, Number.MAX_SAFE_INTEGER);
    server.leading(2, Number.MAX_SAFE_INTEGER);
    expect(server.decision).toMatchObject({ leader: 2 });
    server.look();
    expect(server.election.round).toBeLessThan(5 * ROUNDS_FAR);
  });
});

describe('a server with a history of a later epoch than that of an established leader', () => {
  const later = { currentEpoch: 3, lastZxid: makeZxid(3, 9) };

  it('does not follow, reports it, and remains a candidate', () => {
    const server = new TestElection(1, THREE, { areOurs: true });
    server.look(later);
    for (let i = 0; i < 2; i++) {
      server.following(2, 3, 1);
      server.leading(3, 1);
    }
    expect(server.decision).toBeUndefined();
    expect(new Set(server.olderEpochLeads)).toEqual(new Set(['of epoch 1: 3']));
    server.takeSent();
    server.advance(1000);
    expect(server.takeSent()).toContainEqual(expect.objectContaining({ to: 3, leader: 1, peerEpoch: 3 }));
    // The others are looking again, and have adopted its vote.
    server.ballot(2, 1, 2, { peerEpoch: 3, zxid: makeZxid(3, 9) });
    server.ballot(3, 1, 2, { peerEpoch: 3, zxid: makeZxid(3, 9) });
    expect(server.decision).toMatchObject({ state: ServerState.leading, historyEpoch: 3 });
  });

  it('follows once the epoch of that leader is no older', () => {
    const server = new TestElection(1, THREE, { areOurs: true });
    server.look(later);
    server.following(2, 3, 1);
    server.leading(3, 1);
    server.following(2, 3, 1, { peerEpoch: 4 });
    server.leading(3, 1, { peerEpoch: 4 });
    expect(server.decision).toMatchObject({ state: ServerState.following, leader: 3, historyEpoch: 4 });
  });

  it('does not follow as an observer either', () => {
    const observer = new TestElection(9, THREE, { areOurs: true, peers: [1, 2, 3] });
    observer.look({ ...later, learnerType: 'observer' });
    observer.following(1, 3, 1);
    observer.leading(3, 1);
    expect(observer.decision).toBeUndefined();
    expect(observer.olderEpochLeads).toEqual(['of epoch 1: 3']);
  });

  it('is noticed by that leader', () => {
    const server = leading();
    server.ballot(1, 1, 1, { peerEpoch: 3, zxid: makeZxid(3, 9) });
    expect(server.outranked).toEqual(['by epoch 3: 1']);
    expect(server.election.historyEpochOf(1)).toBe(3);
    expect(server.takeSent()).toMatchObject([{ to: 1, state: ServerState.leading }]);
  });

  it.each([
    ['is of the same epoch', 1, { peerEpoch: 2, zxid: makeZxid(2, 9) }],
    ['is that of another server', 2, { peerEpoch: 3, zxid: makeZxid(3, 9) }],
    ['is impossible', 1, { peerEpoch: MAX_EPOCH, zxid: makeZxid(2, 9) }],
    ['cannot be trusted', 1, { peerEpoch: 3, zxid: ZXID_NONE }],
    ['belongs to a server that would eventually follow', 1, { peerEpoch: 3, zxid: makeZxid(3, 9), announces: 0 }],
  ])('is not noticed when it %s', (_what, leader, vote) => {
    const server = leading();
    server.ballot(1, leader, 1, vote);
    expect(server.outranked).toEqual([]);
  });
});

describe('the known history of a server', () => {
  it('is the one that it last stood with, on its current connection', () => {
    const server = leading();
    expect(server.election.historyEpochOf(1)).toBeNull();
    server.ballot(1, VOTE_NONE, 1);
    expect(server.election.historyEpochOf(1)).toBeNull();
    server.ballot(1, 1, 1, { peerEpoch: 1 });
    server.ballot(1, 3, 1, { peerEpoch: 1 });
    server.following(1, 3, 1, { peerEpoch: 2 });
    expect(server.election.historyEpochOf(1)).toBe(1);
    server.election.onPeerConnected(1);
    expect(server.election.historyEpochOf(1)).toBeNull();
  });
});
