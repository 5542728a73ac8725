/** What one txn has changed: each znode before it and after it. */
import { type Database, viewDatabase } from '@meerkat/core/files';
import { type Acl, previousZxid, type Zxid } from '@meerkat/protocol';
import { ArchiveError } from './archive-error.ts';
import type { ArchiveFiles } from './archive-files.ts';
import { rebuild } from './rebuild.ts';
import { decodeTxn, readHistory } from './txn-history.ts';
import { recordOf, type TxnRecord } from './txn-record.ts';

export interface ZnodeMoment {
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[];
  readonly czxid: number;
  readonly version: number;
  readonly aversion: number;
  readonly cversion: number;
  /** As in the Stat. */
  readonly ephemeralOwner: bigint;
}

export interface TxnEffects {
  readonly zxid: Zxid;
  readonly timeMs: number;
  readonly session: bigint;
  readonly record: TxnRecord;
  /** By path, a parent before its children. `before` is null if it was created, `after` if it was deleted. */
  readonly znodes: readonly {
    readonly path: string;
    readonly before: ZnodeMoment | null;
    readonly after: ZnodeMoment | null;
  }[];
}

export interface TxnEffectsOptions {
  readonly zxid: Zxid;
  readonly onWarning: (text: string) => void;
  readonly onProgress?: (what: string) => void;
  readonly signal?: AbortSignal;
}

/** @throws ArchiveError when there is no such txn, or no state before it */
export async function readTxnEffects(files: ArchiveFiles, options: TxnEffectsOptions): Promise<TxnEffects> {
  const { zxid, signal } = options;
  let found: Omit<TxnEffects, 'znodes'> | null = null;
  await readHistory(
    files,
    { after: previousZxid(zxid), upTo: zxid, isStrict: false },
    {
      onTxn: (entry, file) => {
        if (entry.zxid !== zxid) return true;
        const decoded = decodeTxn(entry, files.pathOf(file.name));
        const { sessionId: session, time: timeMs } = decoded.header;
        found = { zxid, timeMs, session, record: copyOf(recordOf(decoded)) };
        return true;
      },
    },
    signal,
  );
  const txn = found as Omit<TxnEffects, 'znodes'> | null;
  if (txn === null) {
    throw new ArchiveError(
      'unusable',
      `${files.place} has no txn with zxid 0x${zxid.toString(16)}: "meerkat history" lists those of a znode`,
    );
  }
  const paths = [...new Set(pathsOf(txn.record))].toSorted();
  const common = {
    onWarning: options.onWarning,
    ...(options.onProgress === undefined ? {} : { onProgress: options.onProgress }),
    ...(signal === undefined ? {} : { signal }),
  };
  const before = await rebuild(files, { target: previousZxid(zxid), ...common });
  const olds = lookAt(before.database, paths);
  const after = await rebuild(files, { target: zxid, ...common });
  const news = lookAt(after.database, paths);
  const znodes = paths.map((path) => ({ path, before: olds.get(path) ?? null, after: news.get(path) ?? null }));
  return { ...txn, znodes };
}

function pathsOf({ path, paths, parts }: TxnRecord): readonly string[] {
  return [...(path === undefined ? [] : [path]), ...(paths ?? []), ...(parts ?? []).flatMap(pathsOf)];
}

function lookAt(database: Database, paths: readonly string[]): ReadonlyMap<string, ZnodeMoment> {
  const wanted = new Set(paths);
  const found = new Map<string, ZnodeMoment>();
  if (wanted.size === 0) return found;
  for (const { path, data, acl, stat } of viewDatabase(database).znodes()) {
    if (!wanted.has(path)) continue;
    const { czxid, version, aversion, cversion, ephemeralOwner } = stat;
    const copied = data === null ? null : Uint8Array.from(data);
    found.set(path, { path, data: copied, acl, czxid, version, aversion, cversion, ephemeralOwner });
    if (found.size === wanted.size) break;
  }
  return found;
}

/** The bytes that a record shows belong to the reader of the log. */
function copyOf(record: TxnRecord): TxnRecord {
  const { data, parts } = record;
  return {
    ...record,
    ...(data == null ? {} : { data: Uint8Array.from(data) }),
    ...(parts === undefined ? {} : { parts: parts.map(copyOf) }),
  };
}
