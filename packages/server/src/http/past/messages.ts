import type { PastStates } from '@meerkat/console';
import type { ArchiveFault } from '../../archive/archive-error.ts';

/* What a thread that reads the past is asked, when it starts, and what it answers, once. */

export interface PastThreadData {
  readonly files: PastFiles;
  /** The last zxid that is applied: what is in the log behind it may be taken away again. */
  readonly committed: number;
  readonly question: PastQuestion;
}

/** Where a server has its snapshots and its log. */
export interface PastFiles {
  readonly snapshotDirectory: string;
  readonly logDirectory: string;
}

export type PastQuestion =
  | { readonly kind: 'span' }
  | { readonly kind: 'states'; readonly path: string; readonly addresses: ReadonlyMap<bigint, string> }
  /** The thread stays, and takes ports: each is a stream of bytes of a client. `STREAM_OPEN` goes ahead of the bytes. */
  | { readonly kind: 'tree'; readonly moment: string };

export type PastAnswer =
  | { readonly kind: 'span'; readonly span: { readonly fromMs: number; readonly toMs: number } | null }
  | { readonly kind: 'states'; readonly found: PastStates }
  /** null: what was given is no moment. */
  | { readonly kind: 'tree'; readonly tree: { readonly zxid: string; readonly atMs: number | null } | null }
  | { readonly kind: 'failed'; readonly fault: ArchiveFault; readonly text: string }
  | { readonly kind: 'too-large' };

export const STREAM_OPEN = 'open';
