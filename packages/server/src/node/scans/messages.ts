import type { ScanKind } from '@meerkat/core';

/** Memory of one chunk, with its rows behind it; it goes from thread to thread. */
export type ChunkMemory = ArrayBuffer;

/** Bytes of a chunk: all of them are read at once, behind what was left of the chunk before. */
export const CHUNK_BYTES: number = 1024 * 1024;
/** Records of a chunk, at most; the shortest entry of a log takes 45 bytes, and most take more than 100. */
export const CHUNK_RECORDS_MAX: number = CHUNK_BYTES / 64;
/** Chunks that exist at a time, and as many pieces of memory for the tree. */
export const CHUNKS_MAX = 6;

/** Shared memory through which the thread is woken: how many messages have been sent to it. */
export type Bell = SharedArrayBuffer;

export interface ScanThreadData {
  readonly bell: Bell;
}

export type ToScanThread =
  /** Scan this file; only one at a time. */
  | {
      readonly kind: 'scan';
      readonly path: string;
      readonly scan: ScanKind;
      readonly from: number;
      readonly end: number;
      readonly checksum: number;
    }
  /** A chunk is no longer in use. */
  | { readonly kind: 'release'; readonly chunk: ChunkMemory; readonly memory: ArrayBuffer | null };

export type FromScanThread =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'chunk';
      readonly chunk: ChunkMemory;
      readonly memory: ArrayBuffer;
      readonly position: number;
      readonly end: number;
      readonly count: number;
      readonly checksum: number;
    }
  | { readonly kind: 'end' };
