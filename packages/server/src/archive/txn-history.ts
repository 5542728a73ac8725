/** The txns of all log files, in order, each once. */
import { LogSequence, type ZxidFile } from '@meerkat/core/files';
import { hexZxid, maxZxid, previousZxid, type TxnEntry, type Zxid } from '@meerkat/protocol';
import { ArchiveError } from './archive-error.ts';
import type { ArchiveFiles } from './archive-files.ts';
import { classifyEnd, type LogEntry, scanLog } from './log-scan.ts';

export interface HistoryRange {
  /** Txns behind this one: a snapshot has those up to it. */
  readonly after: Zxid;
  /** The last one that is wanted; null: all. */
  readonly upTo: Zxid | null;
  /** False: the first txn of the log need not be the next behind `after`, and what is missing is only reported. */
  readonly isStrict: boolean;
}

export interface HistoryEvents {
  /** @returns false: no more */
  onTxn(entry: LogEntry, file: ZxidFile): boolean;
  /** For people: what a start of a server would report as well. */
  onWarning?(text: string): void;
  onSlice?(): Promise<void> | undefined;
}

/**
 * @returns the last zxid that was read, or `after`
 * @throws ArchiveError `damaged` where txns are missing or a file is damaged before the last one ends
 */
export async function readHistory(
  files: ArchiveFiles,
  { after, upTo, isStrict }: HistoryRange,
  events: HistoryEvents,
  signal?: AbortSignal,
): Promise<Zxid> {
  const { logs, committed } = await files.list();
  const limit = minOf(upTo, committed);
  const first = logs.findLastIndex((file) => file.zxid <= after + 1);
  const wanted = logs.slice(Math.max(first, 0)).filter((file) => limit === null || file.zxid <= limit);
  let sequence: LogSequence | null = isStrict ? new LogSequence({ after, isEnsemble: false }) : null;
  let torn: string | null = null;
  for (const [index, file] of wanted.entries()) {
    const isLastFile = index === wanted.length - 1;
    await using opened = await files.open(file.name);
    let fault: string | null = null;
    const refuse = (position: number, reason: string | null): boolean => {
      if (reason === null) return false;
      fault = `${opened.path} at position ${position}: ${reason}${torn === null ? '' : `. The file before: ${torn}`}`;
      return true;
    };
    const scanned = await scanLog(
      opened,
      {
        onHeader: (before) => {
          sequence ??= new LogSequence({
            after: maxZxid(after, before ?? previousZxid(file.zxid)),
            isEnsemble: false,
          });
          refuse(0, sequence.beginFile(file, before));
        },
        onEntry: (entry) => {
          if (fault !== null || (limit !== null && entry.zxid > limit)) return false;
          if (sequence!.isKnown(entry.zxid)) return true;
          if (refuse(entry.position, sequence!.take(entry.zxid))) return false;
          return events.onTxn(entry, file);
        },
        onSlice: () => events.onSlice?.(),
      },
      0,
      signal,
    );
    if (fault !== null) throw new ArchiveError('damaged', `${fault}. ${RESTORE}`);
    for (const text of sequence?.endFile() ?? []) events.onWarning?.(`${opened.path}: ${text}`);
    if (scanned.isStopped) break;
    // Behind that a server that runs may be writing: half of it is no damage.
    if (limit !== null && sequence !== null && sequence.last >= limit) break;
    if (scanned.headerFault !== null) {
      if (isLastFile) break;
      throw new ArchiveError('damaged', `${opened.path}: ${scanned.headerFault}. ${RESTORE}`);
    }
    const { judgement } = await classifyEnd(opened, scanned.position, sequence?.last ?? after, signal);
    if (judgement.kind === 'end') continue;
    torn = `${opened.path} at position ${scanned.position}: ${judgement.reason}`;
    if (judgement.kind === 'rotten') throw new ArchiveError('damaged', `${torn}. ${RESTORE}`);
    if (isLastFile) events.onWarning?.(`${torn}: what is being written, or what a crash has torn, is left out`);
  }
  return sequence?.last ?? after;
}

const RESTORE =
  '"meerkat log verify" says what is whole; take the file from another server or a backup, or restore to a zxid before it';

/** @throws ArchiveError when it is no txn that this version knows */
export function decodeTxn(entry: LogEntry, path: string): TxnEntry {
  const decoded = entry.decode();
  if (decoded !== null) return decoded;
  throw new ArchiveError(
    'damaged',
    `${path} at position ${entry.position}: zxid ${hexZxid(entry.zxid)} has the right checksum but is no txn that this ` +
      'version knows: a newer server wrote it?',
  );
}

function minOf(one: Zxid | null, other: Zxid | null): Zxid | null {
  if (one === null) return other;
  return other === null || one < other ? one : other;
}
