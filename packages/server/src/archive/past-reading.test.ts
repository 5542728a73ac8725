import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { DirectoryFiles, readSpan, readStates, rebuildMoment } from './index.ts';

/** Written by Apache's 3.8.0: log.1 (1 … b), log.c (c … 19), snapshot.0, snapshot.a. */
const APACHE = fileURLToPath(new URL('../../../core/src/storage/fixtures/apache-3.8.0', import.meta.url));

test('the log spans from its first txn to its last one', async () => {
  expect(await readSpan(await DirectoryFiles.open(APACHE, null))).toEqual({
    fromMs: Date.parse('2026-11-21T10:01:30.286Z'),
    toMs: expect.any(Number),
  });
});

test('the states of a znode come with who made them, and where that client is', async () => {
  const files = await DirectoryFiles.open(APACHE, null);
  const { states, isCut } = await readStates(files, '/a', new Map());
  expect(isCut).toBe(false);
  expect(states.map(({ state }) => Buffer.from(state?.data ?? []).toString())).toEqual([
    'alpha',
    'beta',
    'gamma',
    'delta',
  ]);
  const [{ session = '' } = {}] = states;
  const { states: again } = await readStates(files, '/a', new Map([[BigInt(session), '10.0.0.5:1']]));
  expect(again[0]).toMatchObject({ zxid: '0x2', change: 'created', version: 0, client: '10.0.0.5:1' });
});

test('what is neither a zxid nor a time is no moment', async () => {
  expect(await rebuildMoment(await DirectoryFiles.open(APACHE, null), 'whenever')).toBe(null);
});
