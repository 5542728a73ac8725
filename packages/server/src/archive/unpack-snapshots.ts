/**
 * Unpacks the newest snapshot of a data directory, if it is one of an Apache server with `snapshot.compression.method`: the core reads
 * plain ones. It is verified before it gets its name, and the packed one stays.
 */
import { type FileHandle, open, readdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { compressionOf, snapshotFilesOf, snapshotName } from '@meerkat/core/files';
import { ArchiveError, systemError } from './archive-error.ts';
import { snapshotChunks } from './byte-chunks.ts';
import { openFile } from './directory-files.ts';
import { scanSnapshot } from './snapshot-scan.ts';
import { syncDirectory } from './sync-directory.ts';
import { writeWhole } from './write-whole.ts';

/** No server takes such a name for anything. */
const PREFIX = 'unpacking-';

/**
 * @param onNotice for the log of the server
 * @throws ArchiveError `disk`: there is no room, or the directory cannot be written
 */
export async function unpackNewestSnapshot(
  directory: string,
  onNotice: (text: string, isWarning: boolean) => void,
): Promise<void> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch {
    // Not there yet, or not to be read: the start of the core says so.
    return;
  }
  for (const name of names) if (name.startsWith(PREFIX)) await unlink(join(directory, name));
  const files = snapshotFilesOf(names.map((name) => ({ name, size: 0 })));
  for (const { name, zxid } of files.toReversed()) {
    // Whether that one is whole, the core finds out; what is older and packed it passes over.
    if (compressionOf(name) === null) return;
    const path = join(directory, name);
    try {
      const bytes = await unpack(directory, name, snapshotName(zxid));
      onNotice(`${path} is unpacked as ${snapshotName(zxid)}, ${bytes} bytes`, false);
      return;
    } catch (error) {
      if (!(error instanceof ArchiveError) || error.fault !== 'damaged') throw error;
      onNotice(`the snapshot ${path} is not usable: ${error.message}`, true);
    }
  }
}

async function unpack(directory: string, packedName: string, name: string): Promise<number> {
  const path = join(directory, PREFIX + name);
  const packed = await openFile(join(directory, packedName));
  let target: FileHandle | null = null;
  let position = 0;
  try {
    target = await open(path, 'w');
    for await (const chunk of snapshotChunks(packed)) {
      await writeWhole(target, chunk, position);
      position += chunk.length;
    }
    await target.sync();
  } catch (error) {
    await unlink(path).catch(() => {});
    throw systemError(`cannot unpack ${packed.path} to ${path}`, error);
  } finally {
    await target?.close();
    await packed.close();
  }
  const unpacked = await openFile(path);
  try {
    await scanSnapshot(unpacked, {});
  } catch (error) {
    await unlink(path).catch(() => {});
    throw error;
  } finally {
    await unpacked.close();
  }
  try {
    await rename(path, join(directory, name));
    await syncDirectory(directory);
  } catch (error) {
    throw systemError(`cannot put ${path} in its place`, error);
  }
  return position;
}
