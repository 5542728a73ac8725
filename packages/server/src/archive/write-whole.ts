import type { FileHandle } from 'node:fs/promises';

/** Writes all bytes. A disk that becomes full takes the first part without an error, and refuses the rest. */
export async function writeWhole(
  handle: Pick<FileHandle, 'write'>,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, written, bytes.length - written, position + written);
    written += bytesWritten;
  }
}
