import type { PastState } from '@meerkat/console';
import { readZnodeHistory, showZxid } from '@meerkat/server/archive';
import { hex } from '../output/stat-columns.ts';
import type { Context } from '../run/context.ts';
import { connectedAddresses } from './addresses.ts';
import { openSource } from './source.ts';
import type { SourceWords } from './source-words.ts';

/** How a znode came to be what it is, for the console. @throws ArchiveError */
export async function readPastStates(context: Context, words: SourceWords, path: string): Promise<PastState[]> {
  const { signal } = context;
  const files = await openSource(context, words);
  try {
    const addresses = await connectedAddresses(files, signal);
    const states: PastState[] = [];
    await readZnodeHistory(files, {
      path,
      isRecursive: false,
      upTo: null,
      onChange: ({ zxid, timeMs, session, change, version, now }) => {
        const client = addresses.get(BigInt.asUintN(64, session)) ?? null;
        states.push({ zxid: showZxid(zxid), atMs: timeMs, session: hex(session), client, change, version, state: now });
      },
      onWarning: () => {},
      signal,
    });
    return states;
  } finally {
    await files.close();
  }
}
