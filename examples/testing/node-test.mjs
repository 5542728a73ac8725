// node --test examples/testing/node-test.mjs
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { TestServer } from '@meerkat/testing';

/** The code under test: the first line of what a server tells of itself. */
async function askVersion(port) {
  const socket = connect(port, '127.0.0.1');
  socket.write('srvr');
  const [line] = (await text(socket)).split('\n');
  return line;
}

let server;

before(async () => {
  server = await TestServer.start();
});

// `await using` needs Node.js 24; before, and in hooks, `dispose` does the same.
after(() => server.dispose());

test('a server tells its version', async () => {
  assert.match(await askVersion(server.port), /^Zookeeper version: 3\./);
});

test('a stopped server does not answer', async () => {
  await server.stop();
  await assert.rejects(askVersion(server.port), { code: 'ECONNREFUSED' });
  await server.restart();
});
