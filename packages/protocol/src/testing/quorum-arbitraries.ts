/** Values of messages between servers, which our reader must return exactly as written. */
import fc from 'fast-check';
import { type ElectionNotification, ServerState, VOTE_NONE, ZXID_VOTE_NONE } from '../records/election.ts';
import { HelloVersion } from '../records/election-hello.ts';
import { type LeaderPacket, makeProposal } from '../records/leader-packets.ts';
import type { LearnerPacket } from '../records/learner-packets.ts';
import type { Hierarchy, Member, Membership } from '../records/membership.ts';
import { PacketType, type UnknownPacket } from '../records/quorum.ts';
import { DIGEST_VERSION, type TxnEntry } from '../records/txn.ts';
import { MAX_COUNTER, MAX_EPOCH, makeZxid, ZXID_NONE, type Zxid } from '../zxid.ts';
import { anyTreeDigest, anyTxn, anyTxnHeader } from './arbitraries.ts';

const int = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const long = fc.maxSafeInteger();
const zxid: fc.Arbitrary<Zxid> = fc.oneof(
  fc.constant(ZXID_NONE),
  fc
    .tuple(fc.nat(MAX_EPOCH), fc.integer({ min: 0, max: MAX_COUNTER }))
    .map(([epoch, counter]) => makeZxid(epoch, counter)),
);
const text = fc.string({ unit: 'binary', maxLength: 60 });
const announces = fc.oneof(fc.constant(0), int);
const session = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const serverId = fc.oneof(fc.integer({ min: 1, max: 255 }), fc.maxSafeNat());
const port = fc.integer({ min: 0, max: 65535 });
/** In the form that Apache prints. */
const host = fc.oneof(
  fc.constantFrom('zoo1', 'a.b-c.example', '10.0.0.1', '127.0.0.1'),
  fc.constant('fe80:0:0:0:0:a:0:1'),
);

export const anyNotification: fc.Arbitrary<ElectionNotification> = fc
  .record({
    state: fc.constantFrom(...Object.values(ServerState)),
    leader: fc.oneof(long, fc.constant(VOTE_NONE)),
    zxid: fc.oneof(zxid, fc.constant(ZXID_VOTE_NONE)),
    electionEpoch: long,
    peerEpoch: fc.oneof(long, fc.constant(VOTE_NONE)),
    version: fc.integer({ min: 2, max: 5 }),
    configText: text,
    announces,
  })
  .chain((notification) =>
    fc.constantFrom(notification, { ...notification, version: 0, configText: null, announces: 0 }),
  );

export const anyHello = fc.oneof(
  fc.record({
    version: fc.constant(HelloVersion.singleAddress),
    serverId,
    addresses: fc.array(fc.record({ host, port }), { minLength: 1, maxLength: 1 }),
  }),
  fc.record({
    version: fc.constant(HelloVersion.multipleAddresses),
    serverId,
    addresses: fc.array(fc.record({ host, port }), { minLength: 1, maxLength: 8 }),
  }),
);

const sessionTimeout = fc.record({ sessionId: session, timeoutMs: int });

export const anyLearnerPacket: fc.Arbitrary<Exclude<LearnerPacket, UnknownPacket>> = fc.oneof(
  fc.record({
    type: fc.constantFrom(PacketType.followerInfo, PacketType.observerInfo),
    zxid,
    serverId,
    protocolVersion: int,
    configVersion: zxid,
    announces,
  }),
  fc.record({
    type: fc.constantFrom(PacketType.followerInfo, PacketType.observerInfo),
    zxid,
    serverId,
    protocolVersion: int,
    configVersion: fc.constant(null),
    announces: fc.constant(0),
  }),
  fc.record({ type: fc.constant(PacketType.ackEpoch), zxid, currentEpoch: int }),
  fc.record({ type: fc.constant(PacketType.ack), zxid }),
  fc.record({ type: fc.constant(PacketType.ping), zxid, sessions: fc.array(sessionTimeout, { maxLength: 5 }) }),
  fc.record({ type: fc.constant(PacketType.revalidate), sessionId: session, timeoutMs: int }),
  fc.record({
    type: fc.constant(PacketType.request),
    sessionId: session,
    cxid: int,
    op: int,
    body: fc.uint8Array({ maxLength: 100 }),
    authInfo: fc.array(fc.record({ scheme: fc.option(text), id: fc.option(text) }), { maxLength: 4 }),
  }),
);

const entry: fc.Arbitrary<TxnEntry> = fc
  .tuple(anyTxnHeader, anyTxn, anyTreeDigest)
  .map(([header, txn, treeDigest]) => ({
    header,
    txn,
    digest: treeDigest === null ? null : { version: DIGEST_VERSION, treeDigest },
  }));

const proposal = fc
  .tuple(fc.constantFrom(PacketType.proposal, PacketType.inform), entry)
  .map(([type, txnEntry]) => makeProposal(type, txnEntry));

export const anyLeaderPacket: fc.Arbitrary<Exclude<LeaderPacket, UnknownPacket>> = fc.oneof(
  fc.record({ type: fc.constant(PacketType.leaderInfo), zxid, protocolVersion: int, announces }),
  fc.record({
    type: fc.constantFrom(PacketType.diff, PacketType.trunc, PacketType.snap),
    zxid,
  }),
  fc.record({
    type: fc.constant(PacketType.newLeader),
    zxid,
    configText: fc.option(text.filter((value) => value !== '')),
  }),
  fc.record({ type: fc.constantFrom(PacketType.upToDate, PacketType.sync) }),
  fc.record({ type: fc.constantFrom(PacketType.commit, PacketType.ping, PacketType.handOver), zxid }),
  fc.record({ type: fc.constant(PacketType.commitAndActivate), zxid, designatedLeader: long }),
  fc.record({ type: fc.constant(PacketType.revalidate), sessionId: session, isValid: fc.boolean() }),
  proposal,
  fc.tuple(proposal, long).map(([{ entry: txnEntry, payload }, designatedLeader]) => ({
    type: PacketType.informAndActivate,
    designatedLeader,
    entry: txnEntry,
    payload,
  })),
);

const address = fc
  .record({ host, quorumPort: port, electionPort: port })
  .filter(({ quorumPort, electionPort }) => quorumPort !== electionPort);
const client = fc.option(fc.record({ host, port }));

const member: fc.Arbitrary<Member> = fc.record({
  serverId,
  role: fc.constantFrom('participant', 'observer'),
  addresses: fc
    .uniqueArray(address, { minLength: 1, maxLength: 3, selector: (value) => value.host })
    .map((list) => list.sort((a, b) => (a.host < b.host ? -1 : 1))),
  client,
  secureClient: client,
});

const weights = fc.array(fc.nat(100), { minLength: 8, maxLength: 8 });

/** A group for each third of the participants, and a weight for each. */
function makeHierarchy(members: readonly Member[], some: readonly number[]): Hierarchy {
  const voters = members.filter(({ role }) => role === 'participant').map((voter) => voter.serverId);
  const groups = new Map<number, readonly number[]>();
  for (const [i, voter] of voters.entries()) groups.set(i % 3, [...(groups.get(i % 3) ?? []), voter]);
  return { groups, weights: new Map(voters.map((voter, i) => [voter, some[i] ?? 0])) };
}

export const anyMembership: fc.Arbitrary<Membership> = fc
  .record({
    version: zxid.filter((value) => value >= 0),
    members: fc
      .uniqueArray(member, { maxLength: 8, selector: (value) => value.serverId })
      .map((list) => list.sort((a, b) => a.serverId - b.serverId)),
    hierarchy: fc.constant(null),
  })
  .chain((membership) =>
    fc.oneof(
      fc.constant(membership),
      weights.map((some) => {
        const hierarchy = makeHierarchy(membership.members, some);
        return { ...membership, hierarchy: hierarchy.groups.size === 0 ? null : hierarchy };
      }),
    ),
  );
