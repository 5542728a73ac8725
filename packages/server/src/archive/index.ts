/*
 * The files of a server, read and written from outside: backups, restoring, past states. Entry point
 * `@meerkat/server/archive`; nothing of a running server is loaded with it.
 */
export { viewDatabase, type ZxidFile } from '@meerkat/core/files';
export { type Acl, hexZxid as showZxid, type TxnEntry, type Zxid } from '@meerkat/protocol';
export { ArchiveError, type ArchiveFault, systemError } from './archive-error.ts';
export type { ArchiveFiles, ArchiveListing, OpenFile } from './archive-files.ts';
export { askHttp, describeHttpFailure, type HttpAnswer, type HttpQuestion, jsonOf } from './ask-http.ts';
export { Backup, type BackupOptions, type BackupState } from './backup.ts';
export { readConnectedClients } from './connected-clients.ts';
export { DirectoryFiles, openFile } from './directory-files.ts';
export { type CheckedLog, checkLog } from './log-check.ts';
export { type LogRepair, type LogRepairOptions, repairLogFile } from './log-repair.ts';
export { type LogEntry, type LogScanEvents, type LogScanned, scanLog } from './log-scan.ts';
export { isPassing } from './log-tail-reader.ts';
export { type Moment, parseMoment, zxidAt } from './moment.ts';
export { readSpan, readStates, rebuildMoment } from './past-reading.ts';
export { PastService } from './past-service.ts';
export type { PastStream, PastStreamEvents } from './past-stream.ts';
export { type RebuildOptions, type Rebuilt, rebuild } from './rebuild.ts';
export { RemoteFiles, type RemoteFilesOptions } from './remote-files.ts';
export { type Restored, restore } from './restore.ts';
export {
  type SnapshotScanEvents,
  type SnapshotScanned,
  type SnapshotZnode,
  scanSnapshot,
} from './snapshot-scan.ts';
export { readTxnEffects, type TxnEffects, type ZnodeMoment } from './txn-effects.ts';
export { type HistoryEvents, type HistoryRange, readHistory } from './txn-history.ts';
export { recordOf, type TxnRecord } from './txn-record.ts';
export { readZnodeHistory, type ZnodeChange, type ZnodeState } from './znode-history.ts';
