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

/** Notified of each effect that has taken place, before its completion is delivered. */
export interface DiskObserver {
  /** A whole write, or the part that was written before it failed or its process ended. */
  onWritten(path: string, position: number, bytes: Uint8Array): void;
  onSynced(path: string): void;
  onRenamed(source: string, target: string): void;
  onDirectorySynced(path: string): void;
  onFailed(operation: DiskOperation, path: string): void;
}

/** An effect on a memory disk that has been requested and has not taken place yet. */
export interface DiskEffect {
  /** The open file that it belongs to, whose effects take place in order; null for an effect on a directory. */
  readonly file: DiskFile | null;
  readonly operation: DiskOperation;
  readonly path: string;
  /** Performs the effect and delivers its completion. */
  readonly run: (error: DiskError | null) => void;
  /** For a write: performs it up to some byte, as when the process ends in the middle. */
  readonly runPart: ((random: Random) => void) | null;
}
