import type { Database } from '../tree/database.ts';
import type { History } from '../zab/history.ts';
import type { LogFiles } from './log-files.ts';
import type { Legacy, RecoverySummary } from './recovery.ts';

/** What a storage tells the server that it belongs to. */
export interface StorageEvents {
  /** The newest snapshot and the log behind it, applied: the answer to `recover`. */
  onRecovered(database: Database, summary: RecoverySummary, history: History): void;
  /**
   * The server must stop: the start found damage, or the disk failed. Nothing more becomes durable. Told once, and also
   * while a stop is under way: then the process has to end as well, for what another storage would read back may be in
   * the kernel's memory only.
   */
  onStorageFailed(error: Error): void;
  /** The answer to `stop`. */
  onStorageStopped(): void;
}

/** The answer to `truncate`. */
export interface TruncateEvents {
  /** What is left, recovered: another database. */
  onTruncated(database: Database, history: History): void;
  /** It is impossible, for a reason that is told to people; everything is as before. */
  onTruncateRefused(reason: string): void;
}

/** What a storage leaves to the next one of the same process. */
export interface StorageLegacy extends Legacy {
  /** Which log files there are, and where their entries end. */
  readonly logFiles: LogFiles;
}
