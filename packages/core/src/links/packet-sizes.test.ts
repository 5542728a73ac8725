/** Every packet that one server writes can be read by the others, regardless of `jute.maxbuffer`. */
import {
  EMPTY_BYTES,
  JuteReader,
  JuteWriter,
  type LearnerPacket,
  OpCode,
  PacketType,
  QuorumPacketScanner,
  readLeaderPacket,
  readLearnerPacket,
  readTxnEntry,
  type Txn,
  txnBytesMaxOf,
  type UnknownPacket,
  writeLearnerPacket,
  writeQuorumPacket,
  writeTxn,
  writeTxnDigest,
  type Zxid,
} from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Identity } from '../base/ports.ts';
import { addIdentities, IDENTITIES_MAX } from '../request/identities.ts';
import { LearnerSessions } from '../session/learner-sessions.ts';

/** Very small limits, where fixed overhead matters, and larger ones. */
const frameBytesMax = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 5000 }));
const extraBytesMax = fc.option(fc.nat(3000));

function written(write: (writer: JuteWriter) => void): Uint8Array {
  const writer = new JuteWriter();
  write(writer);
  return writer.toBytes();
}

/** A packet as a link with this limit reads it; null when it is refused. */
function readBy(fieldBytesMax: number, bytes: Uint8Array): JuteReader | null {
  if (new QuorumPacketScanner(fieldBytesMax).scan(bytes, 0, bytes.length) !== bytes.length) return null;
  const reader = new JuteReader(EMPTY_BYTES, fieldBytesMax);
  reader.reset(bytes, 0, bytes.length);
  return reader;
}

function takenByLeader(limit: number, packet: Exclude<LearnerPacket, UnknownPacket>): LearnerPacket | null {
  const reader = readBy(
    limit,
    written((writer) => writeLearnerPacket(writer, packet)),
  );
  return reader === null ? null : readLearnerPacket(reader);
}

describe('a packet of a learner', () => {
  it('with a request of maximum length from a client with the maximum of identities is accepted', () => {
    const identity = fc.record({
      scheme: fc.constantFrom('digest', 'ip'),
      id: fc.string({ unit: 'binary', maxLength: 300, size: 'max' }),
    });
    fc.assert(
      fc.property(
        frameBytesMax,
        extraBytesMax,
        fc.array(identity, { maxLength: 2 * IDENTITIES_MAX, size: 'max' }),
        (frame, extra, ids) => {
          let authInfo: readonly Identity[] = [{ scheme: 'ip', id: '0000:0000:0000:0000:0000:ffff:255.255.255.255' }];
          for (const id of ids) authInfo = addIdentities(authInfo, [id], frame) ?? authInfo;
          const body = new Uint8Array(Math.max(0, frame - 8));
          const packet = {
            type: PacketType.request,
            sessionId: 1n,
            cxid: 1,
            op: OpCode.setData,
            body,
            authInfo,
          } as const;
          expect(takenByLeader(txnBytesMaxOf(frame, extra), packet)).toEqual(packet);
        },
      ),
    );
  });

  it('with the maximum of sessions in a ping reply is accepted', () => {
    fc.assert(
      fc.property(frameBytesMax, extraBytesMax, fc.nat(1000), (frame, extra, count) => {
        const sessions = new LearnerSessions(new Map(), () => {});
        for (let i = 0; i < count; i++) sessions.open(BigInt(i + 1), 4000, 0);
        const limit = txnBytesMaxOf(frame, extra);
        const packet = {
          type: PacketType.ping,
          zxid: 1 as Zxid,
          sessions: sessions.takeTouched(Math.floor(limit / 12), 0),
        };
        expect(takenByLeader(limit, packet)).toEqual(packet);
      }),
    );
  });
});

it('a proposal of maximum length is accepted by learners, and one byte more is not', () => {
  fc.assert(
    fc.property(
      frameBytesMax,
      extraBytesMax,
      fc.constantFrom(PacketType.proposal, PacketType.inform),
      (frame, extra, type) => {
        const limit = txnBytesMaxOf(frame, extra);
        const proposalOf = (bytes: number): Uint8Array => {
          const txn: Txn = {
            type: OpCode.setData,
            path: '/a',
            data: new Uint8Array(bytes - 32 - 6 - 4 - 4 - 12),
            version: 1,
          };
          const payload = written((writer) => {
            writeTxn(writer, { sessionId: 1n, cxid: 1, zxid: 1 as Zxid, time: 1 }, txn);
            writeTxnDigest(writer, 2, 1n);
          });
          expect(payload).toHaveLength(bytes);
          return written((writer) => writeQuorumPacket(writer, type, 1 as Zxid, payload));
        };
        const reader = readBy(limit, proposalOf(limit));
        const packet = reader === null ? null : readLeaderPacket(reader);
        expect(packet).toMatchObject({ type, entry: { header: { zxid: 1 } } });
        expect(readTxnEntry(new JuteReader((packet as { payload: Uint8Array }).payload, limit))).not.toBeNull();
        expect(readBy(limit, proposalOf(limit + 1))).toBeNull();
      },
    ),
  );
});
