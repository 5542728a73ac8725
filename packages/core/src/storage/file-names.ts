/**
 * The file names of Apache (FileTxnLog, FileSnap, Util): `log.<zxid>` by the first entry, `snapshot.<zxid>` by the last
 * applied zxid when the snapshot began, with the suffix `.gz` or `.snappy` when it is compressed; zxids in lower-case
 * hexadecimal without padding.
 */
import { formatZxid, parseZxid, type Zxid } from '@meerkat/protocol';
import type { Compression, DirectoryEntry } from '../base/ports.ts';

/** A log or snapshot file with the zxid of its name. */
export interface ZxidFile {
  readonly name: string;
  readonly zxid: Zxid;
  /** Bytes. */
  readonly size: number;
}

const LOG_PREFIX = 'log.';
const SNAPSHOT_PREFIX = 'snapshot.';
/** Neither Apache nor this server considers such a file a snapshot, so that a half-written one is never read. */
const UNFINISHED_PREFIX = 'unfinished-snapshot.';
/** A leader's snapshot: whole, synced, and about to replace all other files (`snapshot-install.ts`). */
const INSTALLING_PREFIX = 'installing-snapshot.';
const COMPRESSIONS: readonly Compression[] = ['gz', 'snappy'];

export function logName(zxid: Zxid): string {
  return LOG_PREFIX + formatZxid(zxid);
}

export function snapshotName(zxid: Zxid, compression: Compression | null = null): string {
  return SNAPSHOT_PREFIX + formatZxid(zxid) + suffixOf(compression);
}

export function unfinishedSnapshotName(zxid: Zxid): string {
  return UNFINISHED_PREFIX + formatZxid(zxid);
}

export function installingSnapshotName(zxid: Zxid, compression: Compression | null = null): string {
  return INSTALLING_PREFIX + formatZxid(zxid) + suffixOf(compression);
}

/** The zxid of a snapshot that is being installed; null for any other name. */
export function installingZxid(name: string): Zxid | null {
  return zxidBehind(INSTALLING_PREFIX, withoutSuffix(name));
}

export function isUnfinishedSnapshot(name: string): boolean {
  return name.startsWith(UNFINISHED_PREFIX);
}

/** The log files of a directory, oldest first. */
export function logFilesOf(entries: readonly DirectoryEntry[]): ZxidFile[] {
  return filesOf(entries, (name) => zxidBehind(LOG_PREFIX, name));
}

/** The snapshot files of a directory, oldest first, compressed ones included. */
export function snapshotFilesOf(entries: readonly DirectoryEntry[]): ZxidFile[] {
  return filesOf(entries, (name) => zxidBehind(SNAPSHOT_PREFIX, withoutSuffix(name)));
}

/** Compression of a snapshot with this name or path; null: none. */
export function compressionOf(name: string): Compression | null {
  return COMPRESSIONS.find((compression) => name.endsWith(suffixOf(compression))) ?? null;
}

function suffixOf(compression: Compression | null): string {
  return compression === null ? '' : `.${compression}`;
}

function withoutSuffix(name: string): string {
  return name.slice(0, name.length - suffixOf(compressionOf(name)).length);
}

function zxidBehind(prefix: string, name: string): Zxid | null {
  return name.startsWith(prefix) ? parseZxid(name.slice(prefix.length)) : null;
}

function filesOf(entries: readonly DirectoryEntry[], zxidOf: (name: string) => Zxid | null): ZxidFile[] {
  const files: ZxidFile[] = [];
  for (const { name, size } of entries) {
    const zxid = zxidOf(name);
    if (zxid !== null) files.push({ name, zxid, size });
  }
  // Two names of one zxid are a plain and a compressed snapshot; the plain one sorts as the newer, as it is read
  // faster.
  return files.sort((one, other) => one.zxid - other.zxid || other.name.length - one.name.length);
}
