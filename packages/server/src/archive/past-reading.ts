/** What a console wants to know of the past, from the files of a server. All throws ArchiveError. */
import type { PastStates } from '@meerkat/console';
import type { ZxidFile } from '@meerkat/core/files';
import { hexZxid } from '@meerkat/protocol';
import { formatSessionId } from '../audit/audit-line.ts';
import type { ArchiveFiles } from './archive-files.ts';
import { scanLog } from './log-scan.ts';
import { parseMoment, zxidAt } from './moment.ts';
import { NewestStates } from './newest-states.ts';
import { type Rebuilt, rebuild } from './rebuild.ts';
import { readZnodeHistory } from './znode-history.ts';

/** From the first txn of the log to the last one; null: it has none. */
export async function readSpan(
  files: ArchiveFiles,
  signal?: AbortSignal,
): Promise<{ readonly fromMs: number; readonly toMs: number } | null> {
  const { logs } = await files.list();
  const first = await timeInOneOf(files, logs, 'first', signal);
  const last = await timeInOneOf(files, logs.toReversed(), 'last', signal);
  return first === null || last === null ? null : { fromMs: Math.min(first, last), toMs: Math.max(first, last) };
}

/**
 * How a znode came to be what it is: its newest states.
 *
 * @param addresses of the clients of sessions, as far as they are known
 */
export async function readStates(
  files: ArchiveFiles,
  path: string,
  addresses: ReadonlyMap<bigint, string>,
  signal?: AbortSignal,
): Promise<PastStates> {
  const newest = new NewestStates();
  await readZnodeHistory(files, {
    path,
    isRecursive: false,
    upTo: null,
    onChange: ({ zxid, timeMs, session, change, version, now }) => {
      const client = addresses.get(BigInt.asUintN(64, session)) ?? null;
      const who = { session: formatSessionId(session), client };
      newest.add({ zxid: hexZxid(zxid), atMs: timeMs, ...who, change, version, state: now });
    },
    onWarning: () => {},
    ...(signal === undefined ? {} : { signal }),
  });
  return newest;
}

/** The tree of a moment, a zxid or a time as people name one; null when it is neither. */
export async function rebuildMoment(files: ArchiveFiles, text: string, signal?: AbortSignal): Promise<Rebuilt | null> {
  const moment = parseMoment(text, Date.now());
  if (moment === null) return null;
  const target = moment.kind === 'zxid' ? moment.zxid : await zxidAt(files, moment.ms, () => {}, signal);
  return await rebuild(files, { target, ...(signal === undefined ? {} : { signal }) });
}

async function timeInOneOf(
  files: ArchiveFiles,
  logs: readonly ZxidFile[],
  which: 'first' | 'last',
  signal?: AbortSignal,
): Promise<number | null> {
  for (const { name } of logs) {
    const found = await timeIn(files, name, which, signal);
    if (found !== null) return found;
  }
  return null;
}

async function timeIn(
  files: ArchiveFiles,
  name: string,
  which: 'first' | 'last',
  signal?: AbortSignal,
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
