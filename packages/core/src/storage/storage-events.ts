import type { Database } from '../tree/database.ts';
import type { History } from '../zab/history.ts';
import type { LogFiles } from './log-files.ts';
import type { CarriedState, RecoverySummary } from './recovery.ts';

/** Events from a storage to the server that owns it. */
export interface StorageEvents {
  /** The newest snapshot and the log behind it, applied: the answer to `recover`. */
  onRecovered(database: Database, summary: RecoverySummary, history: History): void;
  /**
   * The server must stop: the start found damage, or the disk failed. Nothing more becomes durable. Called once, and
   * also during a stop: then the process has to end too, because what another storage would read back may exist in the
   * kernel's memory only.
   */
  onStorageFailed(error: Error): void;
  /** The answer to `stop`. */
  onStorageStopped(): void;
}

/** The answer to `truncate`. */
export interface TruncateEvents {
  /** The remaining history, recovered: a new database. */
  onTruncated(database: Database, history: History): void;
  /** It is impossible, for a reason meant for humans; nothing has changed. */
  onTruncateRefused(reason: string): void;
}

/** The state that a storage hands over to the next one of the same process. */
export interface CarriedStorage extends CarriedState {
  /** The log files, and where their entries end. */
  readonly logFiles: LogFiles;
}
