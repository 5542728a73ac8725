import { ArchiveError, openFile, scanSnapshot, showZxid } from '@meerkat/server/archive';
import type { Column } from '../output/column.ts';
import { byteCount, count } from '../output/stat-columns.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { withArchive } from './archive-failure.ts';
import { namedFiles } from './named-files.ts';

interface Verified {
  readonly path: string;
  readonly problem: string | null;
  readonly znodes: number | null;
  readonly sessions: number | null;
  /** Unpacked. */
  readonly bytes: number | null;
  readonly completeZxid: number | null;
  readonly digest: bigint | null;
}

const COLUMNS: readonly Column<Verified>[] = [
  { name: 'file', value: ({ path }) => path },
  { name: 'state', value: ({ problem }) => (problem === null ? 'whole' : 'damaged') },
  { name: 'znodes', value: ({ znodes }) => znodes, text: ({ znodes }) => optional(znodes, count), align: 'right' },
  {
    name: 'sessions',
    value: ({ sessions }) => sessions,
    text: ({ sessions }) => optional(sessions, count),
    align: 'right',
  },
  { name: 'bytes', value: ({ bytes }) => bytes, text: ({ bytes }) => optional(bytes, byteCount), align: 'right' },
  { name: 'complete', value: ({ completeZxid }) => (completeZxid === null ? null : showZxid(completeZxid)) },
  { name: 'digest', value: ({ digest }) => (digest === null ? null : BigInt.asUintN(64, digest).toString(16)) },
  { name: 'problem', value: ({ problem }) => problem, only: 'data' },
];

function optional(value: number | null, format: (value: number) => string): string {
  return value === null ? '' : format(value);
}

/** `snapshot verify`: every record and every checksum of each. */
export function verifySnapshots(context: Context, names: readonly string[]): Promise<CommandExit> {
  return withArchive(async () => {
    const list = await context.report.list(COLUMNS);
    const problems: string[] = [];
    for (const path of await namedFiles(names, 'snapshot')) {
      const verified = await verify(path, context.signal);
      if (verified.problem !== null) problems.push(verified.problem);
      await list.add(verified);
    }
    await list.end();
    for (const problem of problems) context.note(problem);
    return problems.length > 0 ? CommandExit.no : CommandExit.ok;
  });
}

async function verify(path: string, signal: AbortSignal): Promise<Verified> {
  await using file = await openFile(path);
  try {
    const { znodes, sessions, bytes, completeZxid, digest } = await scanSnapshot(file, {}, signal);
    return { path, problem: null, znodes, sessions, bytes, completeZxid, digest: digest?.treeDigest ?? null };
  } catch (error) {
    if (!(error instanceof ArchiveError) || error.fault !== 'damaged') throw error;
    const nothing = { znodes: null, sessions: null, bytes: null, completeZxid: null, digest: null };
    return { path, problem: error.message, ...nothing };
  }
}
