export * from './error-code.ts';
export { Fifo } from './fifo.ts';
export { JuteChunks, type PieceSource } from './jute/chunks.ts';
export { DEFAULT_FIELD_BYTES_MAX, EMPTY_BYTES, JuteReader } from './jute/reader.ts';
export { textBytes } from './jute/text-bytes.ts';
export { getInt, getLong, getLongBig, JuteWriter, putInt, putLong, putLongBig } from './jute/writer.ts';
export * from './op-code.ts';
export * from './path.ts';
export { Announcement, announcedLease, LEASE_MS_MAX, leaseMsOf } from './records/announcement.ts';
export * from './records/connect.ts';
export * from './records/data.ts';
export * from './records/election.ts';
export {
  type ElectionHello,
  HELLO_ADDRESS_BYTES_MAX,
  HelloVersion,
  measureElectionHello,
  readElectionHello,
  writeElectionHello,
} from './records/election-hello.ts';
export { formatHostPort, type HostPort } from './records/host-port.ts';
export * from './records/leader-packets.ts';
export * from './records/learner-packets.ts';
export * from './records/membership.ts';
export {
  type MultiOp,
  type MultiReadOp,
  type MultiReadRequest,
  type MultiRequest,
  writeMultiEnd,
  writeMultiError,
  writeMultiHeader,
} from './records/multi.ts';
export { createPathEnd, createPathStart, PlainCreate } from './records/plain-create.ts';
export {
  type AuthId,
  PacketType,
  QUORUM_PROTOCOL_VERSION,
  type QuorumPacket,
  readQuorumPacket,
  type UnknownPacket,
  writeQuorumPacket,
} from './records/quorum.ts';
export { QuorumPacketScanner } from './records/quorum-packet-scanner.ts';
export {
  AddWatchMode,
  type AddWatchRequest,
  type ClientOp,
  isClientOp,
  type ReadRequest,
  type ReconfigRequest,
  type Request,
  readRequest,
  type SetWatchesRequest,
  SpecialXid,
  type WatchableReadRequest,
  WatcherType,
  type WatcherTypeRequest,
  writeRequest,
} from './records/requests.ts';
export * from './records/responses.ts';
export * from './records/snap-stream.ts';
export * from './records/txn.ts';
export {
  FRAME_BYTES_LIMIT,
  isTxnWithin,
  MULTI_PART_BYTES,
  RECORD_BYTES_MAX,
  TXN_FRAME_BYTES,
  txnBytesMaxOf,
  txnRecordBytes,
} from './records/txn-size.ts';
export {
  type CheckRequest,
  CreateMode,
  type CreateOp,
  type CreateRequest,
  type DeleteRequest,
  type SetAclRequest,
  type SetDataRequest,
  type WriteRequest,
} from './records/writes.ts';
export * from './zxid.ts';
