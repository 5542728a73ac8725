import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createGzip, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { receiveSnapshot } from './upload.ts';

const FIXTURE = new URL('../../../../core/src/storage/fixtures/apache-3.8.0/snapshot.a', import.meta.url);
const MIB = 1024 * 1024;

let directory = '';
let path = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-upload-'));
  path = join(directory, 'snapshot');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('a snapshot that is as long as it may be is written unpacked, packed or not', async () => {
  const bytes = readFileSync(FIXTURE);
  for (const body of [bytes, gzipSync(bytes)]) {
    const upload = { path, freeBytesMin: 0, bytesMax: bytes.length };
    expect(await receiveSnapshot(Readable.from([body]), upload)).toEqual({ zxid: 10 });
    expect(readFileSync(path).equals(bytes)).toBe(true);
  }
});

test('one that is longer is refused, with the key, and nothing stays of it', async () => {
  const bytes = readFileSync(FIXTURE);
  for (const body of [bytes, gzipSync(bytes)]) {
    const uploaded = await receiveSnapshot(Readable.from([body]), {
      path,
      freeBytesMin: 0,
      bytesMax: bytes.length - 1,
    });
    expect(uploaded).toHaveProperty('fault', expect.stringContaining('admin.restore.maxBytes'));
    expect(existsSync(path)).toBe(false);
  }
});

test('a small body that unpacks to any length is unpacked no further than that', async () => {
  let sent = 0;
  const zeros = Readable.from(
    (function* () {
      for (; sent < 4096; sent++) yield Buffer.alloc(MIB);
    })(),
  );
  const uploaded = await receiveSnapshot(zeros.pipe(createGzip({ level: 1 })), {
    path,
    freeBytesMin: 0,
    bytesMax: MIB,
  });
  expect(uploaded).toHaveProperty('fault', expect.stringContaining(`more than the ${MIB} bytes`));
  expect(sent).toBeLessThan(4096);
});

test('one for which the disk has no room is refused', async () => {
  const upload = { path, freeBytesMin: Number.MAX_SAFE_INTEGER, bytesMax: MIB };
  const uploaded = await receiveSnapshot(Readable.from([readFileSync(FIXTURE)]), upload);
  expect(uploaded).toHaveProperty('fault', expect.stringContaining('disk.freeBytesMin'));
});
