/**
 * The envelope of everything that a learner and its leader send each other on the quorum port (QuorumPacket). Packets
 * follow each other without framing, see `QuorumPacketScanner`.
 *
 *     packet := int type, long zxid, buffer data, vector<Id> authInfo                       (20 bytes at least)
 *     Id     := ustring scheme, ustring id
 *
 * What `data` holds depends on the type and on who sends it: `LearnerPacket` and `LeaderPacket`.
 */
import { EMPTY_BYTES, JuteReader } from '../jute/reader.ts';
import type { JuteWriter } from '../jute/writer.ts';
import { isZxid, ZXID_NONE, type Zxid } from '../zxid.ts';

/** Numbers of the packets (Leader), with their names in the Zab paper. */
export const PacketType = {
  request: 1,
  proposal: 2,
  ack: 3,
  commit: 4,
  ping: 5,
  revalidate: 6,
  sync: 7,
  inform: 8,
  commitAndActivate: 9,
  /** NEWLEADER; the learner's ACK of it is the paper's ACK-LD. */
  newLeader: 10,
  /** CEPOCH */
  followerInfo: 11,
  /** COMMIT-LD */
  upToDate: 12,
  diff: 13,
  trunc: 14,
  snap: 15,
  /** CEPOCH of an observer */
  observerInfo: 16,
  /** NEWEPOCH */
  leaderInfo: 17,
  /** ACK-E */
  ackEpoch: 18,
  informAndActivate: 19,
  /** HANDOVER: our extension, far from Apache's numbers, sent only to learners that announced support. */
  handOver: 0x4d4b01,
} as const;
export type PacketType = (typeof PacketType)[keyof typeof PacketType];

/** Version of the protocol between learner and leader, Zab 1.0: the only one that both sides here speak. */
export const QUORUM_PROTOCOL_VERSION = 0x10000;

/** Identity of a client in one scheme; both parts may be null, as in an ACL. */
export interface AuthId {
  readonly scheme: string | null;
  readonly id: string | null;
}

export interface QuorumPacket {
  readonly type: number;
  readonly zxid: Zxid;
  readonly data: Uint8Array | null;
  /** Empty for a null vector, which all but REQUEST have. */
  readonly authInfo: readonly AuthId[];
}

/** A packet of an unknown type, or of one that is not sent in this direction. It still shows that the peer is alive. */
export interface UnknownPacket {
  readonly type: null;
  readonly typeNumber: number;
}

/**
 * (−1, 0) is sent by an Apache server that has no data but must not be taken for a new one (`db.autocreate=false`): the
 * epoch that it has accepted is that of its zxid, −1.
 */
const OF_NO_EPOCH = -(2 ** 32);

/**
 * Reads a packet; `data` is a view into the reader's bytes. @returns null when it is malformed, or its zxid not exact
 */
export function readQuorumPacket(reader: JuteReader): QuorumPacket | null {
  const type = reader.int();
  const raw = reader.long();
  const zxid = raw === OF_NO_EPOCH ? ZXID_NONE : raw;
  const data = reader.buffer();
  const authInfo = readAuthInfo(reader);
  return reader.failed || !isZxid(zxid) ? null : { type, zxid, data, authInfo };
}

/**
 * Reads a packet and decodes its data, which depend on its type and on the sender.
 *
 * @param readPayload is given a reader of the data, which it must consume before anything else is read
 * @returns null when the packet or its data are malformed
 */
export function readTypedPacket<T>(
  reader: JuteReader,
  readPayload: (packet: QuorumPacket, data: JuteReader) => T | null,
): T | null {
  const packet = readQuorumPacket(reader);
  if (packet === null) return null;
  const data = packet.data ?? EMPTY_BYTES;
  DATA.reset(data, 0, data.length);
  const payload = readPayload(packet, DATA);
  return DATA.failed ? null : payload;
}

/** The packet's own reader has checked the length of its data. */
const DATA = new JuteReader(EMPTY_BYTES, 2 ** 31 - 1);

/** Writes a packet whose data are already encoded. */
export function writeQuorumPacket(
  writer: JuteWriter,
  type: PacketType,
  zxid: Zxid,
  data: Uint8Array | null,
  authInfo: readonly AuthId[] | null = null,
): void {
  writer.int(type);
  writer.long(zxid);
  writer.buffer(data);
  writeAuthInfo(writer, authInfo);
}

/** Begins a packet whose data the caller writes next. @returns what `endQuorumPacket` needs */
export function beginQuorumPacket(writer: JuteWriter, type: PacketType, zxid: Zxid = ZXID_NONE): number {
  writer.int(type);
  writer.long(zxid);
  return writer.beginFrame();
}

export function endQuorumPacket(writer: JuteWriter, lengthAt: number, authInfo: readonly AuthId[] | null = null): void {
  writer.endFrame(lengthAt);
  writeAuthInfo(writer, authInfo);
}

function writeAuthInfo(writer: JuteWriter, authInfo: readonly AuthId[] | null): void {
  writer.int(authInfo === null ? -1 : authInfo.length);
  for (const { scheme, id } of authInfo ?? []) {
    writer.ustring(scheme);
    writer.ustring(id);
  }
}

const NO_AUTH_INFO: readonly AuthId[] = Object.freeze([]);
const AUTH_ID_BYTES_MIN = 8;

function readAuthInfo(reader: JuteReader): readonly AuthId[] {
  const count = reader.vectorLength(AUTH_ID_BYTES_MIN);
  if (count === 0) return NO_AUTH_INFO;
  const list: AuthId[] = [];
  for (let i = 0; i < count && !reader.failed; i++) list.push({ scheme: reader.ustring(), id: reader.ustring() });
  return list;
}
