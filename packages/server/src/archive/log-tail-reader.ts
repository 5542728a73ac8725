/**
 * Follows the log of a running server: each `poll` returns the txns appended since the last one, across new files.
 *
 * A new leader may truncate txns that it does not know, and others are then written in their place. So each poll first
 * checks that the last entry is still where it was; if it is not, `poll` says so, and the caller decides.
 */
import { LogSequence, type ZxidFile } from '@meerkat/core/files';
import { epochOf, hexZxid, type Zxid } from '@meerkat/protocol';
import { ArchiveError } from './archive-error.ts';
import type { ArchiveFiles, OpenFile } from './archive-files.ts';
import { type LogEntry, scanLog } from './log-scan.ts';

export interface LogTailEvents {
  /** @param isOurs whether a server of ours wrote the file: its zxids have no holes then */
  onEntry(entry: LogEntry, isOurs: boolean): void;
  /** After each slice, and before anything else is read. */
  onSlice(): Promise<void>;
  onWarning(text: string): void;
}

export type LogTailOutcome =
  /** Everything there is has been told. */
  | { readonly kind: 'end' }
  /** The log begins later: txns behind the last one are missing. */
  | { readonly kind: 'gap'; readonly reason: string }
  /** The last entry is not where it was, or another one is. */
  | { readonly kind: 'replaced' };

/** Enough of an entry to know it: checksum, length, session, cxid, zxid, time. */
const HEAD_BYTES = 44;

export class LogTailReader {
  readonly #files: ArchiveFiles;
  #last: Zxid;
  #file: { readonly file: ZxidFile; readonly opened: OpenFile; isOurs: boolean } | null = null;
  #position = 0;
  #sequence: LogSequence;
  #lastHead: { readonly position: number; readonly bytes: Uint8Array } | null = null;

  /** @param after the last txn that the caller has */
  constructor(files: ArchiveFiles, after: Zxid) {
    this.#files = files;
    this.#last = after;
    this.#sequence = new LogSequence({ after, isEnsemble: false });
  }

  /** @throws ArchiveError `missing` when a file goes while it is read: poll again */
  async poll(events: LogTailEvents, signal?: AbortSignal): Promise<LogTailOutcome> {
    const { logs, committed } = await this.#files.list();
    if (!(await this.#isLastThere(logs))) return { kind: 'replaced' };
    for (;;) {
      if (this.#file === null) {
        const next = this.#nextOf(logs);
        if (next === null) return { kind: 'end' };
        const purged = this.#purgedBefore(next);
        if (purged !== null) return { kind: 'gap', reason: purged };
        await this.#open(next);
      }
      const fault = await this.#read(committed, events, signal);
      if (fault !== null) return { kind: 'gap', reason: fault };
      const current = this.#file!;
      const next = logs.find(({ zxid }) => zxid > current.file.zxid);
      const isHeldBack = committed !== null && this.#last >= committed;
      if (next === undefined || isHeldBack) return { kind: 'end' };
      for (const text of this.#sequence.endFile()) events.onWarning(`${current.opened.path}: ${text}`);
      await this.close();
      // If this file was purged, others behind it may have been, too.
      const isListed = logs.some(({ name }) => name === current.file.name);
      const purged = isListed ? null : this.#purgedBefore(next);
      if (purged !== null) return { kind: 'gap', reason: purged };
      await this.#open(next);
    }
  }

  async close(): Promise<void> {
    await this.#file?.opened.close();
    this.#file = null;
    this.#position = 0;
  }

  /** The file that has the txn behind the last one, or would have it. */
  #nextOf(logs: readonly ZxidFile[]): ZxidFile | null {
    const first = logs.findLastIndex((file) => file.zxid <= this.#last + 1);
    return logs[Math.max(first, 0)] ?? null;
  }

  /** Where the oldest file begins later nothing shows how much there was before: not even the few zxids that Apache's skip. */
  #purgedBefore({ name, zxid }: ZxidFile): string | null {
    const last = this.#last;
    if (last < 0 || zxid <= last + 1 || epochOf(zxid) !== epochOf(last)) return null;
    return `its log begins with ${name}, and the txns behind zxid ${hexZxid(last)} are gone`;
  }

  async #open(file: ZxidFile): Promise<void> {
    const opened = await this.#files.open(file.name);
    this.#file = { file, opened, isOurs: false };
    this.#position = 0;
    this.#lastHead = null;
  }

  /** @returns why the txn behind the last one is not there, or null */
  async #read(committed: Zxid | null, events: LogTailEvents, signal?: AbortSignal): Promise<string | null> {
    const current = this.#file!;
    let fault: string | null = null;
    const scanned = await scanLog(
      current.opened,
      {
        onHeader: (before) => {
          current.isOurs = before !== null;
          fault = this.#sequence.beginFile(current.file, before);
        },
        onEntry: (entry) => {
          if (fault !== null || (committed !== null && entry.zxid > committed)) return false;
          this.#lastHead = { position: entry.position, bytes: Uint8Array.from(entry.bytes.subarray(0, HEAD_BYTES)) };
          if (this.#sequence.isKnown(entry.zxid)) return true;
          fault = this.#sequence.take(entry.zxid);
          if (fault !== null) return false;
          this.#last = entry.zxid;
          events.onEntry(entry, current.isOurs);
          return true;
        },
        onSlice: () => events.onSlice(),
      },
      this.#position,
      signal,
    );
    this.#position = scanned.position;
    return fault;
  }

  async #isLastThere(logs: readonly ZxidFile[]): Promise<boolean> {
    if (this.#file === null) return true;
    if (!logs.some(({ name }) => name === this.#file?.file.name)) {
      // A purge removes old files only; the newest goes when the whole history is replaced.
      return logs.some(({ zxid }) => zxid > this.#file!.file.zxid);
    }
    if (this.#lastHead === null) return true;
    const { position, bytes } = this.#lastHead;
    await using now = await this.#files.open(this.#file.file.name);
    return Buffer.compare(await now.read(position, bytes.length), bytes) === 0;
  }
}

/** Whether to try again soon: a file was purged or rolled meanwhile. */
export function isPassing(error: unknown): boolean {
  return error instanceof ArchiveError && (error.fault === 'missing' || error.fault === 'unreachable');
}
