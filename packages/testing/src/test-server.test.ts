import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TraceEvent } from '@meerkat/core';
import { afterEach, describe, expect, test } from 'vitest';
import { ConnectionClosed, Op, RawClient } from '../../../interop/harness/raw-client.ts';
import { OPEN_ACL, record } from '../../../interop/harness/record-builder.ts';
import { ServerError, TestServer, type TestServerOptions, TextLogger } from './index.ts';
import { openedSince, openResources } from './testing/open-resources.ts';

const EPHEMERAL = 1;
const NO_NODE = -101;
const NO_AUTH = -102;
const UNIMPLEMENTED = -6;
/** Event types and states of notifications. */
const NODE_DELETED = 2;

const servers: TestServer[] = [];
const clients: RawClient[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  for (const server of servers.splice(0)) await server.dispose();
});

async function start(options?: TestServerOptions): Promise<TestServer> {
  const server = await TestServer.start(options);
  servers.push(server);
  return server;
}

async function connect(server: TestServer, options?: Parameters<typeof RawClient.connect>[1]): Promise<RawClient> {
  const client = await RawClient.connect(server.port, options);
  clients.push(client);
  return client;
}

function createRequest(path: string, flags = 0, acl = OPEN_ACL): Buffer {
  return record().ustring(path).buffer('data').acls(acl).int(flags).build();
}

function pathAndWatch(path: string, watch = false): Buffer {
  return record().ustring(path).bool(watch).build();
}

async function create(client: RawClient, path: string, flags = 0): Promise<void> {
  await client.demand(Op.create, createRequest(path, flags));
}

async function exists(client: RawClient, path: string, watch = false): Promise<boolean> {
  const { error } = await client.request(Op.exists, pathAndWatch(path, watch));
  expect([0, NO_NODE]).toContain(error);
  return error === 0;
}

const STORAGES: readonly (readonly [string, TestServerOptions])[] = [
  ['in memory', {}],
  ['in a temporary directory', { storage: 'directory' }],
];

describe('a test server', () => {
  test.each(STORAGES)('serves clients on a port of 127.0.0.1, %s', async (_where, options) => {
    const server = await start(options);
    expect(server.connectString).toBe(`127.0.0.1:${server.port}`);
    expect(server.state).toBe('running');
    const client = await connect(server);
    await create(client, '/a');
    const { body } = await client.demand(Op.getData, pathAndWatch('/a'));
    expect(body.subarray(4, 8).toString()).toBe('data');
    expect(server.view.znodeCount).toBe(6);
  });

  test('twenty of them start at once in one process and know nothing of each other', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => start()));
    expect(new Set(all.map(({ port }) => port)).size).toBe(20);
    await Promise.all(all.map(async (server, i) => create(await connect(server), `/server-${i}`)));
    for (const [i, server] of all.entries()) {
      const client = await connect(server);
      expect(await exists(client, `/server-${i}`)).toBe(true);
      expect(await exists(client, `/server-${(i + 1) % 20}`)).toBe(false);
    }
  });

  test('gives sessions as short as 200 ms by default and expires them', async () => {
    const server = await start();
    const observer = await connect(server);
    const client = await connect(server, { timeoutMs: 200, isSilent: true });
    expect(client.timeoutMs).toBe(200);
    await create(client, '/e', EPHEMERAL);
    expect(await exists(observer, '/e', true)).toBe(true);
    await observer.waitForNotifications(1);
    expect(observer.notifications).toMatchObject([{ type: NODE_DELETED, path: '/e' }]);
    await client.closed;
  });

  test('takes the limits of session timeouts, core and server options, and the super user from its options', async () => {
    const server = await start({
      tickTimeMs: 20,
      sessionTimeoutMinMs: 5000,
      sessionTimeoutMaxMs: 6000,
      core: { connectionsPerHostMax: 2 },
      server: { fourLetterWordsAllowed: [] },
      // sha1 of super:secret, base64 (openssl dgst -sha1 -binary | base64).
      superDigest: 'super:lK75jTNcA+U9vtVEw5vB51mj/w4=',
    });
    const client = await connect(server, { timeoutMs: 10 });
    expect(client.timeoutMs).toBe(5000);
    expect((await connect(server, { timeoutMs: 60_000 })).timeoutMs).toBe(6000);
    await expect(connect(server)).rejects.toThrow();
    await client.demand(Op.create, createRequest('/closed', 0, [{ perms: 1, scheme: 'digest', id: 'ann:x' }]));
    expect((await client.request(Op.setData, setDataRequest('/closed'))).error).toBe(NO_AUTH);
    await client.auth('digest', 'super:secret');
    expect((await client.request(Op.setData, setDataRequest('/closed'))).error).toBe(0);
  });

  test('has TTL znodes where they are asked for', async () => {
    const request = Buffer.concat([createRequest('/ttl', 5), Buffer.from([0, 0, 0, 0, 0, 0, 0x27, 0x10])]);
    for (const extendedTypesEnabled of [false, true]) {
      const client = await connect(await start({ extendedTypesEnabled }));
      const { error } = await client.request(Op.createTTL, request);
      expect(error).toBe(extendedTypesEnabled ? 0 : UNIMPLEMENTED);
    }
  });

  test('tells its logger and its trace what happens', async () => {
    const lines: string[] = [];
    const events: TraceEvent[] = [];
    const server = await start({
      logger: new TextLogger('info', (line) => lines.push(line)),
      trace: { emit: (event) => events.push(event) },
    });
    const client = await connect(server);
    expect(events).toContainEqual(expect.objectContaining({ kind: 'session-created', sessionId: client.sessionId }));
    expect(lines.length).toBeGreaterThan(0);
  });

  test('lists its sessions with timeouts, addresses and ephemerals', async () => {
    const server = await start();
    expect(server.sessions()).toEqual([]);
    const client = await connect(server, { timeoutMs: 3000 });
    await create(client, '/e', EPHEMERAL);
    expect(server.sessions()).toEqual([
      {
        id: client.sessionId,
        timeoutMs: 3000,
        address: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
        ephemerals: ['/e'],
      },
    ]);
    client.destroy();
    await expect.poll(() => server.sessions()[0]?.address).toBeNull();
    expect(server.sessions()).toHaveLength(1);
  });

  test('a port in use is reported in words, and leaves nothing behind', async () => {
    const server = await start();
    const before = temporaryDirectories();
    await expect(TestServer.start({ port: server.port, storage: 'directory' })).rejects.toThrow(
      `cannot listen on 127.0.0.1:${server.port}: it is in use`,
    );
    expect(temporaryDirectories()).toEqual(before);
  });
});

describe('expireSession', () => {
  test('ends the session through the log: ephemerals go, watches fire, the connection closes', async () => {
    const events: TraceEvent[] = [];
    const server = await start({ trace: { emit: (event) => events.push(event) } });
    const observer = await connect(server);
    const client = await connect(server);
    await create(client, '/e', EPHEMERAL);
    expect(await exists(observer, '/e', true)).toBe(true);
    await server.expireSession(client.sessionId);
    expect(server.sessions().map(({ id }) => id)).toEqual([observer.sessionId]);
    await client.closed;
    expect(await exists(observer, '/e')).toBe(false);
    expect(observer.notifications).toMatchObject([{ type: NODE_DELETED, path: '/e' }]);
    expect(events.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['session-expired', 'session-closed']));
    await expect(connect(server, client.credentials)).rejects.toThrow('it is expired or unknown');
    await server.restart();
    expect(server.sessions().map(({ id }) => id)).toEqual([observer.sessionId]);
  });

  test('ends a session whose client is not connected', async () => {
    const server = await start();
    const client = await connect(server);
    client.destroy();
    await client.closed;
    await server.expireSession(client.sessionId);
    expect(server.sessions()).toEqual([]);
  });

  test('a session that does not live is an error that names those that do', async () => {
    const server = await start();
    await expect(server.expireSession(0x17n)).rejects.toThrow('the server has no session 0x17: it has none');
    const { sessionId } = await connect(server);
    await expect(server.expireSession(0x17n)).rejects.toThrow(`it has 0x${sessionId.toString(16)}`);
  });

  test('several at once, and twice the same one, are all answered', async () => {
    const server = await start();
    const ids = await Promise.all(Array.from({ length: 5 }, async () => (await connect(server)).sessionId));
    await Promise.all([...ids, ...ids].map((id) => server.expireSession(id)));
    expect(server.sessions()).toEqual([]);
  });
});

describe('stop, kill and restart', () => {
  test.each(STORAGES)('data and sessions survive a restart on the same port, %s', async (_where, options) => {
    const server = await start(options);
    const { port } = server;
    const client = await connect(server);
    await create(client, '/a');
    await create(client, '/e', EPHEMERAL);
    await server.restart();
    expect(server.port).toBe(port);
    await client.closed;
    const back = await connect(server, client.credentials);
    expect(back.sessionId).toBe(client.sessionId);
    expect(await exists(back, '/a')).toBe(true);
    expect(await exists(back, '/e')).toBe(true);
  });

  test.each(STORAGES)('what was acknowledged survives a kill, %s', async (_where, options) => {
    const server = await start(options);
    const client = await connect(server);
    for (let round = 0; round < 5; round++) {
      const writer = round === 0 ? client : await connect(server);
      let acknowledged = 0;
      const writes = Array.from({ length: 50 }, async (_, i) => {
        await writer.demand(Op.create, createRequest(`/${round}-${i}`));
        acknowledged = i + 1;
        if (i === 25) void server.kill();
      });
      const outcomes = await Promise.allSettled(writes);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(ConnectionClosed);
      }
      await server.kill();
      expect(server.state).toBe('stopped');
      await server.restart();
      const reader = await connect(server);
      for (let i = 0; i < acknowledged; i++) expect(await exists(reader, `/${round}-${i}`)).toBe(true);
    }
  });

  test.each(STORAGES)('a restart waits for a kill that was not awaited, %s', async (_where, options) => {
    const server = await start(options);
    const client = await connect(server);
    for (let i = 0; i < 10; i++) {
      const writer = i === 0 ? client : await connect(server);
      const created = create(writer, `/${i}`).catch(() => {});
      void server.kill();
      await server.restart();
      await created;
    }
    void server.kill();
    await server.dispose();
  });

  test('a kill that loses what was not synced keeps what was acknowledged', async () => {
    const server = await start();
    const client = await connect(server);
    await create(client, '/a');
    await server.kill({ losesUnsynced: true });
    await server.restart();
    const back = await connect(server, client.credentials);
    expect(await exists(back, '/a')).toBe(true);
    const onFiles = await start({ storage: 'directory' });
    await expect(onFiles.kill({ losesUnsynced: true })).rejects.toThrow('only storage in memory can lose');
  });

  test('while it is stopped there is no listener, and what is asked of it says so', async () => {
    const server = await start();
    const { port } = server;
    await server.stop();
    await server.stop();
    expect(server.state).toBe('stopped');
    await expect(RawClient.connect(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    expect(() => server.sessions()).toThrow(`the server on 127.0.0.1:${port} is stopped: restart it first`);
    await expect(server.expireSession(1n)).rejects.toThrow('restart it first');
    expect(() => server.pause()).toThrow('restart it first');
    await server.restart();
    await connect(server);
  });

  test('a stop answers what is in flight', async () => {
    const server = await start();
    const client = await connect(server);
    await client.ping();
    const writes = Array.from({ length: 100 }, (_, i) => client.request(Op.create, createRequest(`/n-${i}`)));
    await writes[0];
    await server.stop();
    const outcomes = await Promise.allSettled(writes);
    const answered = outcomes.filter((outcome) => outcome.status === 'fulfilled').length;
    await server.restart();
    const reader = await connect(server);
    for (let i = 0; i < answered; i++) expect(await exists(reader, `/n-${i}`)).toBe(true);
    expect(await exists(reader, `/n-${answered}`)).toBe(false);
  });

  test('a directory of one’s own is kept, and another server takes it over', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'meerkat-own-'));
    try {
      const first = await start({ storage: { directory } });
      expect(first.directory).toBe(directory);
      await create(await connect(first), '/a');
      await expect(TestServer.start({ storage: { directory } })).rejects.toThrow('in use by another server');
      await first.dispose();
      const second = await start({ storage: { directory } });
      expect(await exists(await connect(second), '/a')).toBe(true);
      await second.dispose();
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});

describe('disposal', () => {
  test('await using stops the server and removes its temporary directory', async () => {
    let directory = '';
    let port = 0;
    {
      await using server = await TestServer.start({ storage: 'directory' });
      directory = server.directory ?? '';
      ({ port } = server);
      expect(readdirSync(directory)).toContain('version-2');
    }
    expect(existsSync(directory)).toBe(false);
    await expect(RawClient.connect(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('a second one does nothing, a stop either; everything else is an error', async () => {
    const server = await TestServer.start();
    expect(server.directory).toBeNull();
    await server.dispose();
    await server.dispose();
    await server.stop();
    expect(server.state).toBe('disposed');
    await expect(server.restart()).rejects.toThrow('the server has been disposed of');
    await expect(server.kill()).rejects.toThrow('the server has been disposed of');
    expect(() => server.view).toThrow('the server has been disposed of');
  });

  test('a hundred servers started and disposed of leave no handle and no file open', async () => {
    const cycle = async (options: TestServerOptions): Promise<void> => {
      await using server = await TestServer.start(options);
      const client = await RawClient.connect(server.port);
      await create(client, '/a');
      client.destroy();
      await client.closed;
    };
    await cycle({});
    await cycle({ storage: 'directory' });
    const before = openResources();
    for (let i = 0; i < 100; i++) await cycle(i % 5 === 0 ? { storage: 'directory' } : {});
    await expect.poll(() => openedSince(before)).toEqual({});
  });
});

describe('a failure of the server', () => {
  /** Throws in the middle of the core, as a failed assertion does, when a client has got a session. */
  function failing(): TestServerOptions {
    let isArmed = true;
    return {
      trace: {
        emit({ kind }) {
          if (kind !== 'session-expired' || !isArmed) return;
          isArmed = false;
          throw new Error('invariant violated');
        },
      },
    };
  }

  test.each(STORAGES)(
    'rejects what is pending and what comes, and the rest of the process lives on, %s',
    async (_where, storage) => {
      const other = await start();
      const server = await start({ ...storage, ...failing() });
      const client = await connect(server);
      await create(client, '/a');
      const { failed } = server;
      await expect(server.expireSession(client.sessionId)).rejects.toThrow('invariant violated');
      await client.closed;
      const failure = await failed;
      expect(failure).toBeInstanceOf(ServerError);
      expect(server.state).toBe('failed');
      await expect(server.stop()).rejects.toBe(failure);
      expect(() => server.sessions()).toThrow(failure);
      await create(await connect(other), '/a');

      await server.restart();
      expect(server.state).toBe('running');
      expect(await exists(await connect(server), '/a')).toBe(true);
    },
  );

  test('rejects a start', async () => {
    const trace = {
      emit(event: TraceEvent): void {
        if (event.kind === 'recovered') throw new Error('no start');
      },
    };
    await expect(TestServer.start({ trace })).rejects.toThrow('no start');
  });

  test('a failure is reported when the server is disposed of, unless it was reported before', async () => {
    const untold = await TestServer.start({ tickTimeMs: 10, ...failing() });
    // Only the server itself learns of this expiry; it may close the connection of a silent client before.
    await connect(untold, { timeoutMs: 20, isSilent: true });
    await expect.poll(() => untold.state).toBe('failed');
    await expect(untold.dispose()).rejects.toThrow('invariant violated');
    await untold.dispose();

    const started = await TestServer.start(failing());
    await expect(started.expireSession((await connect(started)).sessionId)).rejects.toThrow('invariant violated');
    await started.dispose();
  });
});

function setDataRequest(path: string): Buffer {
  return record().ustring(path).buffer('new').int(-1).build();
}

function temporaryDirectories(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith('meerkat-test-'));
}
