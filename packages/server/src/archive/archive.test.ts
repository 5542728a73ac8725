import { spawn } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Zxid } from '@meerkat/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { holdDirectory } from '../node/hold.ts';
import {
  checkLog,
  DirectoryFiles,
  openFile,
  parseMoment,
  readZnodeHistory,
  rebuild,
  repairLogFile,
  scanSnapshot,
  viewDatabase,
  zxidAt,
} from './index.ts';
import { readHistory } from './txn-history.ts';

/** Written by Apache's 3.8.0: log.1 (1 … b), log.c (c … 19), snapshot.0, snapshot.a. */
const APACHE = fileURLToPath(new URL('../../../core/src/storage/fixtures/apache-3.8.0', import.meta.url));

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'archive-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe('a directory of Apache’s', () => {
  test('gives the tree of any zxid, checked against the digests in its log', async () => {
    const files = await DirectoryFiles.open(APACHE, null);
    const dataOf = async (zxid: number, path: string): Promise<string | null> => {
      const { database, isVerified, zxid: last } = await rebuild(files, { target: zxid as never });
      expect({ last, isVerified }).toEqual({ last: zxid, isVerified: true });
      const z = [...viewDatabase(database).znodes()].find((znode) => znode.path === path);
      return z === undefined ? null : Buffer.from(z.data ?? []).toString();
    };
    expect(await dataOf(1, '/a')).toBeNull();
    expect(await dataOf(2, '/a')).toBe('alpha');
    expect(await dataOf(0xa, '/a')).toBe('beta');
    expect(await dataOf(0xf, '/a')).toBe('gamma');
    expect(await dataOf(0x10, '/a')).toBe('delta');
    expect(await dataOf(0x11, '/big')).toMatch(/^x+$/);
    expect(await dataOf(0x12, '/big')).toBeNull();
  });

  test('has no state behind its end', async () => {
    const files = await DirectoryFiles.open(APACHE, null);
    await expect(rebuild(files, { target: 0x1a as never })).rejects.toThrow(
      'ends with zxid 0x19, before the 0x1a that was asked for',
    );
    expect((await rebuild(files, { target: null })).zxid).toBe(0x19);
  });

  test('says which zxid was the last at a time', async () => {
    const files = await DirectoryFiles.open(APACHE, null);
    const at = (time: string): Promise<number> => zxidAt(files, Date.parse(time), () => expect.unreachable());
    expect(await at('2026-11-21T10:01:31.000Z')).toBe(8);
    expect(await at('2030-01-01T00:00:00.000Z')).toBe(0x19);
    await expect(at('2020-01-01T00:00:00.000Z')).rejects.toThrow('its first txn is of 2026-11-21T10:01:30.286Z');
  });

  test('says it for the time of each txn', async () => {
    const files = await DirectoryFiles.open(APACHE, null);
    const txns: { readonly zxid: number; readonly timeMs: number }[] = [];
    const onTxn = ({ zxid, timeMs }: { readonly zxid: Zxid; readonly timeMs: number }) =>
      txns.push({ zxid, timeMs }) > 0;
    await readHistory(files, { after: -1 as Zxid, upTo: null, isStrict: false }, { onTxn });
    expect(txns).toHaveLength(0x19);
    for (const { timeMs } of txns) {
      const last = txns.findLast((txn) => txn.timeMs === timeMs)!;
      expect(await zxidAt(files, timeMs, () => expect.unreachable())).toBe(last.zxid);
    }
  });
});

describe('the history of znodes', () => {
  /** With a snapshot under another zxid: one that began there, and was complete when the original began. */
  async function changesOf(snapshot: string, zxid: number, name: string): Promise<Record<string, unknown>> {
    const own = join(directory, name);
    mkdirSync(own);
    for (const log of ['log.1', 'log.c']) copyFileSync(join(APACHE, log), join(own, log));
    copyFileSync(join(APACHE, snapshot), join(own, `snapshot.${zxid.toString(16)}`));
    const found: Record<string, unknown> = {};
    await readZnodeHistory(await DirectoryFiles.open(own, null), {
      path: '/',
      isRecursive: true,
      upTo: null,
      onChange: ({ zxid, change, path, old, now }) => {
        const data = old == null ? old : Buffer.from(old.data ?? []).toString();
        found[`${zxid.toString(16)} ${change} ${path}`] = [data, now?.acl === null ? null : now?.acl.length];
      },
      onWarning: () => expect.unreachable(),
    });
    return found;
  }

  test('takes nothing of a snapshot for older than its own changes', async () => {
    const found = await changesOf('snapshot.a', 3, 'taken-meanwhile');
    expect(found).toMatchObject({
      '4 created /a/seq-0000000000': [null, 1],
      'a changed /a': [undefined, null],
      'f changed /a': ['beta', null],
      'd deleted /a/seq-0000000001': ['two', undefined],
    });
  });

  test('does not say that a znode was not there that was deleted while the snapshot was taken', async () => {
    const found = await changesOf('snapshot.0', 0x11, 'deleted-meanwhile');
    expect(found).toMatchObject({ '12 deleted /big': [undefined, undefined] });
  });
});

test('a snapshot is read the same packed and plain, and one with a changed byte is refused', async () => {
  const bytes = readFileSync(join(APACHE, 'snapshot.a'));
  const pathsOf = async (name: string, content: Uint8Array): Promise<string[]> => {
    const path = join(directory, name);
    writeFileSync(path, content);
    const file = await openFile(path);
    const paths: string[] = [];
    try {
      const { completeZxid, znodes } = await scanSnapshot(file, { onZnode: (znode) => void paths.push(znode.path) });
      expect({ completeZxid, znodes }).toEqual({ completeZxid: 0xa, znodes: 12 });
    } finally {
      await file.close();
    }
    return paths.toSorted();
  };
  const paths = await pathsOf('snapshot.a', bytes);
  expect(paths).toContain('/a/seq-0000000001');
  expect(await pathsOf('snapshot.a.gz', gzipSync(bytes))).toEqual(paths);
  for (const at of [0, 7, 20, 300, 900, bytes.length - 20]) {
    const changed = Uint8Array.from(bytes);
    changed[at]! ^= 0x10;
    await expect(pathsOf('snapshot.a', changed), String(at)).rejects.toThrow(/snapshot\.a at position \d+: /);
  }
  await expect(pathsOf('snapshot.a', bytes.subarray(0, 600))).rejects.toThrow('it is cut short');
  await expect(pathsOf('snapshot.a.gz', gzipSync(bytes).subarray(0, 300))).rejects.toThrow('cannot be unpacked');
});

describe('a log', () => {
  const copyOf = (name: string): string => {
    const path = join(directory, name);
    copyFileSync(join(APACHE, name), path);
    return path;
  };

  test('is whole, torn, damaged, or has a gap', async () => {
    const path = copyOf('log.1');
    const whole = await checkLog(path, null);
    expect(whole).toMatchObject({ state: 'whole', entries: 11, first: 1, last: 0xb, problem: null });
    expect((await checkLog(copyOf('log.c'), whole)).state).toBe('whole');
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.subarray(0, whole.end - 20));
    const torn = await checkLog(path, null);
    expect(torn).toMatchObject({ state: 'torn', entries: 10, problem: null });
    expect(await checkLog(copyOf('log.c'), { ...whole, last: 2 as never })).toMatchObject({ state: 'gap' });
    bytes[200]! ^= 1;
    writeFileSync(path, bytes);
    const { state, problem } = await checkLog(path, null);
    expect(state).toBe('damaged');
    expect(problem).toMatch(/log\.1 at position \d+: .*Behind it \d+ txns are whole/s);
  });

  test('is cut behind its last whole txn, or given a new checksum, and kept as it was', async () => {
    const path = copyOf('log.1');
    const bytes = readFileSync(path);
    bytes[200]! ^= 1;
    writeFileSync(path, bytes);
    const plan = await repairLogFile(path, { recomputes: false, isDryRun: true });
    expect(plan).toMatchObject({ kept: null, position: expect.any(Number) });
    expect(readFileSync(path)).toEqual(bytes);
    const { kept } = await repairLogFile(path, { recomputes: false, isDryRun: false });
    expect(readFileSync(kept ?? '')).toEqual(bytes);
    expect(readFileSync(path)).toEqual(bytes.subarray(0, plan.position));
    expect(await checkLog(path, null)).toMatchObject({ state: 'whole', end: plan.position });
    expect(await repairLogFile(path, { recomputes: false, isDryRun: false })).toMatchObject({
      reason: null,
      kept: null,
    });

    writeFileSync(path, bytes);
    const recomputed = await repairLogFile(path, { recomputes: true, isDryRun: false });
    expect(recomputed).toMatchObject({ recomputed: 1 });
    expect(recomputed.kept).not.toBe(kept);
    expect(await checkLog(path, null)).toMatchObject({ state: 'whole', entries: 11 });
  });

  function damagedLog(): string {
    const path = copyOf('log.1');
    const bytes = readFileSync(path);
    bytes[200]! ^= 1;
    writeFileSync(path, bytes);
    return path;
  }

  test('is not repaired under a server that runs, ours or Apache’s', async () => {
    const path = damagedLog();
    const before = readFileSync(path);
    const repair = () => repairLogFile(path, { recomputes: false, isDryRun: false });
    const hold = await holdDirectory(dirname(path));
    await expect(repair()).rejects.toThrow(/belongs to a running server: stop it .*\(holding process \d+\)/);
    hold.release();
    // Apache's holds nothing, but the file itself.
    const other = spawn('sleep', ['600'], { stdio: [openSync(path, 'r'), 'ignore', 'ignore'] });
    try {
      await expect(repair()).rejects.toThrow(/process \d+ \(.*\) has .*log\.1 open: stop the server/);
    } finally {
      other.kill();
    }
    expect(readFileSync(path)).toEqual(before);
  });

  test('keeps its mode when it is rewritten', async () => {
    const path = damagedLog();
    chmodSync(path, 0o640);
    await repairLogFile(path, { recomputes: true, isDryRun: false });
    expect(statSync(path).mode & 0o777).toBe(0o640);
  });

  test('is what is repaired, and no snapshot', async () => {
    const path = copyOf('snapshot.a');
    const before = readFileSync(path);
    await expect(repairLogFile(path, { recomputes: false, isDryRun: false })).rejects.toThrow('is not named as a log');
    expect(readFileSync(path)).toEqual(before);
  });
});

const IMPOSSIBLE = [
  '2025-99-99',
  '2025-02-29',
  '2025-04-31T10:00:00Z',
  '2025-03-01 14:75',
  '14:75',
  '24:00',
  '14:05:60',
];

test('moments are zxids and times', () => {
  const nowMs = Date.parse('2025-03-01T12:00:00Z');
  expect(parseMoment('0x100000004d', nowMs)).toEqual({ kind: 'zxid', zxid: 0x100000004d });
  expect(parseMoment('2025-03-01T14:05:00Z', nowMs)).toEqual({ kind: 'time', ms: Date.parse('2025-03-01T14:05:00Z') });
  expect(parseMoment('10m ago', nowMs)).toEqual({ kind: 'time', ms: nowMs - 600_000 });
  expect(parseMoment('90s', nowMs)).toEqual({ kind: 'time', ms: nowMs - 90_000 });
  expect(parseMoment('now', nowMs)).toEqual({ kind: 'time', ms: nowMs });
  expect(parseMoment('2024-02-29T00:00:00Z', nowMs)).toEqual({ kind: 'time', ms: Date.parse('2024-02-29T00:00:00Z') });
  for (const text of ['00:00', '23:59:59']) expect(parseMoment(text, nowMs), text).not.toBeNull();
  const atFive = parseMoment('14:05', nowMs);
  expect(atFive?.kind === 'time' && new Date(atFive.ms).getHours()).toBe(14);
  for (const text of ['', '14', 'yesterday', '0x', '0xfffffffffffffffff', ...IMPOSSIBLE]) {
    expect(parseMoment(text, nowMs), text).toBeNull();
  }
});
