/** Makes a damaged log readable again, and keeps what it takes away. */
import type { Stats } from 'node:fs';
import { chmod, chown, copyFile, open, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  ADLER_START,
  adler32,
  END_OF_ENTRY,
  ENTRY_FRAME_BYTES,
  ENTRY_HEAD_BYTES,
  ENTRY_PAYLOAD_BYTES_MIN,
  LOG_HEADER_BYTES,
  PAYLOAD_BYTES_MAX,
} from '@meerkat/core/files';
import { getInt, JuteReader, putInt, readTxnEntry, ZXID_NONE, type Zxid } from '@meerkat/protocol';
import { ArchiveError, systemError } from './archive-error.ts';
import { openFile } from './directory-files.ts';
import { holdArchive } from './hold-archive.ts';
import { classifyEnd, scanLog } from './log-scan.ts';
import { syncDirectory } from './sync-directory.ts';

export interface LogRepair {
  readonly path: string;
  /** Where the whole entries ended. */
  readonly position: number;
  readonly last: Zxid | null;
  /** Why they ended there; null: the file is whole, and nothing was done. */
  readonly reason: string | null;
  /** Bytes behind that place that were not zero. */
  readonly bytesBehind: number;
  /** Entries that were given a new checksum. */
  readonly recomputed: number;
  /** Where the file as it was is now; null: nothing was changed. */
  readonly kept: string | null;
}

export interface LogRepairOptions {
  /** Gives entries that are txns, but for their checksum, the right one, as Apache's toolkit does. Default: cuts before the first. */
  readonly recomputes: boolean;
  readonly isDryRun: boolean;
}

/**
 * The file as it was stays beside it as `damaged-<n>-<name>`, copied and synced before anything is changed. Apache's server would take
 * any name that begins with `log.<zxid>` for a log.
 */
export async function repairLogFile(path: string, options: LogRepairOptions): Promise<LogRepair> {
  if (!/^log\.[0-9a-f]+$/.test(basename(path))) {
    throw new ArchiveError('unusable', `${path} is not named as a log, log.<zxid>: nothing else is repaired`);
  }
  if (options.isDryRun) return await repairHeld(path, options);
  const hold = await holdArchive(
    dirname(path),
    `${path} belongs to a running server: stop it before its log is repaired`,
  );
  try {
    await refuseOpened(path);
    return await repairHeld(path, options);
  } finally {
    hold.release();
  }
}

/** Apache's servers hold no directory. Where the system does not tell, or not this user, nothing is known. */
async function refuseOpened(path: string): Promise<void> {
  const { dev, ino } = await statOf(path);
  const processes = await readdir('/proc').catch(() => []);
  for (const pid of processes) {
    if (!/^\d+$/.test(pid) || pid === `${process.pid}`) continue;
    for (const descriptor of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const found = await stat(`/proc/${pid}/fd/${descriptor}`).catch(() => null);
      if (found?.dev !== dev || found.ino !== ino) continue;
      const program = (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim();
      const text = `process ${pid} (${program}) has ${path} open: stop the server before its log is repaired`;
      throw new ArchiveError('unusable', text);
    }
  }
}

async function statOf(path: string): Promise<Stats> {
  try {
    return await stat(path);
  } catch (error) {
    throw systemError(`cannot read ${path}`, error);
  }
}

async function repairHeld(path: string, { recomputes, isDryRun }: LogRepairOptions): Promise<LogRepair> {
  await using opened = await openFile(path);
  let last: Zxid | null = null;
  const scanned = await scanLog(opened, {
    onEntry: ({ zxid }) => {
      last = zxid;
      return true;
    },
  });
  const { judgement, bytes } = await classifyEnd(opened, scanned.position, last ?? ZXID_NONE);
  const { position, headerFault } = scanned;
  const reason = headerFault ?? (judgement.kind === 'end' ? null : judgement.reason);
  const found = { path, position, last, reason, bytesBehind: bytes };
  if (reason === null) return { ...found, recomputed: 0, kept: null };
  const repaired = recomputes && headerFault === null ? await recompute(path, position) : null;
  if (isDryRun) return { ...found, recomputed: repaired?.count ?? 0, kept: null };
  const kept = await keepCopy(path);
  if (repaired !== null && repaired.count > 0) await replace(path, repaired.bytes);
  else await cut(path, position);
  return { ...found, recomputed: repaired?.count ?? 0, kept };
}

/** Continues over entries with a valid frame, ignoring their checksums, up to the first invalid frame. */
async function recompute(path: string, from: number): Promise<{ readonly bytes: Uint8Array; readonly count: number }> {
  const bytes = await readFile(path);
  const jute = new JuteReader(undefined, PAYLOAD_BYTES_MAX);
  let count = 0;
  let at = Math.max(from, LOG_HEADER_BYTES);
  while (bytes.length - at > ENTRY_FRAME_BYTES) {
    const length = getInt(bytes, at + 8);
    const end = at + ENTRY_FRAME_BYTES + length;
    if (length < ENTRY_PAYLOAD_BYTES_MIN || end > bytes.length || bytes[end - 1] !== END_OF_ENTRY) break;
    jute.reset(bytes, at + ENTRY_HEAD_BYTES, end - 1);
    if (readTxnEntry(jute) === null) break;
    const checksum = adler32(ADLER_START, bytes, at + ENTRY_HEAD_BYTES, end - 1);
    if (getInt(bytes, at) !== 0 || getInt(bytes, at + 4) >>> 0 !== checksum) {
      putInt(bytes, at, 0);
      putInt(bytes, at + 4, checksum);
      count++;
    }
    at = end;
  }
  return { bytes: bytes.subarray(0, at), count };
}

async function keepCopy(path: string): Promise<string> {
  for (let n = 1; ; n++) {
    const kept = join(dirname(path), `damaged-${n}-${basename(path)}`);
    try {
      await copyFile(path, kept, 1 /* COPYFILE_EXCL */);
      const handle = await open(kept, 'r');
      await handle.sync();
      await handle.close();
      await syncDirectory(dirname(path));
      return kept;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue;
      throw systemError(`cannot keep a copy of ${path} as ${kept}, so nothing was changed`, error);
    }
  }
}

async function cut(path: string, position: number): Promise<void> {
  try {
    const handle = await open(path, 'r+');
    try {
      await handle.truncate(position);
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw systemError(`cannot cut ${path} at position ${position}`, error);
  }
}

async function replace(path: string, bytes: Uint8Array): Promise<void> {
  const repaired = join(dirname(path), `repaired-${basename(path)}`);
  try {
    const { mode, uid, gid } = await stat(path);
    await writeFile(repaired, bytes, { flush: true });
    // As root for the user of the server, who has to open it again.
    await chmod(repaired, mode);
    await chown(repaired, uid, gid).catch(() => {});
    await rename(repaired, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    throw systemError(`cannot replace ${path}`, error);
  }
}
