import type { Readable, Writable } from 'node:stream';

/** What a command has of the process around it. The shell and tests give others. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export const PROCESS_IO: Io = process;

/**
 * Writes, and waits while the reader is slower. A stream that is closed takes everything and says nothing.
 *
 * @param signal aborted: waits no longer; what was written leaves if the reader takes it in time
 */
export function writeAll(
  stream: Writable,
  chunk: string | Uint8Array,
  signal?: AbortSignal,
): Promise<void> | undefined {
  if (isClosed(stream) || stream.write(chunk) || signal?.aborted === true) return undefined;
  return new Promise((resolve) => {
    const end = (): void => {
      stream.off('drain', end).off('close', end).off('error', end);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    stream.on('drain', end).on('close', end).on('error', end);
    signal?.addEventListener('abort', end);
  });
}

/** Everything that was written has left: a pipe may hold some of it back until its reader continues. */
export async function flush(stream: Writable): Promise<void> {
  if (isClosed(stream) || stream.writableLength === 0) return;
  await new Promise((resolve) => stream.write('', resolve));
}

function isClosed(stream: Writable): boolean {
  return stream.destroyed || stream.writableEnded;
}
