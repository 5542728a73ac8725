import { open, statfs, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
import { isZxid } from '@meerkat/protocol';
import { ArchiveError, systemError } from '../../archive/archive-error.ts';
import { unpackedChunks } from '../../archive/byte-chunks.ts';
import { openFile } from '../../archive/directory-files.ts';
import { scanSnapshot } from '../../archive/snapshot-scan.ts';
import { writeWhole } from '../../archive/write-whole.ts';
import type { RestoreUpload, Uploaded } from '../messages.ts';

/** Bytes between two looks at the room on the disk. */
const LOOK_BYTES = 16 * 1024 * 1024;

/** Writes a body to a file, unpacked and synced, and verifies that it is a snapshot; removes it otherwise. */
export async function receiveSnapshot(body: Readable, upload: RestoreUpload): Promise<Uploaded> {
  try {
    await writeBody(body, upload);
    return { zxid: await lastZxidOf(upload.path) };
  } catch (error) {
    await unlink(upload.path).catch(() => {});
    return { fault: (error as Error).message };
  }
}

async function writeBody(body: Readable, { path, freeBytesMin, bytesMax }: RestoreUpload): Promise<void> {
  const file = await open(path, 'w', 0o600).catch((error: unknown) => {
    throw systemError(`cannot write ${path}`, error);
  });
  try {
    let position = 0;
    let lookAt = 0;
    for await (const chunk of unpackedChunks(body as AsyncIterable<Buffer>, 'what was sent')) {
      if (position + chunk.length > bytesMax) {
        throw new ArchiveError(
          'unusable',
          `it has more than the ${bytesMax} bytes that admin.restore.maxBytes allows, unpacked`,
        );
      }
      if (position >= lookAt) {
        lookAt = position + LOOK_BYTES;
        await checkRoom(path, freeBytesMin);
      }
      await writeWhole(file, chunk, position);
      position += chunk.length;
    }
    await file.sync();
  } catch (error) {
    throw systemError(`the snapshot that was sent could not be written to ${path}`, error);
  } finally {
    await file.close();
  }
}

/** @throws ArchiveError when the disk has no room for as much as is written until it is looked at again */
async function checkRoom(path: string, freeBytesMin: number): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(path));
  if (bavail * bsize >= freeBytesMin + LOOK_BYTES) return;
  throw new ArchiveError('disk', `there is no room for it on the disk of ${path}, behind disk.freeBytesMin`);
}

/** The last zxid that anything in it has. */
async function lastZxidOf(path: string): Promise<number> {
  await using file = await openFile(path);
  let last = 0;
  const { completeZxid, digest } = await scanSnapshot(file, {
    onZnode: ({ czxid, mzxid, pzxid }) => {
      last = Math.max(last, czxid, mzxid, pzxid);
    },
  });
  last = Math.max(last, completeZxid ?? 0, digest?.zxid ?? 0);
  if (!isZxid(last)) throw new ArchiveError('damaged', `it has a zxid that no server has given: ${last}`);
  return last;
}
