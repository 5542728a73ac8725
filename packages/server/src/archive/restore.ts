/** Writes a directory that a server starts from: one snapshot, of exactly one zxid, and nothing else. */
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Database, SnapshotWrite } from '@meerkat/core/files';
import type { Zxid } from '@meerkat/protocol';
import { NODE_CLOCK } from '../node/clock.ts';
import { NodeDisk } from '../node/disk.ts';
import { Turn } from '../node/turn.ts';
import { ArchiveError, systemError } from './archive-error.ts';
import type { ArchiveFiles } from './archive-files.ts';
import { DirectoryFiles } from './directory-files.ts';
import { holdArchive } from './hold-archive.ts';
import { type RebuildOptions, type Rebuilt, rebuild } from './rebuild.ts';

export interface Restored {
  readonly zxid: Zxid;
  readonly timeMs: number | null;
  readonly znodes: number;
  readonly sessions: number;
  readonly txns: number;
  readonly snapshot: string;
  /** The file that was written; null when nothing was. */
  readonly path: string | null;
  /** The tree's digest is the one that was logged with the last txn. */
  readonly isVerified: boolean;
}

/**
 * @param directory a `dataDir` that is empty or not there; null: only finds out whether it can be restored
 * @throws ArchiveError; what is written then has a name that no server reads
 */
export async function restore(
  files: ArchiveFiles,
  directory: string | null,
  options: RebuildOptions,
): Promise<Restored> {
  if (directory === null) return await restoreInto(files, null, options);
  const target = await makeTarget(directory);
  // From the beginning: a server that is started there meanwhile would find half of it, or write beside it.
  const hold = await holdArchive(target, `${directory} is in use: a server runs on it, or another restore writes it`);
  try {
    await checkEmpty(target);
    return await restoreInto(files, target, options);
  } finally {
    hold.release();
  }
}

async function restoreInto(files: ArchiveFiles, target: string | null, options: RebuildOptions): Promise<Restored> {
  const rebuilt = await rebuild(files, options);
  const { database, zxid, timeMs, txns, snapshot, isVerified } = rebuilt;
  const restored = {
    zxid,
    timeMs,
    znodes: database.tree.count,
    sessions: database.sessions.size,
    txns,
    snapshot,
    isVerified,
  };
  if (target === null) return { ...restored, path: null };
  const path = await writeSnapshot(database, target);
  options.onProgress?.(`reading ${path} back`);
  await readBack(target, rebuilt);
  return { ...restored, path };
}

async function makeTarget(directory: string): Promise<string> {
  const below = join(directory, 'version-2');
  try {
    await mkdir(below, { recursive: true });
    return below;
  } catch (error) {
    throw systemError(`cannot write to ${directory}`, error);
  }
}

async function checkEmpty(below: string): Promise<void> {
  let names: string[];
  try {
    names = await readdir(below);
  } catch (error) {
    throw systemError(`cannot read ${below}`, error);
  }
  // What a restore that was killed has left: a part of a snapshot, and the claim to the directory.
  const found = names.filter((name) => !/^(?:unfinished-snapshot\.|meerkat\.[0-9a-f]{16}\.)/.test(name));
  if (found.length === 0) return;
  throw new ArchiveError(
    'unusable',
    `${below} has ${found.slice(0, 3).join(', ')}${found.length > 3 ? ' …' : ''} already: a restored state stands alone. Name a new ` +
      'directory, or move those files away',
  );
}

/** @returns the path of the snapshot, which is durable */
function writeSnapshot(database: Database, snapshotDirectory: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const turn = new Turn(NODE_CLOCK, reject);
    const disk = new NodeDisk(turn);
    turn.start({ onTurnEnd() {}, onTick() {}, nextDeadlineMs: () => Number.POSITIVE_INFINITY }, disk);
    const ports = { disk, clock: NODE_CLOCK, trace: { emit() {} } };
    const write = new SnapshotWrite(
      ports,
      { snapshotDirectory, digestEnabled: true, isIndispensable: true },
      database,
      {
        onSnapshotWritten: (zxid) => resolve(join(snapshotDirectory, `snapshot.${zxid.toString(16)}`)),
        onSnapshotFailed: (error) => reject(systemError(`cannot write the snapshot in ${snapshotDirectory}`, error)),
      },
    );
    turn.run(() => write.start());
  });
}

/** What was written is what was meant. */
async function readBack(directory: string, { database, zxid }: Rebuilt): Promise<void> {
  const again = await rebuild(await DirectoryFiles.open(directory, null), { target: null });
  const isSame =
    again.zxid === zxid &&
    again.database.tree.count === database.tree.count &&
    again.database.sessions.size === database.sessions.size &&
    again.database.tree.treeDigest() === database.tree.treeDigest();
  if (isSame) return;
  throw new ArchiveError(
    'damaged',
    `${directory} was read back and is not what was written: the disk, or its file system, loses data. Use another one`,
  );
}
