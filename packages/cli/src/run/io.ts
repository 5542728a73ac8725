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

/** Writes, and waits while whoever reads is slower. A stream that is closed takes everything and says nothing. */
export function writeAll(stream: Writable, chunk: string | Uint8Array): Promise<void> | undefined {
  if (stream.destroyed || stream.writableEnded || stream.write(chunk)) return undefined;
  return new Promise((resolve) => {
    const end = (): void => {
      stream.off('drain', end);
      stream.off('close', end);
      stream.off('error', end);
      resolve();
    };
    stream.on('drain', end).on('close', end).on('error', end);
  });
}
