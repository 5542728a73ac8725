import { type Client, connect } from '@meerkat/client';
import { rebuild, showZxid } from '@meerkat/server/archive';
import { isoTime } from '../output/stat-columns.ts';
import type { Context } from '../run/context.ts';
import { withArchive } from './archive-failure.ts';
import { openPast } from './open-past.ts';
import { targetOf } from './run-restore.ts';
import { openSource } from './source.ts';
import type { PastWords } from './words.ts';

/** What `inPast` does when it is asked for a past state. */
export function workInPast<T>(context: Context, words: PastWords, work: (context: Context) => Promise<T>): Promise<T> {
  const { at } = words;
  return withArchive(async () => {
    const files = await openSource(context, words);
    const { signal } = context;
    const onWarning = (text: string): void => context.note(text);
    using progress = context.progress();
    const target = await targetOf(files, at, '--at', onWarning, signal);
    const onProgress = (what: string): void => progress.update(() => what);
    const rebuilt = await rebuild(files, { target, onWarning, onProgress, signal });
    await files.close();
    progress.clear();
    const time = rebuilt.timeMs === null ? '' : `, ${isoTime(rebuilt.timeMs)}`;
    if (context.report.isForPeople && context.report.isTerminal)
      context.note(`as of zxid ${showZxid(rebuilt.zxid)}${time}`);
    const { chroot } = (await context.settings()).options;
    const past = await openPast(rebuilt, { signal, connect, ...(chroot === undefined ? {} : { chroot }) });
    try {
      return await work(withConnect(context, () => Promise.resolve(past.client)));
    } finally {
      await past.close();
    }
  });
}

function withConnect(context: Context, connectToPast: () => Promise<Client>): Context {
  return new Proxy(context, {
    get: (target, key) => {
      if (key === 'connect') return connectToPast;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}
