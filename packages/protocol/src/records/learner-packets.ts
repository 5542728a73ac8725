/**
 * What a follower or an observer sends to its leader (LearnerHandler reads it, Learner and its processors write it).
 *
 *     FOLLOWERINFO, OBSERVERINFO   zxid (acceptedEpoch, 0)   long serverId, int protocolVersion, long configVersion,
 *                                                            announcement?
 *     ACKEPOCH                     last zxid of its log      int currentEpoch, −1 when it is not to be counted
 *     ACK                          zxid, (epoch, 0)          –
 *     PING                         as it came                (long sessionId, int timeoutMs)*
 *     REVALIDATE                   −1                        long sessionId, int timeoutMs
 *     REQUEST                      −1                        long sessionId, int cxid, int op, body; authInfo of the client
 */
import type { JuteReader } from '../jute/reader.ts';
import type { JuteWriter } from '../jute/writer.ts';
import { isZxid, ZXID_NONE, type Zxid } from '../zxid.ts';
import { readAnnouncement, writeAnnouncement } from './announcement.ts';
import {
  type AuthId,
  beginQuorumPacket,
  endQuorumPacket,
  PacketType,
  type QuorumPacket,
  readTypedPacket,
  type UnknownPacket,
  writeQuorumPacket,
} from './quorum.ts';

/** The first packet: the id of the learner, and whether it votes or observes. */
export interface LearnerInfoPacket {
  readonly type: typeof PacketType.followerInfo | typeof PacketType.observerInfo;
  /** (acceptedEpoch, 0) */
  readonly zxid: Zxid;
  /** null: an observer of an old release that does not send its id. */
  readonly serverId: number | null;
  /** QUORUM_PROTOCOL_VERSION; less from servers before 3.4, which cannot be answered. */
  readonly protocolVersion: number;
  /** Version of the membership that it follows; null before 3.5. The leader refuses one newer than its own. */
  readonly configVersion: Zxid | null;
  /** A sum of Announcement; 0 from Apache's servers. Written only behind a config version. */
  readonly announces: number;
}

export interface AckEpochPacket {
  readonly type: typeof PacketType.ackEpoch;
  /** Last zxid in the learner's log; −1 when its data cannot be trusted. */
  readonly zxid: Zxid;
  /** Epoch whose history it has adopted; −1: it had accepted this epoch before and is not to be counted again. */
  readonly currentEpoch: number;
}

/** The zxid is in the learner's log, and so is all before it; (epoch, 0) acknowledges NEWLEADER and UPTODATE. */
export interface AckPacket {
  readonly type: typeof PacketType.ack;
  readonly zxid: Zxid;
}

export interface SessionTimeout {
  readonly sessionId: bigint;
  readonly timeoutMs: number;
}

/** Answers a ping with the sessions that were active at the learner since the last one. */
export interface PingReplyPacket {
  readonly type: typeof PacketType.ping;
  readonly zxid: Zxid;
  readonly sessions: readonly SessionTimeout[];
}

/** Asks whether a session that a client wants to resume at the learner is alive. */
export interface RevalidateRequestPacket extends SessionTimeout {
  readonly type: typeof PacketType.revalidate;
}

/** A write or sync of one of the learner's clients. */
export interface ForwardedRequestPacket {
  readonly type: typeof PacketType.request;
  readonly sessionId: bigint;
  /** The xid that the client gave the request. */
  readonly cxid: number;
  readonly op: number;
  /**
   * The undecoded record of the request as the client sent it: a malformed one is the client's fault, not the
   * learner's. For createSession it is the timeout, an int.
   */
  readonly body: Uint8Array;
  readonly authInfo: readonly AuthId[];
}

export type LearnerPacket =
  | LearnerInfoPacket
  | AckEpochPacket
  | AckPacket
  | PingReplyPacket
  | RevalidateRequestPacket
  | ForwardedRequestPacket
  | UnknownPacket;

export function writeLearnerPacket(writer: JuteWriter, packet: Exclude<LearnerPacket, UnknownPacket>): void {
  switch (packet.type) {
    case PacketType.followerInfo:
    case PacketType.observerInfo:
      writeLearnerInfo(writer, packet);
      return;
    case PacketType.ackEpoch: {
      const at = beginQuorumPacket(writer, packet.type, packet.zxid);
      writer.int(packet.currentEpoch);
      endQuorumPacket(writer, at);
      return;
    }
    case PacketType.ack:
      writeQuorumPacket(writer, packet.type, packet.zxid, null);
      return;
    case PacketType.ping: {
      const at = beginQuorumPacket(writer, packet.type, packet.zxid);
      for (const { sessionId, timeoutMs } of packet.sessions) {
        writer.longBig(sessionId);
        writer.int(timeoutMs);
      }
      endQuorumPacket(writer, at);
      return;
    }
    case PacketType.revalidate: {
      const at = beginQuorumPacket(writer, packet.type, ZXID_NONE);
      writer.longBig(packet.sessionId);
      writer.int(packet.timeoutMs);
      endQuorumPacket(writer, at);
      return;
    }
    case PacketType.request: {
      const at = beginQuorumPacket(writer, packet.type, ZXID_NONE);
      writer.longBig(packet.sessionId);
      writer.int(packet.cxid);
      writer.int(packet.op);
      writer.raw(packet.body);
      endQuorumPacket(writer, at, packet.authInfo);
      return;
    }
  }
}

/** Reads a complete packet; `body` is a view. @returns null when it is malformed: the link must be closed */
export function readLearnerPacket(reader: JuteReader): LearnerPacket | null {
  return readTypedPacket(reader, readPayload);
}

/** Bytes behind the known fields are ignored, as by Apache's server. */
function readPayload(packet: QuorumPacket, data: JuteReader): LearnerPacket | null {
  const { type, zxid } = packet;
  switch (type) {
    case PacketType.followerInfo:
    case PacketType.observerInfo:
      return readLearnerInfo(type, zxid, data);
    case PacketType.ackEpoch:
      return { type, zxid, currentEpoch: data.int() };
    case PacketType.ack:
      return { type, zxid };
    case PacketType.ping:
      return { type, zxid, sessions: readSessions(data) };
    case PacketType.revalidate:
      return { type, sessionId: data.longBig(), timeoutMs: data.int() };
    case PacketType.request: {
      const sessionId = data.longBig();
      const cxid = data.int();
      const op = data.int();
      const body = data.bytes.subarray(data.position, data.end);
      return { type, sessionId, cxid, op, body, authInfo: packet.authInfo };
    }
    default:
      return { type: null, typeNumber: type };
  }
}

function writeLearnerInfo(writer: JuteWriter, packet: LearnerInfoPacket): void {
  const at = beginQuorumPacket(writer, packet.type, packet.zxid);
  if (packet.serverId !== null) {
    writer.long(packet.serverId);
    writer.int(packet.protocolVersion);
    if (packet.configVersion !== null) {
      writer.long(packet.configVersion);
      writeAnnouncement(writer, packet.announces);
    }
  }
  endQuorumPacket(writer, at);
}

const PRE_ZAB_VERSION = 1;

/** The record has grown over the releases: older senders omit fields at its end. */
function readLearnerInfo(type: LearnerInfoPacket['type'], zxid: Zxid, data: JuteReader): LearnerInfoPacket | null {
  const serverId = data.remaining > 0 ? data.long() : null;
  const protocolVersion = data.remaining >= 4 ? data.int() : PRE_ZAB_VERSION;
  const configVersion = data.remaining >= 8 ? data.long() : null;
  if (configVersion !== null && !isZxid(configVersion)) return null;
  const announces = configVersion === null ? 0 : readAnnouncement(data);
  return { type, zxid, serverId, protocolVersion, configVersion, announces };
}

function readSessions(data: JuteReader): readonly SessionTimeout[] {
  const sessions: SessionTimeout[] = [];
  while (data.remaining > 0 && !data.failed) sessions.push({ sessionId: data.longBig(), timeoutMs: data.int() });
  return sessions;
}
