/** How far the log of a server and that of a backup are the same, and cutting the backup there. */
import { copyFile, open, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { ZxidFile } from '@meerkat/core/files';
import { getInt, type Zxid } from '@meerkat/protocol';
import { systemError } from './archive-error.ts';
import type { ArchiveFiles } from './archive-files.ts';
import { openFile } from './directory-files.ts';
import { scanLog } from './log-scan.ts';
import { syncDirectory } from './sync-directory.ts';

export type CommonPast =
  /** The last txn of the backup is in the server's log, or that begins later, so that nothing can be said. */
  | { readonly kind: 'same' }
  /** Up to here they are the same; what the backup has behind it the server has not, or has others. */
  | { readonly kind: 'until'; readonly zxid: Zxid }
  /** Both have txns of the same time, and not one in common. */
  | { readonly kind: 'other' };

export async function findCommonPast(
  server: ArchiveFiles,
  backup: ArchiveFiles,
  last: Zxid,
  signal?: AbortSignal,
): Promise<CommonPast> {
  const { logs, committed } = await server.list();
  // A server that is behind has the rest still to come.
  if (committed !== null && committed < last) return { kind: 'same' };
  const [oldest] = logs;
  if (oldest === undefined || oldest.zxid > last) return { kind: 'same' };
  const own = (await backup.list()).logs;
  let lastOwn: number | null = null;
  for (const file of own.toReversed()) {
    const checksums = new Map<number, number>();
    let lastOfFile: number | null = null;
    const onOwn = (zxid: number, checksum: number): void => {
      checksums.set(zxid, checksum);
      lastOfFile = zxid;
    };
    await eachEntry(backup, file, onOwn, signal);
    // One that was begun only, or whose first entry is torn, has nothing to compare.
    if (lastOfFile === null) continue;
    lastOwn ??= lastOfFile;
    let common: number | null = null;
    let hasEarlier = false;
    const first = Math.max(
      0,
      logs.findLastIndex(({ zxid }) => zxid <= file.zxid),
    );
    for (const log of logs.slice(first)) {
      if (log.zxid > last) break;
      await eachEntry(
        server,
        log,
        (zxid, checksum) => {
          if (zxid < file.zxid) hasEarlier = true;
          if (checksums.get(zxid) === checksum) common = zxid;
        },
        signal,
      );
    }
    if (common !== null) return common === lastOwn ? { kind: 'same' } : { kind: 'until', zxid: common as Zxid };
    if (!hasEarlier && file === own[0]) break;
  }
  return lastOwn === null ? { kind: 'same' } : { kind: 'other' };
}

async function eachEntry(
  files: ArchiveFiles,
  { name }: ZxidFile,
  onEntry: (zxid: Zxid, checksum: number) => void,
  signal?: AbortSignal,
): Promise<void> {
  await using file = await files.open(name);
  await scanLog(
    file,
    {
      onEntry: (entry) => {
        onEntry(entry.zxid, getInt(entry.bytes, 4));
        return true;
      },
    },
    0,
    signal,
  );
}

/** Takes the txns behind `zxid` away; the files with them stay as `replaced-<n>-<name>`. */
export async function cutBehind(directory: string, logs: readonly ZxidFile[], zxid: Zxid): Promise<void> {
  try {
    const names = await readdir(directory);
    const set = 1 + Math.max(0, ...names.map((name) => Number(/^replaced-(\d+)-/.exec(name)?.[1] ?? 0)));
    for (const { name, zxid: first } of logs) {
      const path = join(directory, name);
      const kept = join(directory, `replaced-${set}-${name}`);
      if (first > zxid) {
        await rename(path, kept);
        continue;
      }
      await using file = await openFile(path);
      const { position, isStopped } = await scanLog(file, { onEntry: (entry) => entry.zxid <= zxid });
      if (!isStopped) continue;
      await copyFile(path, kept);
      const handle = await open(path, 'r+');
      await handle.truncate(position);
      await handle.sync();
      await handle.close();
    }
    await syncDirectory(directory);
  } catch (error) {
    throw systemError(`cannot cut the log in ${directory} behind zxid 0x${zxid.toString(16)}`, error);
  }
}
