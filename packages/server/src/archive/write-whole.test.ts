import type { FileHandle } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { writeWhole } from './write-whole.ts';

/** A disk with so much room. */
function diskOf(room: number): { readonly handle: Pick<FileHandle, 'write'>; readonly content: number[] } {
  const content: number[] = [];
  const write = (bytes: Uint8Array, offset: number, length: number, position: number) => {
    const fits = Math.min(length, room - position);
    if (fits <= 0) return Promise.reject(Object.assign(new Error('no room'), { code: 'ENOSPC' }));
    for (let i = 0; i < fits; i++) content[position + i] = bytes[offset + i]!;
    return Promise.resolve({ bytesWritten: fits, buffer: bytes });
  };
  return { handle: { write } as unknown as Pick<FileHandle, 'write'>, content };
}

test('a disk that takes a part only is given the rest, and says that it is full', async () => {
  const bytes = Uint8Array.of(1, 2, 3, 4, 5);
  const { handle, content } = diskOf(4);
  await expect(writeWhole(handle, bytes, 2)).rejects.toMatchObject({ code: 'ENOSPC' });
  expect(content.slice(2)).toEqual([1, 2]);
  const large = diskOf(100);
  await writeWhole(large.handle, bytes, 0);
  expect(large.content).toEqual([...bytes]);
});
