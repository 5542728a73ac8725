import { type Acl, acl, type Client, connect, OPEN, Perm } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeEntry } from './testing/arbitrary-tree.ts';
import { TreeWriter } from './tree-writer.ts';

let server: TestServer;
let client: Client;

beforeAll(async () => {
  server = await TestServer.start();
  client = await connect(server.connectString);
  await client.addAuth('digest', 'ann:secret');
});

afterAll(async () => {
  await client.close();
  await server[Symbol.asyncDispose]();
});

/** Creates the znodes below /to, in tree order, each with its ACL. */
async function write(znodes: readonly (readonly [path: string, acl: readonly Acl[]])[]): Promise<void> {
  const writer = new TreeWriter(client, '/to', {}, () => {});
  for (const [path, entries] of znodes) {
    await writer.add({ action: 'create', path, entry: makeEntry(path, { acl: entries }) });
  }
  await writer.end();
}

/** Its owner may read, and nothing else. */
const SHUT = [acl.digest('ann', 'secret', 'r')];

test('a parent is shut when everything below it is there, its last child included', async () => {
  await write([
    ['/', OPEN],
    ['/a', SHUT],
    ['/a/b', SHUT],
    ['/a/b/c', SHUT],
    ['/a/d', SHUT],
    ['/e', SHUT],
    ['/e/f', SHUT],
  ]);
  for (const path of ['/a', '/a/b', '/a/b/c', '/a/d', '/e', '/e/f']) {
    const found = await client.getAcl(`/to${path}`);
    expect({ path, perms: found.acl.map(({ perms }) => perms) }).toEqual({ path, perms: [Perm.read] });
  }
});
