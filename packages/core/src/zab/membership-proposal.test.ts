import { makeZxid, PacketType, QUORUM_PROTOCOL_VERSION } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { onDiskOfLearner } from '../base/durable.ts';
import { Electorate } from '../election/electorate.ts';
import { makeQuorum } from '../election/quorum.ts';
import type { LinkId } from './leader-host.ts';
import { LearnerPeer } from './learner-peer.ts';
import { LearnerPeers } from './learner-peers.ts';
import { MembershipProposal } from './membership-proposal.ts';

const CHANGE = makeZxid(2, 7);

/** Whom server 3 names when [4, 5, 6, 7] replace [1, 2, 3]; 7 has no weight. @param acked by each follower */
function designatedBy(acked: Readonly<Record<number, number>>, keepsLeader = false): number {
  const peers = new LearnerPeers();
  for (const [id, counter] of Object.entries(acked)) {
    const peer = new LearnerPeer(Number(id) as LinkId, 0, 1000);
    const info = { type: PacketType.followerInfo, zxid: makeZxid(1, 0), protocolVersion: QUORUM_PROTOCOL_VERSION };
    peer.identify({ ...info, serverId: Number(id), configVersion: null, announces: 0 }, Number(id), true, 0);
    peer.acked = onDiskOfLearner(makeZxid(2, counter));
    peers.connect(peer);
    peers.follow(peer);
  }
  const next = { voters: [4, 5, 6, 7], groups: [[4, 5, 6, 7]], weights: new Map([[7, 0]]) };
  const electorate = new Electorate(makeQuorum({ voters: [1, 2, 3] }), makeQuorum(next));
  const membership = { version: makeZxid(1, 1), committedText: '', newestText: '', keepsLeader };
  const effects = { membershipProposed() {}, membershipCommitted() {} };
  return new MembershipProposal(3, electorate, membership, peers, effects).designateLeader(CHANGE);
}

test('the leader of a new membership is the present one if it may stay', () => {
  expect(designatedBy({ 4: 9, 5: 9 }, true)).toBe(3);
});

test('else it is the new voter with a weight whose log is longest, then the one with the highest id', () => {
  expect(designatedBy({ 1: 9, 4: 7, 5: 8, 6: 7, 7: 9 })).toBe(5);
  expect(designatedBy({ 4: 8, 5: 8, 6: 7 })).toBe(5);
});

test('a server that has not acknowledged the change is not to lead; without any other the leader names itself', () => {
  expect(designatedBy({ 4: 7, 5: 6 })).toBe(4);
  expect(designatedBy({ 1: 9, 4: 6 })).toBe(3);
});
