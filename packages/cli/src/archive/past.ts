import { type Client, connect, type Transport } from '@meerkat/client';
import { PastService, rebuild, showZxid } from '@meerkat/server/archive';
import { isoTime } from '../output/stat-columns.ts';
import type { Context } from '../run/context.ts';
import { withArchive } from './archive-failure.ts';
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
    const service = await PastService.start(rebuilt);
    let client: Client | null = null;
    const chroot = (await context.settings()).options.chroot;
    const connectToPast = async (): Promise<Client> => {
      client ??= await connect({
        servers: 'past:2181',
        sessionTimeoutMs: SESSION_MS,
        transport: transportTo(service),
        ...(chroot === undefined ? {} : { chroot }),
        signal,
      });
      return client;
    };
    try {
      return await work(withConnect(context, connectToPast));
    } finally {
      await (client as Client | null)?.close().catch(() => {});
      await service.stop();
    }
  });
}

/** Long enough for a process that is stopped, or has much to write. */
const SESSION_MS = 3_600_000;

function withConnect(context: Context, connectToPast: () => Promise<Client>): Context {
  return new Proxy(context, {
    get: (target, key) => {
      if (key === 'connect') return connectToPast;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}

function transportTo(service: PastService): Transport {
  return {
    resolve: () => Promise.resolve(['127.0.0.1']),
    connect: (_target, events) => service.connect(events),
    probe: () => Promise.reject(new Error('the past answers no words')),
  };
}
