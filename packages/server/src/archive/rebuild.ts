/**
 * The database as it was at a zxid: the newest snapshot that has nothing later in it, and the log behind it.
 *
 *     snapshot.<a>   complete at b          snapshot.<c>, complete at d: too new
 *     ├──── fuzzy ───┤ exact from here on ── txns of the log ──► target
 *     a              b
 */
import type { Trace, TraceEvent } from '@meerkat/core';
import {
  ADLER_START,
  adler32,
  Database,
  faultOfSnapshotHeader,
  PAYLOAD_BYTES_MAX,
  Replay,
  readSnapshotEnd,
  SNAPSHOT_HEADER_BYTES,
  type SnapshotEnd,
  SnapshotReader,
  type ZxidFile,
} from '@meerkat/core/files';
import { hexZxid, JuteReader, type Zxid } from '@meerkat/protocol';
import { ArchiveError } from './archive-error.ts';
import type { ArchiveFiles, OpenFile } from './archive-files.ts';
import { snapshotChunks } from './byte-chunks.ts';
import { readHistory } from './txn-history.ts';

export interface Rebuilt {
  readonly database: Database;
  /** Of the last txn in it. */
  readonly zxid: Zxid;
  /** When that was made, milliseconds; null when no txn of the log was needed. */
  readonly timeMs: number | null;
  /** The snapshot that it was made from. */
  readonly snapshot: string;
  /** Txns of the log behind the snapshot. */
  readonly txns: number;
  /** True when the tree's digest was compared with the one that was logged, and is the same. */
  readonly isVerified: boolean;
}

export interface RebuildOptions {
  /** null: as new as there is. */
  readonly target: Zxid | null;
  readonly onWarning?: (text: string) => void;
  /** Txns that have been replayed so far, now and then. */
  readonly onProgress?: (what: string) => void;
  readonly signal?: AbortSignal;
}

/** @throws ArchiveError when there is no such state, or the files that it takes are damaged */
export async function rebuild(files: ArchiveFiles, options: RebuildOptions): Promise<Rebuilt> {
  const { target, onWarning } = options;
  const { snapshots } = await files.list();
  const candidates = snapshots.filter(({ zxid }) => target === null || zxid <= target);
  if (candidates.length === 0) throw noSnapshot(files, snapshots, target);
  for (const candidate of candidates.toReversed()) {
    const isOldest = candidate === candidates[0];
    let loaded: Loaded;
    try {
      options.onProgress?.(`reading ${candidate.name}`);
      loaded = await loadSnapshot(files, candidate, options.signal);
    } catch (error) {
      const isGone = error instanceof ArchiveError && (error.fault === 'damaged' || error.fault === 'missing');
      if (!isGone || isOldest) throw error;
      onWarning?.(`${error.message}. The snapshot before it is taken`);
      continue;
    }
    const { completeZxid } = loaded.end;
    if (target !== null && completeZxid !== null && completeZxid > target) {
      if (!isOldest) continue;
      throw new ArchiveError(
        'unusable',
        `${files.pathOf(candidate.name)} is the only snapshot up to zxid ${hexZxid(target)}, and it has changes up to ` +
          `${hexZxid(completeZxid)} in it: the earliest state that can be had is that of ${hexZxid(completeZxid)}`,
      );
    }
    if (target !== null && completeZxid === null && candidate.zxid !== 0) {
      // The one before was complete before this one was begun, if servers take one at a time.
      if (!isOldest) continue;
      onWarning?.(
        `${files.pathOf(candidate.name)} does not say up to where it has changes: what was deleted soon behind ` +
          `${hexZxid(candidate.zxid)} may be missing`,
      );
    }
    return replay(files, candidate, loaded, options);
  }
  throw noSnapshot(files, snapshots, target);
}

interface Loaded {
  readonly database: Database;
  readonly end: SnapshotEnd;
}

async function replay(
  files: ArchiveFiles,
  snapshot: ZxidFile,
  { database, end }: Loaded,
  { target, onWarning, onProgress, signal }: RebuildOptions,
): Promise<Rebuilt> {
  const mismatches: Extract<TraceEvent, { readonly kind: 'digest-mismatch' }>[] = [];
  const trace: Trace = {
    emit: (event) => {
      if (event.kind === 'digest-mismatch') mismatches.push(event);
    },
  };
  const replayed = new Replay(database, end.digest, trace);
  const jute = new JuteReader(undefined, PAYLOAD_BYTES_MAX);
  let timeMs: number | null = null;
  let unknown: string | null = null;
  const last = await readHistory(
    files,
    { after: snapshot.zxid, upTo: target, isStrict: true },
    {
      onTxn: (entry, file) => {
        entry.place(jute);
        if (!replayed.apply(jute)) {
          unknown = `${files.pathOf(file.name)} at position ${entry.position}: zxid ${hexZxid(entry.zxid)} is no txn that this version knows`;
          return false;
        }
        ({ timeMs } = entry);
        return true;
      },
      onSlice: () => void onProgress?.(`${replayed.txns} txns replayed`),
      ...(onWarning === undefined ? {} : { onWarning }),
    },
    signal,
  );
  if (unknown !== null) throw new ArchiveError('damaged', unknown);
  const complete = end.completeZxid ?? snapshot.zxid;
  if (target !== null && last < target && target > complete) {
    throw new ArchiveError(
      'unusable',
      `${files.place} ends with zxid ${hexZxid(last)}, before the ${hexZxid(target)} that was asked for: name an earlier one, or none for all there is`,
    );
  }
  if (last < complete) {
    throw new ArchiveError(
      'unusable',
      `${files.pathOf(snapshot.name)} has changes up to zxid ${hexZxid(complete)} in it, and the log ends with ${hexZxid(last)}: without the ` +
        'txns between them it is the state of no moment. Take the logs along that were written while the snapshot was',
    );
  }
  database.tree.settle();
  const [mismatch] = mismatches;
  if (mismatch !== undefined) throw digestError(files, mismatch.zxid, mismatch.expected, mismatch.actual);
  return {
    database,
    zxid: last,
    timeMs,
    snapshot: snapshot.name,
    txns: replayed.txns,
    isVerified: isVerified(files, database, end),
  };
}

/** Without txns behind it the snapshot itself says what its digest is. */
function isVerified(files: ArchiveFiles, database: Database, { digest }: SnapshotEnd): boolean {
  if (digest === null || digest.version !== 2) return false;
  if (digest.zxid !== database.lastZxid || digest.zxid === 0) return true;
  const actual = database.tree.treeDigest();
  if (actual !== digest.treeDigest) throw digestError(files, digest.zxid, digest.treeDigest, actual);
  return true;
}

function digestError({ place }: ArchiveFiles, zxid: number, expected: bigint, actual: bigint): ArchiveError {
  const asHex = (digest: bigint): string => BigInt.asUintN(64, digest).toString(16);
  return new ArchiveError(
    'damaged',
    `${place}: behind zxid ${hexZxid(zxid)} the tree has the digest ${asHex(actual)}, and ${asHex(expected)} was logged. The ` +
      'snapshot and the log are not of one history, or one of them is damaged: take another snapshot, or an earlier zxid',
  );
}

/** @throws ArchiveError `damaged` */
async function loadSnapshot(files: ArchiveFiles, { name, zxid }: ZxidFile, signal?: AbortSignal): Promise<Loaded> {
  await using file = await files.open(name);
  const database = new Database(DATABASE_OPTIONS, { emit() {} });
  const end = await readInto(database, file, signal);
  database.tree.lastZxid = zxid;
  return { database, end };
}

/** Also the admin command `restore` reads what it is sent so. @throws ArchiveError `damaged` */
export async function readInto(database: Database, file: OpenFile, signal?: AbortSignal): Promise<SnapshotEnd> {
  const body = new SnapshotReader(database);
  let checksum: number = ADLER_START;
  let rest: Uint8Array = new Uint8Array(0);
  let hasHeader = false;
  const fail = (what: string): never => {
    throw new ArchiveError('damaged', `${file.path} is no usable snapshot: ${what}`);
  };
  for await (const chunk of snapshotChunks(file)) {
    signal?.throwIfAborted();
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    if (!hasHeader) {
      if (bytes.length < SNAPSHOT_HEADER_BYTES) {
        rest = bytes;
        continue;
      }
      const fault = faultOfSnapshotHeader(bytes);
      if (fault !== null) fail(fault);
      hasHeader = true;
      at = SNAPSHOT_HEADER_BYTES;
    }
    if (!body.isComplete) at += body.read(bytes, at, bytes.length);
    if (body.fault !== null) fail(body.fault);
    checksum = adler32(checksum, bytes, 0, at);
    rest = bytes.subarray(at);
    if (body.isComplete && rest.length > END_BYTES_MAX) fail('bytes follow its end');
  }
  if (!body.isComplete) fail(`it is cut short (${body.position})`);
  return readSnapshotEnd(rest, checksum) ?? fail('its checksum is wrong');
}

/** The least that every server needs: with extended types the owners of TTL znodes read as what they are. */
const DATABASE_OPTIONS = { extendedTypesEnabled: true, digestEnabled: true };
/** More than seals and the parts between them take. */
const END_BYTES_MAX = 4096;

function noSnapshot(files: ArchiveFiles, all: readonly ZxidFile[], target: Zxid | null): ArchiveError {
  const [oldest] = all;
  const found =
    oldest === undefined
      ? 'it has no snapshot, and a log alone does not say what it begins with'
      : `its oldest snapshot is ${oldest.name}, which is later`;
  const what = target === null ? 'there is no state to be had' : `zxid ${hexZxid(target)} cannot be had`;
  return new ArchiveError('unusable', `${files.place}: ${what}: ${found}`);
}
