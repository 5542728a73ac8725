import { type Client, connect, text } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Fields } from './fields.ts';
import { deleteUnchanged, readTree } from './saved-tree.ts';
import { exportTree, importTree } from './transfer.ts';
import { copyTree, moveTree } from './znode-writer.ts';

const CALL = { timeoutMs: 60_000 };
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

async function makeTree(root: string): Promise<void> {
  for (const below of ['', '/a', '/a/x', '/b']) await client.create(`${root}${below}`, `of ${below}`);
}

function fromTo(from: string, to: string): Fields {
  return new Fields({ from, to });
}

describe('a change of a tree', () => {
  test('after a move deletes only what is unchanged since it was copied', async () => {
    await makeTree('/moving');
    const tree = await readTree(client, '/moving', { znodesMax: 100, bytesMax: 1e6 }, CALL);
    await client.set('/moving/b', 'newer');
    expect(await deleteUnchanged(client, '/moving', tree!.znodes, CALL)).toBe('/moving/b');
    expect((await client.get('/moving/b', { codec: text })).data).toBe('newer');
  });

  test('is moved, and back', async () => {
    await makeTree('/from');
    const { changed, undo } = await moveTree(client, fromTo('/from', '/to'), CALL);
    expect(changed.znodes).toBe(4);
    expect(await client.exists('/from')).toBe(null);
    await undo!.run();
    expect((await client.get('/from/a/x', { codec: text })).data).toBe('of /a/x');
    expect(await client.exists('/to')).toBe(null);
  });

  test('undoes a copy, except for later writes into it', async () => {
    await makeTree('/original');
    const { undo } = await copyTree(client, fromTo('/original', '/copy'), CALL);
    await client.set('/copy/a', 'newer');
    await expect(undo!.run()).rejects.toThrow('/copy/a was changed since');
    expect((await client.get('/copy/a', { codec: text })).data).toBe('newer');
  });

  test('undoes an import by deleting what it has created, and nothing else', async () => {
    await makeTree('/source');
    const lines = await exportTree(client, '/source', 'service', CALL);
    await client.create('/place', 'before');
    await client.create('/place/b', 'before');
    const { changed, undo } = await importTree(client, '/place', lines, CALL);
    expect(changed).toMatchObject({ znodes: 2, undo: 'delete the 2 imported znodes', noUndo: null });
    await undo!.run();
    expect((await client.children('/place')).children).toEqual(['b']);
    expect((await client.get('/place/b', { codec: text })).data).toBe('before');
  });

  test('imports a whole tree at the root, which always exists', async () => {
    const header = '{"meerkatExport":1}';
    const lines = [header, '{"path":"/","data":"x"}', '{"path":"/new","data":null}', '{"end":true}'].join('\n');
    const { changed } = await importTree(client, '/', lines, CALL);
    expect(changed.znodes).toBe(1);
    const odd = [header, '{"path":"/odd","data":5}', '{"end":true}'].join('\n');
    await expect(importTree(client, '/', odd, CALL)).rejects.toThrow('line 2: data: expected text, found 5');
  });
});

describe('a tree that is too large for memory', () => {
  /** A service where /large has this many children, each with this many bytes. */
  function serviceWith(count: number, bytes: number): Client {
    const names = Array.from({ length: count }, (_, i) => `n-${i}`);
    return {
      children: async (path: string) => ({
        children: path === '/large' ? names : [],
        stat: { dataLength: path === '/large' ? 0 : bytes, isEphemeral: false },
      }),
      exists: async () => null,
      get: () => Promise.reject(new Error('nothing of it is read')),
    } as unknown as Client;
  }

  test.each([
    ['of more than 100,000 znodes', serviceWith(100_001, 0)],
    ['of more than 128 MiB', serviceWith(200, 700_000)],
  ])('%s is neither copied nor exported, and nothing of it is read', async (_what, large) => {
    const refusal = { status: 413, code: 'too-large' };
    await expect(copyTree(large, fromTo('/large', '/copy'), CALL)).rejects.toMatchObject(refusal);
    await expect(exportTree(large, '/large', 'service', CALL)).rejects.toMatchObject(refusal);
  });
});
