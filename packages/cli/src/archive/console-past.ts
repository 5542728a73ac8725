import type { PastTrees } from '@meerkat/console';
import { type ArchiveFiles, readSpan, rebuildMoment, showZxid } from '@meerkat/server/archive';
import type { Context } from '../run/context.ts';
import { openPast } from './open-past.ts';
import { openSource } from './source.ts';
import type { SourceWords } from './source-words.ts';

/** Past trees from the files of a server, for the console. Its methods throw ArchiveError. */
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
    span: () => withFiles((files) => readSpan(files, signal)),
    open: (moment) =>
      withFiles(async (files) => {
        const rebuilt = await rebuildMoment(files, moment, signal);
        if (rebuilt === null) return null;
        const { client, close } = await openPast(rebuilt, { signal });
        return { zxid: showZxid(rebuilt.zxid), atMs: rebuilt.timeMs, client, close };
      }),
  };
}
