import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { checkDirectory, foretoldMegabytes } from './migration-check.ts';

/** Written by Apache's 3.8.0: txns 1 to 0xb, then from 0xc on. */
const APACHE = fileURLToPath(new URL('../../../core/src/storage/fixtures/apache-3.8.0', import.meta.url));

/** A copy of it, and what is reported of one of its files. */
function copyOfApaches(): { readonly files: string; notesOf(name: string): Promise<readonly string[]> } {
  const directory = mkdtempSync(join(tmpdir(), 'migration-check-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const files = join(directory, 'version-2');
  mkdirSync(files);
  cpSync(APACHE, files, { recursive: true });
  return {
    files,
    async notesOf(name) {
      const notes = await checkDirectory(directory, new AbortController().signal);
      return notes.filter(({ where }) => where.endsWith(name)).map(({ level, text }) => `${level} ${text}`);
    },
  };
}

describe('what migrate check tells of logs and snapshots of Apache’s', () => {
  test('is their number when nothing is wrong', async () => {
    const { notesOf } = copyOfApaches();
    expect(await notesOf('version-2')).toEqual([expect.stringMatching(/^fact 2 snapshots, 2 logs with \d+ txns$/)]);
    expect([...(await notesOf('log.1')), ...(await notesOf('log.c'))]).toEqual([]);
  });

  test('is a zxid that has no txn, which Apache’s servers leave out, and a gap, which stands in the way', async () => {
    const { files, notesOf } = copyOfApaches();
    const log = join(files, 'log.1');
    truncateSync(log, wholeLengthOf(log) - 20);
    expect(await notesOf('log.c')).toEqual([expect.stringMatching(/^change .*between 0xa and 0xc zxids have no txn/)]);
    truncateSync(log, wholeLengthOf(log) >> 2);
    expect(await notesOf('log.c')).toEqual([expect.stringMatching(/^stop .*txns (?:are|is) missing/)]);
  });

  test('is that txns are repeated, which a start passes over', async () => {
    const { files, notesOf } = copyOfApaches();
    const log = readFileSync(join(files, 'log.1')).subarray(0, wholeLengthOf(join(files, 'log.1')));
    // Behind the header the same entries again.
    writeFileSync(join(files, 'log.1'), log);
    appendFileSync(join(files, 'log.1'), log.subarray(HEADER_BYTES));
    expect(await notesOf('log.1')).toEqual([
      expect.stringMatching(/^change .*: 11 txns from 0x1 to 0xb are in the log a second time and skipped/),
    ]);
  });

  test('is the same of a compressed snapshot', async () => {
    const { files, notesOf } = copyOfApaches();
    const plain = await notesOf('snapshot.a');
    expect(plain).toHaveLength(4);
    const path = join(files, 'snapshot.a');
    writeFileSync(`${path}.gz`, gzipSync(readFileSync(path)));
    rmSync(path);
    expect(await notesOf('snapshot.a.gz')).toEqual(plain);
  });
});

test('the memory that is foretold is no less than what docs/operations.md tells, and a fifth more at most', () => {
  const page = readFileSync(new URL('../../../../docs/operations.md', import.meta.url), 'utf8');
  const reported =
    /sum of (\d+) MB, \d+ to (\d+) bytes a znode \((\d+) bytes of data, path of (\d+)\) and \d+ to (\d+) bytes/;
  const [, process, znode, data, path, watch] = (reported.exec(page) ?? []).map(Number) as [number, ...number[]];
  const million = 1_000_000;
  const size = { znodes: million, data: million * (data! + path!), watches: million };
  const expected = process! + (million * (znode! + watch!)) / 2 ** 20;
  expect(foretoldMegabytes(size)).toBeGreaterThan(expected);
  expect(foretoldMegabytes(size)).toBeLessThan(1.2 * expected);
});

const HEADER_BYTES = 16;

/** Where zeros begin that Apache's server has allocated ahead. */
function wholeLengthOf(path: string): number {
  const bytes = readFileSync(path);
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return end;
}
