import { type CheckedLog, checkLog, showZxid } from '@meerkat/server/archive';
import type { Column } from '../output/column.ts';
import { count, isoTime } from '../output/stat-columns.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { withArchive } from './archive-failure.ts';
import { namedFiles } from './named-files.ts';

const COLUMNS: readonly Column<CheckedLog>[] = [
  { name: 'file', value: ({ path }) => path },
  { name: 'state', value: ({ state }) => state },
  { name: 'txns', value: ({ entries }) => entries, text: ({ entries }) => count(entries), align: 'right' },
  { name: 'first', value: ({ first }) => (first === null ? null : showZxid(first)) },
  { name: 'last', value: ({ last }) => (last === null ? null : showZxid(last)) },
  { name: 'lastTime', value: ({ lastMs }) => (lastMs === null ? null : isoTime(lastMs)) },
  { name: 'end', value: ({ end }) => end, align: 'right' },
  { name: 'problem', value: ({ problem }) => problem, only: 'data' },
  { name: 'notes', value: ({ notes }) => notes, only: 'data' },
];

/** `log verify`: what a start of a server would find, file by file. */
export function verifyLogs(context: Context, names: readonly string[]): Promise<CommandExit> {
  const { report, signal } = context;
  return withArchive(async () => {
    const paths = await namedFiles(names, 'log');
    const list = await report.list(COLUMNS);
    const checked: CheckedLog[] = [];
    for (const path of paths) {
      const one = await checkLog(path, checked.at(-1) ?? null, signal);
      checked.push(one);
      await list.add(one);
    }
    await list.end();
    for (const { notes, problem } of checked) {
      for (const note of notes) context.note(note);
      if (problem !== null) context.note(problem);
    }
    return checked.some(({ problem }) => problem !== null) ? CommandExit.no : CommandExit.ok;
  });
}
