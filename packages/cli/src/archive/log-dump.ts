import { type LogEntry, openFile, recordOf, scanLog, showZxid, type TxnRecord } from '@meerkat/server/archive';
import type { Column } from '../output/column.ts';
import { hex, isoTime, localTime } from '../output/stat-columns.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { withArchive } from './archive-failure.ts';
import { momentOf } from './moment-words.ts';
import { namedFiles } from './named-files.ts';
import { describeRecord, recordCell, touches } from './txn-text.ts';
import type { LogOptions } from './words.ts';

interface Dumped {
  readonly file: string;
  readonly position: number;
  readonly zxid: number;
  readonly timeMs: number;
  readonly session: bigint;
  readonly cxid: number;
  readonly record: TxnRecord;
  readonly digest: bigint | null;
}

const COLUMNS: readonly Column<Dumped>[] = [
  { name: 'file', value: ({ file }) => file },
  { name: 'position', value: ({ position }) => position },
  { name: 'zxid', value: ({ zxid }) => showZxid(zxid) },
  { name: 'time', value: ({ timeMs }) => isoTime(timeMs) },
  { name: 'session', value: ({ session }) => hex(session) },
  { name: 'cxid', value: ({ cxid }) => cxid },
  { name: 'type', value: ({ record }) => record.type },
  { name: 'txn', value: ({ record }) => recordCell(record) },
  { name: 'digest', value: ({ digest }) => (digest === null ? null : BigInt.asUintN(64, digest).toString(16)) },
];

/** `log dump`: every txn, with memory for a slice of the file. */
export function dumpLogs(context: Context, names: readonly string[], options: LogOptions): Promise<CommandExit> {
  const { report, signal } = context;
  const isWanted = selectionOf(options);
  return withArchive(async () => {
    const list = report.isForPeople ? null : await report.list(COLUMNS);
    const write = async (slice: readonly Dumped[]): Promise<void> => {
      signal.throwIfAborted();
      if (list === null) await report.write(slice.map(lineOf).join(''));
      else for (const dumped of slice) await list.add(dumped);
    };
    let damage: string | null = null;
    for (const path of await namedFiles(names, 'log')) {
      const found = await dumpLog(path, isWanted, write, signal);
      damage ??= found;
    }
    await list?.end();
    if (damage !== null) throw new CommandFailure(CommandExit.file, `${damage}; "meerkat log verify" says more`);
    return CommandExit.ok;
  });
}

/**
 * @param write what a slice of the file has is written before the next one is read
 * @returns what is wrong with the file, behind what was written; null: nothing
 */
async function dumpLog(
  path: string,
  isWanted: (dumped: Dumped) => boolean,
  write: (slice: readonly Dumped[]) => Promise<void>,
  signal: AbortSignal,
): Promise<string | null> {
  await using file = await openFile(path);
  let slice: Dumped[] = [];
  let unknown: string | null = null;
  const onEntry = (entry: LogEntry): boolean => {
    const dumped = dumpedOf(path, entry);
    if (dumped === null) {
      unknown = `${path} at position ${entry.position}: zxid ${showZxid(entry.zxid)} is no txn that this version knows`;
      return false;
    }
    if (isWanted(dumped)) slice.push(dumped);
    return true;
  };
  const onSlice = async (): Promise<void> => {
    await write(slice);
    slice = [];
  };
  const { headerFault } = await scanLog(file, { onEntry, onSlice }, 0, signal);
  return headerFault === null ? unknown : `${path}: ${headerFault}`;
}

function dumpedOf(path: string, entry: LogEntry): Dumped | null {
  const decoded = entry.decode();
  if (decoded === null) return null;
  const { header, digest } = decoded;
  return {
    file: path,
    position: entry.position,
    zxid: entry.zxid,
    timeMs: header.time,
    session: header.sessionId,
    cxid: header.cxid,
    record: recordOf(decoded),
    digest: digest?.treeDigest ?? null,
  };
}

/** In the order of the lines of Apache's LogFormatter: time, session, cxid, zxid, type, details. */
function lineOf({ timeMs, session, cxid, zxid, record }: Dumped): string {
  const id = `session ${hex(session)} cxid 0x${(cxid >>> 0).toString(16)} zxid ${showZxid(zxid)}`;
  return `${localTime(timeMs)} ${id} ${describeRecord(record)}\n`;
}

function selectionOf({ from, to, path, session }: LogOptions): (dumped: Dumped) => boolean {
  const first = momentOf(from, '--from');
  const last = momentOf(to, '--to');
  const id = session === undefined ? null : sessionOf(session);
  return (dumped) => {
    if (first !== null && (first.kind === 'zxid' ? dumped.zxid < first.zxid : dumped.timeMs < first.ms)) return false;
    if (last !== null && (last.kind === 'zxid' ? dumped.zxid > last.zxid : dumped.timeMs > last.ms)) return false;
    if (id !== null && BigInt.asUintN(64, dumped.session) !== id) return false;
    return path === undefined || touches(dumped.record, path);
  };
}

function sessionOf(text: string): bigint {
  if (/^0x[0-9a-f]{1,16}$/i.test(text)) return BigInt(text);
  throw new InvocationFailure(`--session: expected the id of a session such as 0x10000a5b3c40001, found "${text}"`);
}
