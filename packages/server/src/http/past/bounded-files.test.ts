import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Zxid } from '@meerkat/protocol';
import { expect, onTestFinished, test } from 'vitest';
import { checkLog, DirectoryFiles, readStates, rebuildMoment } from '../../archive/index.ts';
import { BoundedFiles, type FileBounds } from './bounded-files.ts';

/** Written by Apache's 3.8.0: log.1 (1 … b), log.c (c … 19), snapshot.0, snapshot.a. */
const APACHE = fileURLToPath(new URL('../../../../core/src/storage/fixtures/apache-3.8.0', import.meta.url));

async function filesOfServer(directory: string, bounds: Partial<FileBounds> = {}): Promise<BoundedFiles> {
  const files = await DirectoryFiles.open(directory, null);
  return new BoundedFiles(files, { committed: 0x19 as Zxid, bufferBytesMax: 1, bufferBytes: () => 0, ...bounds });
}

test('of a server that runs only what is applied is read, and what is written behind it is not looked at', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'past-reading-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  cpSync(APACHE, directory, { recursive: true });
  const newest = async (committed: number): Promise<string> => {
    const { states } = await readStates(
      await filesOfServer(directory, { committed: committed as Zxid }),
      '/a',
      new Map(),
    );
    return Buffer.from(states.at(-1)?.state?.data ?? []).toString();
  };
  expect(await newest(0x19)).toBe('delta');
  expect(await newest(0xf)).toBe('gamma');
  // A piece of something behind the end, as one sees it that is being written.
  const path = join(directory, 'log.c');
  const { end } = await checkLog(path, null);
  const whole = readFileSync(path);
  const [entry] = [readFileSync(join(APACHE, 'log.1')).subarray(16)];
  writeFileSync(path, Buffer.concat([whole.subarray(0, end), Buffer.alloc(64), entry, Buffer.alloc(1000)]));
  await expect(readStates(await DirectoryFiles.open(directory, null), '/a', new Map())).rejects.toThrow('log.c');
  expect(await newest(0x19)).toBe('delta');
  expect(await newest(0xf)).toBe('gamma');
});

test('a tree is read as long as it fits into memory', async () => {
  let used = 0;
  const bounds = { bufferBytesMax: 10, bufferBytes: () => used++ };
  const files = await filesOfServer(APACHE, bounds);
  expect((await rebuildMoment(files, '0x19'))?.zxid).toBe(0x19);
  expect(files.isExceeded).toBe(false);
  used = 11;
  await expect(rebuildMoment(files, '0x19')).rejects.toThrow('more memory than there is');
  expect(files.isExceeded).toBe(true);
});
