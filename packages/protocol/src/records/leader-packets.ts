/**
 * What a leader sends to its followers and observers (Leader and LearnerHandler write it, Learner, Follower and Observer
 * read it).
 *
 *     LEADERINFO          (newEpoch, 0)               int protocolVersion, announcement?
 *     DIFF, TRUNC, SNAP   where the learner starts    –            behind SNAP the snapshot follows, see `snap-stream.ts`
 *     NEWLEADER           (newEpoch, 0)               text of the membership last proposed
 *     UPTODATE            −1                          –
 *     PROPOSAL, INFORM    its own                     TxnHeader record TxnDigest?
 *     COMMIT              of the proposal             –
 *     COMMITANDACTIVATE   of the proposal             long designatedLeader
 *     INFORMANDACTIVATE   its own                     long designatedLeader, TxnHeader record TxnDigest?
 *     PING                last proposed               –
 *     SYNC                0                           –
 *     REVALIDATE          −1                          long sessionId, boolean isValid
 *     HANDOVER            last proposed               –            of ours, see `announcement.ts`
 */
import type { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { ZXID_NONE, ZXID_ZERO, type Zxid } from '../zxid.ts';
import { readAnnouncement, writeAnnouncement } from './announcement.ts';
import {
  beginQuorumPacket,
  endQuorumPacket,
  PacketType,
  type QuorumPacket,
  readTypedPacket,
  type UnknownPacket,
  writeQuorumPacket,
} from './quorum.ts';
import { readTxnEntry, type TxnEntry, writeTxn, writeTxnDigest } from './txn.ts';

/** Answers FOLLOWERINFO and OBSERVERINFO with the new epoch. */
export interface LeaderInfoPacket {
  readonly type: typeof PacketType.leaderInfo;
  /** (newEpoch, 0) */
  readonly zxid: Zxid;
  /** QUORUM_PROTOCOL_VERSION */
  readonly protocolVersion: number;
  /** A sum of Announcement; 0 from Apache's servers. */
  readonly announces: number;
}

/** Tells how the learner catches up. */
export interface SyncStartPacket {
  readonly type: typeof PacketType.diff | typeof PacketType.trunc | typeof PacketType.snap;
  /** Last zxid of the history that follows (DIFF), that the learner keeps (TRUNC), that the snapshot holds (SNAP). */
  readonly zxid: Zxid;
}

/** Ends the history: everything before it must be made durable and acknowledged. */
export interface NewLeaderPacket {
  readonly type: typeof PacketType.newLeader;
  /** (newEpoch, 0) */
  readonly zxid: Zxid;
  /** Text of the leader's last seen membership, to be read by `parseMembership`; null before 3.5. */
  readonly configText: string | null;
}

/** The new leader has its quorum: the learner may serve. */
export interface UpToDatePacket {
  readonly type: typeof PacketType.upToDate;
}

/**
 * A txn that a follower is to log (PROPOSAL), or that an observer is to apply because it is committed (INFORM).
 *
 * `payload` holds the bytes of `entry`; `makeProposal` and `readLeaderPacket` ensure that.
 */
export interface ProposalPacket {
  readonly type: typeof PacketType.proposal | typeof PacketType.inform;
  readonly entry: TxnEntry;
  readonly payload: Uint8Array;
}

export interface CommitPacket {
  readonly type: typeof PacketType.commit;
  readonly zxid: Zxid;
}

/** Commits a membership change, which is in force from then on. */
export interface CommitAndActivatePacket {
  readonly type: typeof PacketType.commitAndActivate;
  readonly zxid: Zxid;
  /** Server id of the leader of the new membership. */
  readonly designatedLeader: number;
}

/** INFORM of a membership change, which is in force from then on. */
export interface InformAndActivatePacket {
  readonly type: typeof PacketType.informAndActivate;
  readonly designatedLeader: number;
  readonly entry: TxnEntry;
  readonly payload: Uint8Array;
}

export interface PingPacket {
  readonly type: typeof PacketType.ping;
  /** The zxid that was proposed last. */
  readonly zxid: Zxid;
}

/** Answers the learner's oldest sync: everything committed before it has been sent. */
export interface SyncPacket {
  readonly type: typeof PacketType.sync;
}

export interface RevalidateReplyPacket {
  readonly type: typeof PacketType.revalidate;
  readonly sessionId: bigint;
  readonly isValid: boolean;
}

/** The leader steps down and hands over to this learner, whose log holds all proposals. */
export interface HandOverPacket {
  readonly type: typeof PacketType.handOver;
  /** The zxid that was proposed last. */
  readonly zxid: Zxid;
}

export type LeaderPacket =
  | LeaderInfoPacket
  | SyncStartPacket
  | NewLeaderPacket
  | UpToDatePacket
  | ProposalPacket
  | CommitPacket
  | CommitAndActivatePacket
  | InformAndActivatePacket
  | PingPacket
  | SyncPacket
  | RevalidateReplyPacket
  | HandOverPacket
  | UnknownPacket;

/** Encodes the txn once for all learners. */
export function makeProposal(type: ProposalPacket['type'], entry: TxnEntry): ProposalPacket {
  const writer = new JuteWriter();
  writeTxn(writer, entry.header, entry.txn);
  if (entry.digest !== null) writeTxnDigest(writer, entry.digest.version, entry.digest.treeDigest);
  return { type, entry, payload: writer.toBytes() };
}

export function writeLeaderPacket(writer: JuteWriter, packet: Exclude<LeaderPacket, UnknownPacket>): void {
  switch (packet.type) {
    case PacketType.leaderInfo: {
      const at = beginQuorumPacket(writer, packet.type, packet.zxid);
      writer.int(packet.protocolVersion);
      writeAnnouncement(writer, packet.announces);
      endQuorumPacket(writer, at);
      return;
    }
    case PacketType.diff:
    case PacketType.trunc:
    case PacketType.snap:
    case PacketType.commit:
    case PacketType.ping:
    case PacketType.handOver:
      writeQuorumPacket(writer, packet.type, packet.zxid, null);
      return;
    case PacketType.newLeader:
      writer.int(packet.type);
      writer.long(packet.zxid);
      // A text and the buffer that holds it are the same bytes.
      writer.ustring(packet.configText);
      writer.int(-1);
      return;
    case PacketType.upToDate:
      writeQuorumPacket(writer, packet.type, ZXID_NONE, null);
      return;
    case PacketType.sync:
      writeQuorumPacket(writer, packet.type, ZXID_ZERO, null);
      return;
    case PacketType.proposal:
    case PacketType.inform:
      writeQuorumPacket(writer, packet.type, packet.entry.header.zxid, packet.payload);
      return;
    case PacketType.commitAndActivate: {
      const at = beginQuorumPacket(writer, packet.type, packet.zxid);
      writer.long(packet.designatedLeader);
      endQuorumPacket(writer, at);
      return;
    }
    case PacketType.informAndActivate: {
      const at = beginQuorumPacket(writer, packet.type, packet.entry.header.zxid);
      writer.long(packet.designatedLeader);
      writer.raw(packet.payload);
      endQuorumPacket(writer, at);
      return;
    }
    case PacketType.revalidate: {
      const at = beginQuorumPacket(writer, packet.type, ZXID_NONE);
      writer.longBig(packet.sessionId);
      writer.boolean(packet.isValid);
      endQuorumPacket(writer, at);
      return;
    }
  }
}

/**
 * Reads a complete packet; `payload` and the byte fields of a txn are views.
 *
 * @returns null when it is malformed, or holds an unknown txn: the link must be closed
 */
export function readLeaderPacket(reader: JuteReader): LeaderPacket | null {
  return readTypedPacket(reader, readPayload);
}

const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });

/** Bytes behind the known fields are ignored, as by Apache's server. */
function readPayload(packet: QuorumPacket, data: JuteReader): LeaderPacket | null {
  const { type, zxid } = packet;
  switch (type) {
    case PacketType.leaderInfo:
      return { type, zxid, protocolVersion: data.int(), announces: readAnnouncement(data) };
    case PacketType.diff:
    case PacketType.trunc:
    case PacketType.snap:
    case PacketType.commit:
    case PacketType.ping:
    case PacketType.handOver:
      return { type, zxid };
    case PacketType.newLeader:
      return { type, zxid, configText: data.remaining === 0 ? null : DECODER.decode(data.bytes) };
    case PacketType.upToDate:
    case PacketType.sync:
      return { type };
    case PacketType.proposal:
    case PacketType.inform: {
      const proposal = readProposal(zxid, data);
      return proposal === null ? null : { type, entry: proposal.entry, payload: proposal.payload };
    }
    case PacketType.commitAndActivate:
      return { type, zxid, designatedLeader: data.long() };
    case PacketType.informAndActivate: {
      const designatedLeader = data.long();
      const proposal = readProposal(zxid, data);
      return proposal === null ? null : { type, designatedLeader, ...proposal };
    }
    case PacketType.revalidate:
      return { type, sessionId: data.longBig(), isValid: data.boolean() };
    default:
      return { type: null, typeNumber: type };
  }
}

function readProposal(zxid: Zxid, data: JuteReader): { entry: TxnEntry; payload: Uint8Array } | null {
  const payload = data.bytes.subarray(data.position, data.end);
  const entry = readTxnEntry(data);
  return entry === null || entry.header.zxid !== zxid ? null : { entry, payload };
}
