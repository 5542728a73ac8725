import { type Client, connect, text } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { runCopy } from './copy-run.ts';
import { makeEntry } from './testing/arbitrary-tree.ts';
import type { TreeEntry } from './tree-entry.ts';

let server: TestServer;
let client: Client;

beforeAll(async () => {
  server = await TestServer.start();
  client = await connect(server.connectString);
});

afterAll(async () => {
  await client.close();
  await server[Symbol.asyncDispose]();
});

beforeEach(async () => {
  if ((await client.exists('/to')) !== null) await client.deleteRecursive('/to');
});

/** What a copy uses of it: for a program, without progress. */
function makeContext(results: unknown[]): Context {
  return {
    report: { isForPeople: false, one: async (_columns: unknown, result: unknown) => void results.push(result) },
    signal: new AbortController().signal,
    call: { signal: new AbortController().signal, timeoutMs: undefined },
    note: () => {},
    progress: () => ({ update: () => {}, [Symbol.dispose]: () => {} }),
  } as unknown as Context;
}

const SOURCE = ['/', '/a', '/b', '/c'].map((path) => makeEntry(path, { data: text.encode(path) }));

/** Copies the source to /to, which exists. @param afterSurvey is called when the source has been read for the first time */
async function copy(afterSurvey: () => Promise<void>): Promise<{ exit: CommandExit; result: unknown; reads: number }> {
  const results: unknown[] = [];
  let reads = 0;
  async function* readSource(): AsyncGenerator<TreeEntry, void> {
    const isFirst = reads++ === 0;
    yield* SOURCE;
    if (isFirst) await afterSurvey();
  }
  const exit = await runCopy(makeContext(results), {
    verb: 'copy',
    source: '/from',
    readSource,
    target: { client, path: '/to', shown: '/to' },
    selection: { withAcl: true, isRecursive: true, isLeftOut: () => false },
    policy: { existing: 'overwrite', isMirror: false, ephemeralsAsPersistent: false },
    makesParents: false,
    isDryRun: false,
    surveysAlways: false,
    isSure: true,
    verifies: true,
  });
  return { exit, result: results[0], reads };
}

test('writes what the survey has found without reading the source again', async () => {
  await client.create('/to', '/');
  const { exit, result, reads } = await copy(async () => {});
  expect(exit).toBe(CommandExit.ok);
  expect(result).toMatchObject({ counts: { create: 3, same: 1 }, isVerified: true });
  // The survey, and the verification.
  expect(reads).toBe(2);
});

test('compares anew when another client has created one of the znodes after the survey', async () => {
  await client.create('/to', '/');
  const { exit, result } = await copy(async () => void (await client.create('/to/b', '/b')));
  expect(exit).toBe(CommandExit.ok);
  expect(result).toMatchObject({ isVerified: true });
  expect((await client.children('/to')).children.toSorted()).toEqual(['a', 'b', 'c']);
});
