import { type ArchiveFiles, DirectoryFiles, type Restored, restore, showZxid, zxidAt } from '@meerkat/server/archive';
import type { Column } from '../output/column.ts';
import { count, isoTime } from '../output/stat-columns.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { withArchive } from './archive-failure.ts';
import { momentOf } from './moment-words.ts';
import type { RestoreWords } from './words.ts';

const COLUMNS: readonly Column<Restored>[] = [
  { name: 'zxid', value: ({ zxid }) => showZxid(zxid) },
  { name: 'time', value: ({ timeMs }) => (timeMs === null ? null : isoTime(timeMs)) },
  { name: 'znodes', value: ({ znodes }) => znodes, text: ({ znodes }) => count(znodes) },
  { name: 'sessions', value: ({ sessions }) => sessions, text: ({ sessions }) => count(sessions) },
  { name: 'snapshot', value: ({ snapshot }) => snapshot },
  { name: 'txns', value: ({ txns }) => txns, text: ({ txns }) => count(txns) },
  {
    name: 'verified',
    value: ({ isVerified }) => isVerified,
    text: ({ isVerified }) =>
      isVerified ? 'the digest is the one in the log' : 'there are no digests to compare with',
  },
  { name: 'path', value: ({ path }) => path, text: ({ path }) => path ?? 'nothing was written' },
];

export function runRestore(context: Context, directory: string, words: RestoreWords): Promise<CommandExit> {
  if ((words.into === undefined) === (words.check !== true)) {
    throw new InvocationFailure('restore: either --into names a new directory, or --check writes none');
  }
  const { signal } = context;
  return withArchive(async () => {
    const files = await DirectoryFiles.open(directory, words.logDir ?? null);
    const onWarning = (text: string): void => context.note(text);
    using progress = context.progress();
    const target = await targetOf(files, words.to, '--to', onWarning, signal);
    const restored = await restore(files, words.into ?? null, {
      target,
      onWarning,
      onProgress: (what) => progress.update(() => what),
      signal,
    });
    progress.clear();
    await context.report.one(COLUMNS, restored);
    return CommandExit.ok;
  });
}

/** @param text a zxid or time; undefined: null */
export async function targetOf(
  files: ArchiveFiles,
  text: string | undefined,
  option: string,
  onWarning: (text: string) => void,
  signal: AbortSignal,
): Promise<Restored['zxid'] | null> {
  const moment = momentOf(text, option);
  if (moment === null) return null;
  return moment.kind === 'zxid' ? moment.zxid : zxidAt(files, moment.ms, onWarning, signal);
}
