/*
 * The formats of a server's files, for programs that read and write them without running a server, such as backups.
 * Entry point `@meerkat/core/files`.
 */
export { assert } from './base/assert.ts';
export { ROW_INTS, SCAN_MEMORY_BYTES } from './base/file-scans.ts';
export { viewDatabase } from './database-view.ts';
export { ADLER_START, adler32 } from './storage/adler32.ts';
export {
  compressionOf,
  logFilesOf,
  logName,
  snapshotFilesOf,
  snapshotName,
  type ZxidFile,
} from './storage/file-names.ts';
export { classifyLogTail, type LogTail, type LogTailState } from './storage/log-damage.ts';
export {
  END_OF_ENTRY,
  ENTRY_FRAME_BYTES,
  ENTRY_HEAD_BYTES,
  ENTRY_PAYLOAD_BYTES_MIN,
  entryZxidAt,
  faultOfLogHeader,
  isCutLogHeader,
  isWholeEntry,
  LOG_HEADER_BYTES,
  logHeader,
  PAYLOAD_BYTES_MAX,
  zxidBeforeLog,
} from './storage/log-format.ts';
export { LogSequence } from './storage/log-sequence.ts';
export { LogTailCollector, lengthWithoutZeros } from './storage/log-tail.ts';
export { makeRecordScanner, type RecordScanner } from './storage/record-scanner.ts';
export { Replay } from './storage/replay.ts';
export { filesToRemove, RETAIN_COUNT_MIN } from './storage/retention.ts';
export { readSnapshotEnd, type SnapshotDigest, type SnapshotEnd } from './storage/snapshot-end.ts';
export {
  beginsLikeCompressed,
  COMPRESSED_HEAD_BYTES,
  endsLikeSnapshot,
  faultOfSnapshotHeader,
  isLongEnoughForSnapshot,
  SEAL_END_BYTES,
  SNAPSHOT_HEADER_BYTES,
} from './storage/snapshot-format.ts';
export { SnapshotWrite } from './storage/snapshot-write.ts';
export { Database } from './tree/database.ts';
export { SnapshotReader } from './tree/snapshot-reader.ts';
export { LAST_RECORD_BYTES, SnapshotRecord } from './tree/snapshot-record.ts';
