import type { SourceWords } from './source-words.ts';

/* What the commands that read files of servers are told. */

/** `log`. */
export interface LogOptions {
  readonly from?: string;
  readonly to?: string;
  readonly path?: string;
  readonly session?: string;
  readonly recompute?: boolean;
  readonly dryRun?: boolean;
}

/** `snapshot`. */
export interface SnapshotOptions {
  readonly path?: string;
  readonly stat?: boolean;
  readonly sessions?: boolean;
  readonly depth?: string;
}

/** `backup`. */
export interface BackupWords extends SourceWords {
  readonly to?: string;
  readonly follow?: boolean;
  readonly snapshotEvery?: string;
  readonly keep?: string;
  readonly keepFor?: string;
}

/** `restore`. */
export interface RestoreWords {
  readonly to?: string;
  readonly into?: string;
  readonly logDir?: string;
  readonly check?: boolean;
}

/** `history`. */
export interface HistoryWords extends SourceWords {
  readonly recursive?: boolean;
  readonly from?: string;
  readonly to?: string;
  readonly diff?: boolean;
  readonly audit?: string;
}

/** `undo`. */
export interface UndoWords extends SourceWords {
  readonly dryRun?: boolean;
  readonly path?: string;
}

/** A state of the past, or of a directory. */
export interface PastWords extends SourceWords {
  readonly at?: string;
}
