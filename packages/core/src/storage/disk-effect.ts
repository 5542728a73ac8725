import type { DiskError, DiskFile, Random } from '../base/ports.ts';

export type DiskOperation =
  | 'makeDirectory'
  | 'list'
  | 'open'
  | 'create'
  | 'rename'
  | 'remove'
  | 'syncDirectory'
  | 'hold'
  | 'read'
  | 'write'
  | 'sync'
  | 'preallocate'
  | 'truncate';

/** Hears of what has taken place, before its completion is told. */
export interface DiskObserver {
  /** All of a write, or the part that was written before it failed or its process ended. */
  onWritten(path: string, position: number, bytes: Uint8Array): void;
  onSynced(path: string): void;
  onRenamed(source: string, target: string): void;
  onDirectorySynced(path: string): void;
  onFailed(operation: DiskOperation, path: string): void;
}

/** An effect on a disk in memory that has been asked for and has not taken place yet. */
export interface DiskEffect {
  /** The open file that it belongs to, whose effects take place in order; null for one of a directory. */
  readonly file: DiskFile | null;
  readonly operation: DiskOperation;
  readonly path: string;
  /** Takes place and tells its completion. */
  readonly run: (error: DiskError | null) => void;
  /** Of a write: takes place up to some byte, as when the process ends in its middle. */
  readonly runPart: ((random: Random) => void) | null;
}
