import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, connect as connectClient, text } from '@meerkat/client';
import type { TraceEvent } from '@meerkat/core';
import { afterEach, describe, expect, test } from 'vitest';
import { TestEnsemble, type TestEnsembleOptions, type TestServer } from './index.ts';
import { openedSince, openResources } from './testing/open-resources.ts';

/** A silent server is dropped after a second: short for a test, and longer than a busy machine stalls a server. */
const BRIEF_TICK_MS = 200;

const ensembles: TestEnsemble[] = [];
const clients: Client[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close().catch(() => {});
  for (const ensemble of ensembles.splice(0)) await ensemble.dispose();
});

/** Waits for a value, for as long as a busy machine may take. */
function eventually<T>(value: () => T): ReturnType<typeof expect.poll<T>> {
  return expect.poll(value);
}

async function start(options?: TestEnsembleOptions): Promise<TestEnsemble> {
  const ensemble = await TestEnsemble.start(options);
  ensembles.push(ensemble);
  return ensemble;
}

async function connect(to: { readonly connectString: string }, sessionTimeoutMs = 20_000): Promise<Client> {
  const client = await connectClient(to.connectString, { sessionTimeoutMs, connectTimeoutMs: 20_000 });
  clients.push(client);
  return client;
}

async function read(client: Client, path: string): Promise<string> {
  await client.sync('/');
  return (await client.get(path, { codec: text })).data;
}

/** Writes until a write is acknowledged: what fails because there was no leader in that moment is tried again. */
async function writeAtLast(client: Client, path: string): Promise<void> {
  for (;;) {
    try {
      await client.create(path, 'written');
      return;
    } catch (error) {
      if ((error as { code?: string }).code === 'NODEEXISTS') return;
      if (!['CONNECTIONLOSS', 'OPERATIONTIMEOUT'].includes((error as { code?: string }).code ?? '')) throw error;
    }
  }
}

describe('a test ensemble', () => {
  test('has a leader and followers that all serve once it has started, and takes writes through each', async () => {
    const ensemble = await start();
    expect(ensemble.servers.map(({ state }) => state)).toEqual(['running', 'running', 'running']);
    expect(ensemble.followers).toHaveLength(2);
    expect(ensemble.observers).toEqual([]);
    expect(new Set([ensemble.leader, ...ensemble.followers])).toEqual(new Set(ensemble.servers));
    for (const [i, server] of ensemble.servers.entries()) {
      const client = await connect(server);
      await client.create(`/n-${i}`, `through server ${i + 1}`);
    }
    for (const server of ensemble.servers) {
      const client = await connect(server);
      for (let i = 0; i < 3; i++) expect(await read(client, `/n-${i}`)).toBe(`through server ${i + 1}`);
    }
  });

  test('has observers that serve and do not vote', async () => {
    const ensemble = await start({ servers: 1, observers: 2 });
    expect(ensemble.servers).toHaveLength(3);
    expect(ensemble.leader).toBe(ensemble.server(1));
    expect(ensemble.observers).toEqual([ensemble.server(2), ensemble.server(3)]);
    const client = await connect(ensemble.server(3));
    await client.create('/a', 'through an observer');
    expect(await read(await connect(ensemble.leader), '/a')).toBe('through an observer');
  });

  test('gives its logger and trace by server, and takes the options of its servers', async () => {
    const roles = new Map<number, string>();
    const ensemble = await start({
      tickTimeMs: 50,
      core: { connectionsPerHostMax: 7 },
      trace: (id) => ({
        emit: (event: TraceEvent) => void (event.kind === 'role-changed' && roles.set(id, event.role)),
      }),
    });
    expect([...roles.values()].sort()).toEqual(['following', 'following', 'leading']);
    expect(roles.get(ensemble.idOf(ensemble.leader))).toBe('leading');
    const client = await connect(ensemble, 1);
    expect(client.session?.timeoutMs).toBe(100);
  });

  test('says in words what it does not have', async () => {
    await expect(TestEnsemble.start({ servers: 0 })).rejects.toThrow('1 or more servers that vote, not 0');
    const ensemble = await start();
    expect(() => ensemble.server(4)).toThrow('the ensemble has no server 4: it has 1 to 3');
    expect(() => ensemble.partition([1], [1, 2])).toThrow('server 1 is in two groups');
    await expect(ensemble.expireSession(0x17n)).rejects.toThrow('no session 0x17: it has none');
    await ensemble.kill();
    expect(() => ensemble.leader).toThrow(/no server leads at the moment.*server 1 is stopped/);
    await expect(ensemble.whenServing()).rejects.toThrow('server 3 is stopped');
    await ensemble.server(1).restart();
    await expect(ensemble.whenServing({ waitMs: 20 })).rejects.toThrow(
      'waited 20 ms for a leader: server 1 looks for a leader',
    );
  });
});

describe('deaths', () => {
  test('a client continues with the same session when the leader is killed', async () => {
    const ensemble = await start();
    const client = await connect(ensemble);
    const session = client.session?.id;
    await client.create('/before', '');
    await client.create('/alive', '', { mode: 'ephemeral' });
    const dead = ensemble.leader;
    await dead.kill();
    const successor = await ensemble.whenServing();
    expect(successor).not.toBe(dead);
    await writeAtLast(client, '/after');
    expect(client.session?.id).toBe(session);
    expect(await client.exists('/alive')).not.toBeNull();

    await dead.restart();
    expect(await ensemble.whenWhole()).toBe(successor);
    expect(ensemble.followers).toContain(dead);
    expect(await read(await connect(dead), '/after')).toBe('written');
  });

  test('one server of three alone serves no client, and does so again with a second one', async () => {
    const ensemble = await start();
    const [last, ...others] = ensemble.servers as [TestServer, TestServer, TestServer];
    await Promise.all(others.map((server) => server.kill()));
    await eventually(() => last.view.isServing).toBe(false);
    expect(() => ensemble.leader).toThrow('no server leads');
    await others[0].restart();
    await ensemble.whenWhole();
    await (await connect(ensemble)).create('/a');
  });

  test.each(['memory', 'directory'] as const)(
    'data and sessions survive a restart of all, storage: %s',
    async (storage) => {
      const ensemble = await start({ storage });
      const client = await connect(ensemble);
      const session = client.session?.id;
      await client.create('/a', 'kept');
      await client.create('/e', '', { mode: 'ephemeral' });
      const { connectString } = ensemble;
      await ensemble.restart();
      expect(ensemble.connectString).toBe(connectString);
      const reader = await connect(ensemble);
      expect(await read(reader, '/a')).toBe('kept');
      await writeAtLast(client, '/b');
      expect(client.session?.id).toBe(session);
      await ensemble.kill();
      await ensemble.restart();
      for (const server of ensemble.servers) {
        expect((await connect(server).then((each) => each.children('/'))).children.toSorted()).toEqual([
          'a',
          'b',
          'e',
          'zookeeper',
        ]);
      }
    },
  );

  test('a leader that hangs is replaced, and follows when it continues', async () => {
    const ensemble = await start({ tickTimeMs: BRIEF_TICK_MS });
    const hanging = ensemble.leader;
    hanging.pause();
    const others = ensemble.servers.filter((server) => server !== hanging);
    const successor = await ensemble.whenServing();
    expect(others).toContain(successor);
    await (await connect(successor)).create('/a', 'meanwhile');
    hanging.resume();
    await eventually(() => ensemble.followers.includes(hanging)).toBe(true);
    expect(await read(await connect(hanging), '/a')).toBe('meanwhile');
  });
});

describe('partitions', () => {
  test('a leader without the others refuses writes; the others continue, and it follows after heal', async () => {
    const ensemble = await start({ tickTimeMs: BRIEF_TICK_MS });
    const old = ensemble.leader;
    const others = ensemble.servers.filter((server) => server !== old);
    const inside = await connect(old);
    await inside.create('/before', '');
    ensemble.partition([old], others);
    expect(() => ensemble.leader).toThrow('no server leads at the moment');
    // Never committed: no other client learns of it.
    const lost = inside.create('/lost', '').then(
      () => 'acknowledged',
      (error: { outcome?: string }) => error.outcome,
    );
    await eventually(() => old.view.isServing).toBe(false);
    const successor = await ensemble.whenServing();
    expect(others).toContain(successor);
    expect(await lost).toBe('unknown');
    const outside = await connect({ connectString: others.map((server) => server.connectString).join(',') });
    await outside.create('/during', 'written');
    expect(old.view.isServing).toBe(false);

    ensemble.heal();
    await ensemble.whenWhole();
    expect(ensemble.followers).toContain(old);
    const back = await connect(old);
    expect(await read(back, '/during')).toBe('written');
    expect((await back.children('/')).children).not.toContain('lost');
  });

  test('a cut is silent, and a short one loses nothing', async () => {
    const ensemble = await start({ syncLimit: 600 });
    const { leader } = ensemble;
    const [follower, other] = ensemble.followers as [TestServer, TestServer];
    const client = await connect(follower);
    ensemble.isolate(follower);
    const write = client.create('/a', 'held back');
    await (await connect(leader)).create('/b', 'written');
    await (await connect(other)).create('/c', 'written');
    const reader = await connect(other);
    expect((await reader.children('/')).children.toSorted()).toEqual(['b', 'c', 'zookeeper']);
    // A session is a txn too.
    const behind = await connectClient({ servers: follower.connectString }, { connectTimeoutMs: 100 }).catch(
      () => null,
    );
    expect(behind).toBeNull();
    expect(follower.view.isServing).toBe(true);
    ensemble.heal();
    await write;
    expect(ensemble.leader).toBe(leader);
    expect((await client.children('/')).children.toSorted()).toEqual(['a', 'b', 'c', 'zookeeper']);
  });

  test('a cut holds for servers that restart behind it, and a new one replaces it', async () => {
    const ensemble = await start({ tickTimeMs: BRIEF_TICK_MS, servers: 5 });
    ensemble.partition([1, 2], [3, 4, 5]);
    await Promise.all([1, 2, 3].map((id) => ensemble.server(id).restart()));
    await eventually(() => [3, 4, 5].every((id) => ensemble.server(id).view.isServing)).toBe(true);
    expect([1, 2].map((id) => ensemble.server(id).view.isServing)).toEqual([false, false]);
    ensemble.isolate(5);
    await eventually(() => [1, 2, 3, 4].every((id) => ensemble.server(id).view.isServing)).toBe(true);
    await eventually(() => ensemble.server(5).view.isServing).toBe(false);
    ensemble.heal();
    await ensemble.whenWhole();
  });

  test('a process that stands still for longer than a server may be silent costs no leader and no connection', async () => {
    const ensemble = await start();
    const client = await connect(ensemble.followers[0]!);
    const epochs = new Set<bigint>();
    for (let i = 0; i < 4; i++) {
      for (const endMs = performance.now() + 1000; performance.now() < endMs; );
      const { stat } = await client.create(`/${i}`);
      epochs.add(stat.czxid >> 32n);
    }
    expect([...epochs]).toEqual([1n]);
  });

  test('servers stop, are killed and disposed of behind a cut', async () => {
    const ensemble = await start({ tickTimeMs: BRIEF_TICK_MS });
    const { leader } = ensemble;
    ensemble.isolate(leader);
    await leader.stop();
    await ensemble.whenServing();
    await leader.restart();
    await ensemble.leader.kill();
    await ensemble.dispose();
    expect(ensemble.servers.map(({ state }) => state)).toEqual(['disposed', 'disposed', 'disposed']);
  });
});

describe('expireSession', () => {
  test('ends a session at all servers, regardless of which one its client is connected to', async () => {
    const ensemble = await start();
    const client = await connect(ensemble.followers[0]!);
    await client.create('/e', '', { mode: 'ephemeral' });
    const id = client.session?.id ?? 0n;
    await eventually(() => ensemble.sessions()).toEqual([
      { id, timeoutMs: 20_000, address: expect.stringMatching(/^127\.0\.0\.1:\d+$/), ephemerals: ['/e'] },
    ]);
    const { lostSignal } = client;
    await ensemble.expireSession(id);
    for (const server of ensemble.servers) expect(server.view.ephemeralCount).toBe(0);
    expect(ensemble.sessions()).toEqual([]);
    await eventually(() => lostSignal.aborted).toBe(true);
  });
});

describe('disposal', () => {
  test('await using stops all servers and removes their temporary directories', async () => {
    let directories: readonly string[] = [];
    {
      await using ensemble = await TestEnsemble.start({ storage: 'directory' });
      directories = ensemble.servers.map(({ directory }) => directory ?? '');
      for (const directory of directories) expect(readdirSync(directory)).toContain('version-2');
    }
    expect(directories.map((directory) => existsSync(directory))).toEqual([false, false, false]);
  });

  test('a directory of one’s own has one for each server, and is kept', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'meerkat-own-'));
    try {
      const ensemble = await start({ storage: { directory } });
      await (await connect(ensemble)).create('/a', 'kept');
      await ensemble.dispose();
      expect(readdirSync(directory).sort()).toEqual(['1', '2', '3']);
      expect(await read(await connect(await start({ storage: { directory } })), '/a')).toBe('kept');
    } finally {
      for (const ensemble of ensembles.splice(0)) await ensemble.dispose();
      rmSync(directory, { recursive: true, force: true });
    }
  });

  test('twenty ensembles started, cut, killed and disposed of leave no handle and no file open', async () => {
    const cycle = async (i: number): Promise<void> => {
      await using ensemble = await TestEnsemble.start({ storage: i % 5 === 0 ? 'directory' : 'memory' });
      if (i % 2 === 0) ensemble.isolate(1);
      if (i % 3 === 0) await ensemble.server(2).kill();
    };
    await cycle(0);
    await cycle(1);
    await eventually(() => openResources().get('TCPServerWrap') ?? 0).toBe(0);
    const before = openResources();
    await Promise.all(Array.from({ length: 20 }, (_, i) => cycle(i)));
    await eventually(() => openedSince(before)).toEqual({});
  });
});

test('a member that fails by a mistake of its own fails alone', async () => {
  let isArmed = false;
  const ensemble = await start({
    trace: (id) => ({
      emit({ kind }): void {
        if (id === 2 && isArmed && kind === 'connection-opened') throw new Error('invariant violated');
      },
    }),
  });
  isArmed = true;
  const { failed } = ensemble.server(2);
  await connectClient(ensemble.server(2).connectString, { connectTimeoutMs: 50 }).catch(() => {});
  expect((await failed).message).toBe('invariant violated');
  expect(ensemble.server(2).state).toBe('failed');
  await ensemble.whenWhole();
  await (await connect(ensemble)).create('/a');
  isArmed = false;
  await ensemble.server(2).restart();
  await ensemble.whenWhole();
  expect(ensemble.servers.map(({ state }) => state)).toEqual(['running', 'running', 'running']);
});
