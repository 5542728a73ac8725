import { open } from 'node:fs/promises';
import type { FastifyReply } from 'fastify';
import type { FilePart } from '../messages.ts';

/**
 * Sends a part of a file. Zeros at its end, of which a log that was grown ahead has many, are only counted.
 *
 *     trailing_zeros: so many zero bytes stand behind the body
 *     file_end: true when the file ends with them
 */
export async function sendPart(reply: FastifyReply, path: string, { from, length }: FilePart): Promise<FastifyReply> {
  let handle: Awaited<ReturnType<typeof open>>;
  try {
    handle = await open(path, 'r');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT') throw error;
    return await reply.code(404).type('text/plain').send('the file has been removed meanwhile\n');
  }
  try {
    const bytes = Buffer.allocUnsafe(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await handle.read(bytes, filled, length - filled, from + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    let end = filled;
    while (end > 0 && bytes[end - 1] === 0) end--;
    reply.header('trailing_zeros', String(filled - end)).header('file_end', String(filled < length));
    return await reply.send(bytes.subarray(0, end));
  } finally {
    await handle.close();
  }
}
