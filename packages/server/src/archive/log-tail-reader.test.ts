import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Zxid } from '@meerkat/protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DirectoryFiles } from './directory-files.ts';
import { LogTailReader } from './log-tail-reader.ts';

/** Written by Apache's 3.8.0: log.1 (1 … b), log.c (c … 19). */
const APACHE = fileURLToPath(new URL('../../../core/src/storage/fixtures/apache-3.8.0', import.meta.url));

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'log-tail-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const add = (name: string, as = name): void => copyFileSync(join(APACHE, name), join(directory, as));

test('a file that is purged after it was read is followed by the next one', async () => {
  add('log.1');
  const reader = new LogTailReader(await DirectoryFiles.open(directory, null), -1 as Zxid);
  const zxids: number[] = [];
  const events = {
    onEntry: ({ zxid }: { readonly zxid: Zxid }) => void zxids.push(zxid),
    onSlice: () => Promise.resolve(),
    onWarning: (text: string) => expect.unreachable(text),
  };
  expect(await reader.poll(events)).toEqual({ kind: 'end' });
  expect(zxids.at(-1)).toBe(0xb);

  add('log.c');
  rmSync(join(directory, 'log.1'));
  expect(await reader.poll(events)).toEqual({ kind: 'end' });
  expect(zxids).toEqual(Array.from({ length: 0x19 }, (_, i) => i + 1));
  await reader.close();
});

test('a gap is reported where the file behind it was purged as well', async () => {
  add('log.1');
  const reader = new LogTailReader(await DirectoryFiles.open(directory, null), -1 as Zxid);
  const events = { onEntry: () => {}, onSlice: () => Promise.resolve(), onWarning: () => {} };
  await reader.poll(events);
  rmSync(join(directory, 'log.1'));
  add('log.c', 'log.20');
  expect(await reader.poll(events)).toMatchObject({ kind: 'gap', reason: expect.stringContaining('log.20') });
  await reader.close();
});
