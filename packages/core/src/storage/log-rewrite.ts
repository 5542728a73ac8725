/**
 * Writes the end of the log once more, as it was read, and syncs it.
 *
 * The process before this one may have ended because a sync failed. The kernel then takes the pages for clean: it shows
 * what was written, a later sync succeeds and writes nothing, and the next power cut takes txns away that a reader took
 * for durable. Written again, the pages are dirty again, and the sync means what it says.
 *
 * What can be concerned is the last batch, since each is written after the one before it was synced (`txn-log.ts`).
 */
import type { Disk, DiskError, DiskFile } from '../base/ports.ts';
import { BATCH_BYTES_MAX } from './txn-log.ts';

/** Bytes of one read and one write. */
const SLICE_BYTES = 1024 * 1024;

/**
 * @param end where the entries end; nothing behind it is touched
 * @param entryBytesMax the longest entry of the file
 */
export function rewriteLogEnd(
  disk: Disk,
  path: string,
  { end, entryBytesMax }: { readonly end: number; readonly entryBytesMax: number },
  done: (error: DiskError | null) => void,
): void {
  const bytes = BATCH_BYTES_MAX + entryBytesMax;
  disk.open(path, { readOnly: false }, (error, file) => {
    if (error !== null) return done(error);
    const finish = (failure: DiskError | null): void => {
      file.close();
      done(failure);
    };
    rewrite(file, Math.max(0, end - bytes), end, finish);
  });
}

function rewrite(file: DiskFile, position: number, end: number, done: (error: DiskError | null) => void): void {
  if (position >= end) {
    file.sync(done);
    return;
  }
  file.read(position, Math.min(SLICE_BYTES, end - position), (error, bytes) => {
    if (error !== null) return done(error);
    file.write(position, bytes, (writeError) => {
      if (writeError !== null) return done(writeError);
      rewrite(file, position + bytes.length, end, done);
    });
  });
}
