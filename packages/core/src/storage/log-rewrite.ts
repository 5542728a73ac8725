/**
 * Writes the end of the log again, as it was read, and syncs it.
 *
 * The previous process may have ended because a sync failed. The kernel then considers the pages clean: it shows what
 * was written, a later sync succeeds without writing anything, and the next power cut removes txns that a reader
 * considered durable. Rewritten, the pages are dirty again, and the sync is effective.
 *
 * Only the last batch can be affected, since each is written after the previous one was synced (`txn-log.ts`).
 */
import type { Disk, DiskError, DiskFile } from '../base/ports.ts';
import { BATCH_BYTES_MAX } from './txn-log.ts';

/** Bytes of one read and one write. */
const SLICE_BYTES = 1024 * 1024;

/**
 * @param end where the entries end; nothing after it is touched
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
