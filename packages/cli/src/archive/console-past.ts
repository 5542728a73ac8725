import type { PastTrees } from '@meerkat/console';
import {
  type ArchiveFiles,
  parseMoment,
  rebuild,
  scanLog,
  showZxid,
  type ZxidFile,
  zxidAt,
} from '@meerkat/server/archive';
import type { Context } from '../run/context.ts';
import { openPast } from './open-past.ts';
import { openSource } from './source.ts';
import type { SourceWords } from './source-words.ts';

/** The trees of the past that the files of a server tell, for the console. Its methods throw ArchiveError. */
export function pastTrees(context: Context, words: SourceWords): PastTrees {
  const { signal } = context;
  const withFiles = async <T>(work: (files: ArchiveFiles) => Promise<T>): Promise<T> => {
    const files = await openSource(context, words);
    try {
      return await work(files);
    } finally {
      await files.close();
    }
  };
  return {
    span: () =>
      withFiles(async (files) => {
        const { logs } = await files.list();
        const times = await timesOf(files, logs, signal);
        return times === null ? null : { fromMs: Math.min(...times), toMs: Math.max(...times) };
      }),
    open: (text) =>
      withFiles(async (files) => {
        const moment = parseMoment(text, Date.now());
        if (moment === null) return null;
        const target = moment.kind === 'zxid' ? moment.zxid : await zxidAt(files, moment.ms, () => {}, signal);
        const rebuilt = await rebuild(files, { target, signal });
        const { client, close } = await openPast(rebuilt, { signal });
        return { zxid: showZxid(rebuilt.zxid), atMs: rebuilt.timeMs, client, close };
      }),
  };
}

/** Of the first txn of the log, and of the last one; null: it has none. */
async function timesOf(
  files: ArchiveFiles,
  logs: readonly ZxidFile[],
  signal: AbortSignal,
): Promise<readonly [number, number] | null> {
  let fromMs: number | null = null;
  for (const { name } of logs) {
    fromMs = await timeIn(files, name, 'first', signal);
    if (fromMs !== null) break;
  }
  if (fromMs === null) return null;
  for (const { name } of logs.toReversed()) {
    const toMs = await timeIn(files, name, 'last', signal);
    if (toMs !== null) return [fromMs, toMs];
  }
  return null;
}

async function timeIn(
  files: ArchiveFiles,
  name: string,
  which: 'first' | 'last',
  signal: AbortSignal,
): Promise<number | null> {
  const file = await files.open(name);
  let found: number | null = null;
  try {
    const onEntry = ({ timeMs }: { readonly timeMs: number }): boolean => {
      found = timeMs;
      // Nothing is taken behind the first one.
      return which === 'last';
    };
    await scanLog(file, { onEntry }, 0, signal);
    return found;
  } finally {
    await file.close();
  }
}
