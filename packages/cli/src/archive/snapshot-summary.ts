import { openFile, type SnapshotZnode, scanSnapshot, showZxid } from '@meerkat/server/archive';
import type { Column } from '../output/column.ts';
import { byteCount, count } from '../output/stat-columns.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { withArchive } from './archive-failure.ts';
import { isBelow, oneSnapshot } from './one-file.ts';
import type { SnapshotOptions } from './words.ts';
import { kindOfOwner } from './znode-kind.ts';

interface Sum {
  readonly path: string;
  /** Itself included. */
  znodes: number;
  ephemerals: number;
  bytes: number;
}

const COLUMNS: readonly Column<Sum>[] = [
  { name: 'path', value: ({ path }) => path },
  { name: 'znodes', value: ({ znodes }) => znodes, text: ({ znodes }) => count(znodes), align: 'right' },
  {
    name: 'ephemerals',
    value: ({ ephemerals }) => ephemerals,
    text: ({ ephemerals }) => count(ephemerals),
    align: 'right',
  },
  { name: 'bytes', value: ({ bytes }) => bytes, text: ({ bytes }) => byteCount(bytes), align: 'right' },
];

/** A level with more znodes is summarized in one line. */
const LINES_MAX = 100_000;

/** `snapshot summary`: how much is below what, with memory for the lines that are printed. */
export function sumUpSnapshot(
  context: Context,
  names: readonly string[],
  { path, depth }: SnapshotOptions,
): Promise<CommandExit> {
  const top = path ?? '/';
  const levels = levelsOf(depth) + depthOf(top);
  return withArchive(async () => {
    await using file = await openFile(await oneSnapshot(names, 'summary'));
    const sums = new Map<string, Sum>();
    let isCut = false;
    const sumOf = (at: string): Sum | null => {
      const known = sums.get(at);
      if (known !== undefined) return known;
      if (sums.size >= LINES_MAX) {
        isCut = true;
        return null;
      }
      const made = { path: at, znodes: 0, ephemerals: 0, bytes: 0 };
      sums.set(at, made);
      return made;
    };
    const onZnode = ({ path: at, data, ephemeralOwner }: SnapshotZnode): void => {
      if (!isBelow(at, top)) return;
      for (const ancestor of ancestorsOf(at, depthOf(top), levels)) {
        const sum = sumOf(ancestor);
        if (sum === null) continue;
        sum.znodes++;
        sum.bytes += data?.length ?? 0;
        if (kindOfOwner(ephemeralOwner) === 'ephemeral') sum.ephemerals++;
      }
    };
    const found = await scanSnapshot(file, { onZnode }, context.signal);
    const list = await context.report.list(COLUMNS);
    for (const sum of [...sums.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1))) await list.add(sum);
    await list.end();
    const complete = found.completeZxid === null ? '' : `, complete at zxid ${showZxid(found.completeZxid)}`;
    context.note(`${file.path}: ${count(found.znodes)} znodes, ${count(found.sessions)} sessions${complete}`);
    if (isCut)
      context.note(`only the first ${count(LINES_MAX)} places are listed: name a --path, or a smaller --depth`);
    return CommandExit.ok;
  });
}

function levelsOf(depth: string | undefined): number {
  if (depth === undefined) return 1;
  if (/^\d{1,4}$/.test(depth)) return Number(depth);
  throw new InvocationFailure(`--depth: expected a number of levels, found "${depth}"`);
}

function depthOf(path: string): number {
  return path === '/' ? 0 : path.split('/').length - 1;
}

/** The path, cut to a maximum depth, and its ancestors from a minimum depth on. */
function* ancestorsOf(path: string, from: number, to: number): Generator<string> {
  if (from === 0) yield '/';
  if (path === '/') return;
  let depth = 0;
  for (let at = path.indexOf('/', 1); depth < to; at = path.indexOf('/', at + 1)) {
    depth++;
    if (depth >= from) yield at < 0 ? path : path.slice(0, at);
    if (at < 0) return;
  }
}
