import type { PastStates } from '@meerkat/console';
import { readStates } from '@meerkat/server/archive';
import type { Context } from '../run/context.ts';
import { connectedAddresses } from './addresses.ts';
import { openSource } from './source.ts';
import type { SourceWords } from './source-words.ts';

/** How a znode came to be what it is, for the console. @throws ArchiveError */
export async function readPastStates(context: Context, words: SourceWords, path: string): Promise<PastStates> {
  const { signal } = context;
  const files = await openSource(context, words);
  try {
    return await readStates(files, path, await connectedAddresses(files, signal), signal);
  } finally {
    await files.close();
  }
}
