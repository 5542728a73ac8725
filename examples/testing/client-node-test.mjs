// node --test examples/testing/client-node-test.mjs
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { connect, NodeExistsError, text } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';

let server;
let client;

before(async () => {
  server = await TestServer.start();
  client = await connect(server.connectString);
});

after(async () => {
  await client.close();
  await server.dispose();
});

// One server for all tests of a file; each test begins with an empty tree.
beforeEach(async () => {
  const { children } = await client.children('/');
  for (const name of children) if (name !== 'zookeeper') await client.deleteRecursive(`/${name}`);
});

test('a znode is read back', async () => {
  await client.create('/greeting', 'hello');
  const { data, stat } = await client.get('/greeting', { codec: text });
  assert.equal(data, 'hello');
  assert.equal(stat.version, 0);
});

test('a name is given once', async () => {
  await client.create('/greeting', 'hello');
  await assert.rejects(client.create('/greeting'), NodeExistsError);
});
