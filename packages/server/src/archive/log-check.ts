/** What is in a log file, and what a start of a server would say of it. */

import { basename } from 'node:path';
import { LogSequence, logFilesOf } from '@meerkat/core/files';
import { previousZxid, ZXID_NONE, type Zxid } from '@meerkat/protocol';
import { openFile } from './directory-files.ts';
import { classifyEnd, scanLog } from './log-scan.ts';

export interface CheckedLog {
  readonly path: string;
  /**
   * - `whole`: every byte is as it was written.
   * - `torn`: the end is what a crash leaves, or is being written.
   * - `damaged`: something was changed after it was written.
   * - `gap`: txns are missing in the file, or between the one before and this.
   */
  readonly state: 'whole' | 'torn' | 'damaged' | 'gap';
  readonly entries: number;
  readonly first: Zxid | null;
  readonly last: Zxid | null;
  /** When the last one was made, milliseconds. */
  readonly lastMs: number | null;
  /** Where the whole entries end. */
  readonly end: number;
  /** Where, what was found, what to do; null: nothing is wrong. */
  readonly problem: string | null;
  /** What needs no operator. */
  readonly notes: readonly string[];
}

/** @param previous the result for the file before; null: continuity with earlier files is not checked */
export async function checkLog(path: string, previous: CheckedLog | null, signal?: AbortSignal): Promise<CheckedLog> {
  const [file] = logFilesOf([{ name: basename(path), size: 0 }]);
  await using opened = await openFile(path);
  let sequence: LogSequence | null = null;
  let entries = 0;
  let first: Zxid | null = null;
  let last: Zxid | null = null;
  let lastMs: number | null = null;
  let gap: string | null = null;
  let unknown: string | null = null;
  const notes: string[] = [];
  const refuse = (position: number, reason: string | null): void => {
    if (reason !== null) gap ??= `${path} at position ${position}: ${reason}. ${MISSING}`;
  };
  const scanned = await scanLog(
    opened,
    {
      onHeader: (before) => {
        const start = previous?.last ?? before ?? (file === undefined ? null : previousZxid(file.zxid));
        if (start === null || file === undefined) return;
        sequence = new LogSequence({ after: start, isEnsemble: false });
        if (previous?.last != null) refuse(0, sequence.beginFile(file, before));
        else sequence.beginFile(file, before);
      },
      onEntry: (entry) => {
        first ??= entry.zxid;
        if (file !== undefined && entries === 0 && entry.zxid !== file.zxid && !isLater(entry.zxid, file.zxid)) {
          notes.push(`${path} begins with zxid 0x${entry.zxid.toString(16)}, which is not what its name says`);
        }
        sequence ??= new LogSequence({ after: previousZxid(entry.zxid), isEnsemble: false });
        if (!sequence.isKnown(entry.zxid)) {
          const reason = sequence.take(entry.zxid);
          refuse(entry.position, reason);
          if (reason !== null) sequence = startAnew(entry.zxid);
        }
        if (entry.decode() === null) {
          unknown ??= `${path} at position ${entry.position}: the entry has the right checksum but is no txn that this version knows`;
        }
        last = entry.zxid;
        lastMs = entry.timeMs;
        entries++;
        return true;
      },
    },
    0,
    signal,
  );
  const seen = sequence as LogSequence | null;
  for (const text of seen?.endFile() ?? []) notes.push(`${path}: ${text}`);
  const base = { path, entries, first, last, lastMs, end: scanned.position };
  if (scanned.headerFault !== null) {
    const problem = `${path}: ${scanned.headerFault}. Without entries a start removes a last file; else ${RESTORE}`;
    return { ...base, state: 'damaged', problem, notes };
  }
  const { judgement } = await classifyEnd(opened, scanned.position, last ?? ZXID_NONE, signal);
  if (judgement.kind === 'rotten' || unknown !== null) {
    const behind =
      judgement.kind === 'end' || judgement.intact === null ? '' : describeIntact(judgement.intact, scanned.position);
    const found = judgement.kind === 'end' ? unknown : `${path} at position ${scanned.position}: ${judgement.reason}`;
    return { ...base, state: 'damaged', problem: `${found}.${behind} ${RESTORE}`, notes };
  }
  if (judgement.kind === 'torn') {
    const text = `${path} at position ${scanned.position}: ${judgement.reason}: as a crash leaves it, or as it is being written; a start cuts it`;
    notes.push(text);
  }
  const state = gap !== null ? 'gap' : judgement.kind === 'torn' ? 'torn' : 'whole';
  return { ...base, state, problem: gap, notes };
}

function startAnew(zxid: Zxid): LogSequence {
  const sequence = new LogSequence({ after: previousZxid(zxid), isEnsemble: false });
  sequence.take(zxid);
  return sequence;
}

function describeIntact(
  { count, firstZxid, lastZxid, firstAt }: { count: number; firstZxid: number; lastZxid: number; firstAt: number },
  position: number,
): string {
  return ` Behind it ${count} txns are whole, 0x${firstZxid.toString(16)} to 0x${lastZxid.toString(16)}, from position ${position + firstAt} on.`;
}

/** A later first entry is fine: what a file of Apache's begins with may be a hole. */
function isLater(first: Zxid, named: Zxid): boolean {
  return first > named && first - named <= 8;
}

const RESTORE =
  'take the file from a healthy server or a backup; "meerkat log repair" keeps what is whole before it, and loses what is behind';
const MISSING = 'A file is missing, or was cut: restore it from a backup, or copy the directory from a healthy server';
