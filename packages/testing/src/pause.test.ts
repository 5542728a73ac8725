import { connect as dial } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { Op, RawClient } from '../../../interop/harness/raw-client.ts';
import { OPEN_ACL, record } from '../../../interop/harness/record-builder.ts';
import { TestServer } from './index.ts';

const servers: TestServer[] = [];
const clients: RawClient[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  for (const server of servers.splice(0)) await server.dispose();
});

async function start(options?: Parameters<typeof TestServer.start>[0]): Promise<TestServer> {
  const server = await TestServer.start(options);
  servers.push(server);
  return server;
}

async function connect(server: TestServer, timeoutMs = 30_000): Promise<RawClient> {
  const client = await RawClient.connect(server.port, { timeoutMs, isSilent: true });
  clients.push(client);
  return client;
}

const createRequest = (path: string, flags = 0): Buffer =>
  record().ustring(path).buffer('').acls(OPEN_ACL).int(flags).build();

/** Work of another server in this process, during which any pending event would have arrived. */
async function workElsewhere(): Promise<void> {
  const other = await start();
  const client = await connect(other);
  for (let i = 0; i < 10; i++) await client.demand(Op.create, createRequest(`/n-${i}`));
}

test.each(['memory', 'directory'] as const)(
  'a paused server takes bytes and answers after resume, storage: %s',
  async (storage) => {
    const server = await start({ storage });
    const client = await connect(server);
    let answers = 0;
    server.pause();
    expect(server.state).toBe('paused');
    const writes = Array.from({ length: 10 }, async (_, i) => {
      const reply = await client.demand(Op.create, createRequest(`/n-${i}`));
      answers++;
      return reply.zxid;
    });
    await workElsewhere();
    expect(answers).toBe(0);
    expect(server.view.lastZxid).toBe(1);
    server.resume();
    expect(server.state).toBe('running');
    const zxids = await Promise.all(writes);
    expect(zxids).toEqual(Array.from({ length: 10 }, (_, i) => BigInt(i + 2)));
  },
);

test('writes that were on their way when the server was paused are answered after resume', async () => {
  const server = await start({ storage: 'directory' });
  const client = await connect(server);
  for (let round = 0; round < 20; round++) {
    const writes = Array.from({ length: 5 }, (_, i) => client.demand(Op.create, createRequest(`/n-${round}-${i}`)));
    // Each round pauses it in another moment: some phases of the event loop later than the round before.
    for (let phase = 0; phase < round % 5; phase++) await new Promise((resolve) => setImmediate(resolve));
    server.pause();
    await new Promise((resolve) => setImmediate(resolve));
    server.resume();
    await Promise.all(writes);
  }
  expect(server.view.lastZxid).toBe(101);
});

test('connections are accepted while the server is paused, and served after resume', async () => {
  const server = await start();
  server.pause();
  const socket = dial(server.port, '127.0.0.1');
  await new Promise((resolve) => socket.once('connect', resolve));
  const gone = dial(server.port, '127.0.0.1');
  await new Promise((resolve) => gone.once('connect', resolve));
  gone.resetAndDestroy();
  const connecting = connect(server);
  await workElsewhere();
  expect(server.view.connectionCount).toBe(0);
  server.resume();
  const client = await connecting;
  await client.demand(Op.create, createRequest('/a'));
  socket.destroy();
});

test('no session expires while the server is paused; one that pings within a tick of resume survives', async () => {
  const server = await start({ tickTimeMs: 50 });
  const connected = await connect(server, 100);
  const silent = await connect(server, 100);
  server.pause();
  // Sent while nothing is read: it waits in the kernel, as with a stopped process.
  const pinged = connected.ping();
  const observer = await start({ tickTimeMs: 50 });
  const short = await connect(observer, 100);
  await short.closed;
  expect(server.sessions()).toHaveLength(2);
  server.resume();
  // A session that has expired gets no answer.
  await pinged;
  await silent.closed;
});

test('a paused server expires no session on demand; it can be killed, stopped and disposed of', async () => {
  const server = await start();
  const client = await connect(server);
  server.pause();
  await expect(server.expireSession(client.sessionId)).rejects.toThrow('resume it first');
  await server.kill();
  await client.closed;
  await server.restart();
  expect(server.state).toBe('running');
  server.pause();
  await server.restart();
  expect(server.sessions().map(({ id }) => id)).toEqual([client.sessionId]);
  server.pause();
  await server.dispose();
});
