import { allFrames } from '../differential/frame-script.ts';
import type { Random } from '../differential/random.ts';
import { followerInfo, notification, observerInfo } from '../ensemble/raw-peer.ts';
import { Op } from '../harness/raw-client.ts';
import { record } from '../harness/record-builder.ts';

/** Edge-case numbers. */
const EDGES: readonly number[] = [0, 1, -1, 2, 4, 0x7f, 0x80, 0xffff, 0xfffff, 0x100000, 0x7fffffff, -0x80000000];

/** Valid messages of a port, without length prefixes. */
export interface Corpus {
  readonly messages: readonly Buffer[];
  readonly hasLengths: boolean;
}

/** Requests of clients: every operation, with valid and invalid fields. */
export const CLIENT_CORPUS: Corpus = {
  hasLengths: true,
  messages: [
    ...allFrames().map(({ type, body }) => record().int(1).int(type).raw(body).build()),
    ...['', 'x', 'username="bob",realm="zk-sasl-md5",nonce="n",nc=00000001,cnonce="c",response=0'].map((token) =>
      record().int(1).int(Op.sasl).buffer(token).build(),
    ),
    ...['digest', 'ip', 'sasl', 'x509', 'nobody'].map((scheme) =>
      record().int(-4).int(Op.auth).int(0).ustring(scheme).buffer('a:b').build(),
    ),
  ],
};

/** Types of packets between learners and leaders, and some invalid ones. */
const PACKET_TYPES = [...Array.from({ length: 21 }, (_, i) => i), 0x4d4b01, -1];
const SERVER_IDS = [-1, 1, 2, 3, 9];

/** Packets of a learner, which have no length prefix on the quorum port. */
export const QUORUM_CORPUS: Corpus = {
  hasLengths: false,
  messages: [
    ...SERVER_IDS.flatMap((serverId) =>
      [0, 1, 0x7fffffff].flatMap((acceptedEpoch) => [
        Buffer.from(followerInfo({ serverId, acceptedEpoch })),
        Buffer.from(observerInfo({ serverId, acceptedEpoch })),
      ]),
    ),
    ...PACKET_TYPES.flatMap((type) => [
      packet(type, 0x100000001n, null),
      packet(type, 0n, Buffer.alloc(0)),
      packet(type, -1n, Buffer.from('00000001', 'hex')),
      // A session with its timeout, as in PING and REVALIDATE.
      packet(type, 0n, record().long(0x100000000000001n).int(4000).build()),
      // A session, an xid, an operation and its record, as in REQUEST.
      ...CLIENT_CORPUS.messages.map((message) =>
        packet(type, 0n, Buffer.concat([record().long(0x100000000000001n).build(), message])),
      ),
    ]),
    ...['', 'x', 'username="zk",realm="zk-quorum-sasl-md5",nonce="n",nc=00000001,cnonce="c",response=0'].map((token) =>
      saslPacket(0, token),
    ),
  ],
};

/** Messages on the election port: the initial hello has no length prefix, votes have one. */
export const ELECTION_CORPUS: Corpus = {
  hasLengths: false,
  messages: [
    ...SERVER_IDS.flatMap((serverId) =>
      (['looking', 'following', 'leading'] as const).flatMap((state) => {
        const vote = { state, leader: serverId, zxid: 0x100000001n, round: 1n, peerEpoch: 1n };
        const whole = Buffer.from(notification(serverId, vote));
        const hello = electionHello(serverId);
        return [whole, hello, whole.subarray(hello.length)];
      }),
    ),
    record().int(40).raw(Buffer.alloc(40, 0xff)).build(),
    record().int(28).raw(Buffer.alloc(28)).build(),
    saslPacket(0, ''),
  ],
};

/** The initial hello on the election port. */
export function electionHello(serverId: number): Buffer {
  return record().long(-65536n).long(BigInt(serverId)).ustring('127.0.0.1:9').build();
}

/** A packet of a SASL exchange between servers. */
export function saslPacket(status: number, token: string): Buffer {
  return record().long(0x5f2435013501edccn).int(status).buffer(token).build();
}

/** A packet between learner and leader. */
export function packet(type: number, zxid: bigint, data: Buffer | null): Buffer {
  return record().int(type).long(zxid).buffer(data).int(0).build();
}

/** One frame: valid, modified, truncated, or random bytes. */
export function makeFrame(random: Random, { messages, hasLengths }: Corpus): Buffer {
  const withLength = hasLengths ? addLength : same;
  const frame = Buffer.from(random.pick(messages));
  switch (random.below(8)) {
    case 0:
      return withLength(frame);
    case 1:
      return withLength(random.bytes(random.below(200)));
    case 2:
      return withLength(frame.subarray(0, random.below(frame.length + 1)));
    case 3:
      return withLength(Buffer.concat([frame, random.bytes(random.below(40))]));
    case 4:
      return withLength(putEdges(frame, random));
    case 5:
      return withLength(flipBits(frame, random));
    case 6:
      return withLength(Buffer.concat([frame.subarray(0, random.below(frame.length)), random.pick(messages)]));
    default:
      return random.oneIn(8) && hasLengths ? lie(frame, random) : withLength(putEdges(flipBits(frame, random), random));
  }
}

const same = (frame: Buffer): Buffer => frame;

function addLength(frame: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(frame.length);
  return Buffer.concat([length, frame]);
}

/** A wrong length of the frame. */
function lie(frame: Buffer, random: Random): Buffer {
  const whole = addLength(frame);
  whole.writeInt32BE(random.oneIn(2) ? random.pick(EDGES) : frame.length + random.below(9) - 4);
  return whole;
}

function flipBits(frame: Buffer, random: Random): Buffer {
  for (let i = random.below(4); i >= 0 && frame.length > 0; i--) {
    const at = random.below(frame.length);
    frame[at] = (frame[at] ?? 0) ^ (1 << random.below(8));
  }
  return frame;
}

function putEdges(frame: Buffer, random: Random): Buffer {
  for (let i = random.below(3); i >= 0 && frame.length >= 4; i--) {
    frame.writeInt32BE(random.pick(EDGES), random.below(frame.length - 3));
  }
  return frame;
}
