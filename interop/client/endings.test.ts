import { AbortedError, type Client, ClosedError, connect } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Random } from '../differential/random.ts';
import { EventLog } from './event-log.ts';
import { QUICK } from './fault-site.ts';
import { errorOf, type Outcome, outcomeOf } from './outcome.ts';
import { StateLog } from './state-log.ts';
import { WriteLedger } from './write-ledger.ts';

let server: TestServer;
let proxy: TcpProxy;
let observer: Client;
beforeAll(async () => {
  server = await TestServer.start({ tickTimeMs: 50 });
  observer = await connect(server.connectString, { sessionTimeoutMs: 60_000 });
  await observer.create('/writes');
});
afterAll(async () => {
  await observer.close();
  await server.dispose();
});
beforeEach(async () => {
  proxy = await TcpProxy.start({ target: server.port });
});
afterEach(() => proxy.stop());

/** What a client may be doing when it is closed; each is set up before `close` is called. */
const MOMENTS: Readonly<Record<string, (client: Client, states: StateLog) => Promise<unknown>>> = {
  'while nothing continues': async () => {},
  'while the connection is cut': async () => void proxy.cut(),
  'while suspended': async (_client, states) => {
    await proxy.refuse();
    await proxy.cut();
    await states.until('suspended');
  },
  'while a connection is being made': async (_client, states) => {
    proxy.freeze();
    await proxy.cut();
    await states.until('suspended');
  },
  'while lost': async (_client, states) => {
    proxy.freeze();
    await states.until('lost');
  },
  'while the server says nothing': async () => proxy.freeze(),
  'while replies do not arrive': async () => proxy.freeze('toClient'),
  'while moving to another server': async (client) => void outcomeOf(client.moveTo()),
  'while the session expires': async (client) => void server.expireSession(client.session!.id).catch(() => {}),
  'while credentials are refused': async (client) => void outcomeOf(client.addAuth('nonsense', '')),
  'while it is detached': async (client) => void outcomeOf(client.detach()),
  'while it is closed already': async (client) => void client.close(),
};

describe('close', () => {
  for (const [moment, bringAbout] of Object.entries(MOMENTS)) {
    test(`${moment} settles every pending operation`, async () => {
      const client = await connect(proxy.connectString, { sessionTimeoutMs: 400, backOff: QUICK });
      const states = new StateLog(client);
      const ledger = new WriteLedger(client, await freshParent());
      const id = client.session!.id;
      const { changed } = await client.exists('/writes/never', { watch: true });
      const stream = client.watch('/writes', { recursive: true });
      const events = new EventLog(stream);
      await stream.ready;
      const observation = client.observe('/writes/never');
      await observation.ready;
      const waiting = (async () => {
        for await (const { exists } of observation) if (exists) return;
      })();
      const whenNext = outcomeOf((async () => client.whenConnected())());

      const pending: Promise<Outcome<unknown>>[] = [];
      const ask = (): void => {
        void ledger.write();
        pending.push(
          outcomeOf(client.get('/writes')),
          outcomeOf(client.get('/writes', { read: 'linearizable', watch: true })),
          outcomeOf(client.ping()),
          outcomeOf(client.sync()),
          outcomeOf(client.addAuth('digest', 'a:b')),
          outcomeOf(client.moveTo()),
          outcomeOf(client.watch('/writes').ready),
        );
        void ledger.write();
      };
      ask();
      await bringAbout(client, states);
      ask();
      const closed = [client.close(), client.close({ timeoutMs: 50 })];
      ask();
      await Promise.all(closed);
      ask();

      // The refused credentials may have ended the client first.
      expect(['closed', 'auth-failed']).toContain(client.state);
      for (const outcome of await Promise.all(pending)) {
        if (!outcome.ok) expect(outcome.error.message).not.toBe('');
      }
      await ledger.settled();
      await waiting.catch((error: Error) => expect(error.name).toBe('AuthFailedError'));
      await whenNext;
      expect(['CLOSED', 'AUTHFAILED']).toContain((await errorOf(changed)).code);
      while (!events.isOver) await new Promise((resolve) => setImmediate(resolve));
      expect(client.lostSignal.aborted).toBe(true);
      expect(['closed', 'auth-failed']).toContain(states.states.at(-1));
      await ledger.check(observer);
      // The session and its connections end, even if the closeSession request was lost.
      await proxy.stop();
      while (server.sessions().some((session) => session.id === id))
        await new Promise((resolve) => setTimeout(resolve, 10));
    });
  }

  test('does not wait longer than its timeout for a server that does not answer', async () => {
    const client = await connect(proxy.connectString, { sessionTimeoutMs: 60_000 });
    const write = outcomeOf(client.create('/writes/none'));
    await write;
    proxy.freeze();
    const read = outcomeOf(client.get('/'));
    const sent = outcomeOf(client.set('/writes/none', ''));
    await client.close({ timeoutMs: 20 });
    expect(client.state).toBe('closed');
    expect(await read).toMatchObject({ error: { code: 'CLOSED', outcome: 'not-applied' } });
    expect(await sent).toMatchObject({ error: { code: 'CLOSED', outcome: 'unknown' } });
  });

  test('is called on leaving a block with `await using`', async () => {
    let client: Client;
    {
      await using used = await connect(server.connectString);
      client = used;
      await used.create('/block', '', { mode: 'ephemeral' });
    }
    expect(client.state).toBe('closed');
    expect(await observer.exists('/block')).toBeNull();
  });
});

describe('signals', () => {
  test('aborted at any moment do not affect the client or the order of its requests', async () => {
    const random = new Random(42);
    await using client = await connect(proxy.connectString, { sessionTimeoutMs: 60_000, backOff: QUICK });
    const ledger = new WriteLedger(client, await freshParent());
    const reads: Promise<Outcome<unknown>>[] = [];
    let lastVersion = 0;
    for (let round = 0; round < 400; round++) {
      const controller = new AbortController();
      const { signal } = controller;
      const moment = random.below(6);
      if (moment === 0) controller.abort();
      for (let i = 0; i < 5; i++) {
        void ledger.write(random.oneIn(2) ? { signal } : {});
        reads.push(
          outcomeOf(client.get('/writes', { signal })),
          outcomeOf(client.get('/writes', { signal, read: 'linearizable', timeoutMs: random.below(20) })),
          outcomeOf(client.children('/writes', { signal, watch: true })),
        );
      }
      if (moment === 1) controller.abort();
      if (moment === 2) queueMicrotask(() => controller.abort());
      if (moment === 3) setImmediate(() => controller.abort());
      if (moment === 4) setTimeout(() => controller.abort(), random.below(4));
      if (round % 40 === 7) await proxy.cut();
      if (round % 10 !== 0) continue;
      // A request gets its own reply, although requests around it were aborted.
      const stat = await setOnce(client, lastVersion);
      expect(stat).toBe(lastVersion + 1);
      lastVersion = stat;
    }
    for (const outcome of await Promise.all(reads)) {
      if (!outcome.ok) expect(['ABORTED', 'TIMEOUT', 'CONNECTIONLOSS']).toContain(outcome.error.code);
    }
    await ledger.settled();
    for (const error of ledger.errors) expect(['ABORTED', 'CONNECTIONLOSS']).toContain(error.code);
    await ledger.check(observer);
  });

  test('end a wait for a connection, and nothing else', async () => {
    await using client = await connect(proxy.connectString, { sessionTimeoutMs: 60_000, backOff: QUICK });
    const states = new StateLog(client);
    await proxy.refuse();
    await proxy.cut();
    await states.until('suspended');
    const controller = new AbortController();
    const { signal } = controller;
    const given = [client.whenConnected({ signal }), client.moveTo(null, { signal }), client.get('/', { signal })];
    const errors = Promise.all(given.map(errorOf));
    const kept = client.get('/');
    const iterated = (async () => {
      for await (const _ of client.states({ signal }));
    })();
    controller.abort();
    for (const error of await errors) expect(error).toBeInstanceOf(AbortedError);
    await iterated;
    await proxy.accept();
    await kept;
    expect(client.state).toBe('connected');
  });
});

describe('a closed client', () => {
  test('rejects late calls of every method with ClosedError', async () => {
    const client = await connect(server.connectString);
    await client.close();
    const late = [
      client.create('/a'),
      client.createParents('/a/b'),
      client.createProtected('/a'),
      client.ensurePath('/a'),
      client.set('/a', ''),
      client.setIdempotent('/a', '', { version: 0 }),
      client.update('/a', (data) => data),
      client.delete('/a'),
      client.deleteIdempotent('/a', { version: 0 }),
      client.deleteRecursive('/a'),
      client.get('/a'),
      client.get('/a', { read: 'linearizable' }),
      client.exists('/a'),
      client.children('/a'),
      client.descendantCount('/a'),
      client.ephemerals(),
      client.getAcl('/a'),
      client.setAcl('/a', []),
      client.sync(),
      client.ping(),
      client.whoAmI(),
      client.addAuth('digest', 'a:b'),
      client.config(),
      client.reconfig({ leaving: [1] }),
      client.checkWatches('/a', 'any'),
      client.removeWatches('/a', 'any'),
      client.transaction().create('/a').commit(),
      client.multiRead().get('/a').run(),
      client.whenConnected(),
      client.moveTo(),
      client.detach(),
      client.watch('/a').ready,
      client.observe('/a').ready,
    ];
    for (const outcome of await Promise.all(late.map((each) => outcomeOf<unknown>(each)))) {
      expect(outcome).toMatchObject({ error: expect.any(ClosedError) });
      expect(outcome).toMatchObject({ error: { outcome: 'not-applied' } });
    }
  });
});

let parents = 0;

async function freshParent(): Promise<string> {
  const path = `/writes-${++parents}`;
  await observer.create(path);
  return path;
}

/** Sets data on a known version, across lost connections. @returns the new version */
async function setOnce(client: Client, version: number): Promise<number> {
  for (;;) {
    const outcome = await outcomeOf(client.set('/writes', '', { version }));
    if (outcome.ok) return outcome.value.version;
    if (outcome.error.code === 'BADVERSION') return (await client.get('/writes')).stat.version;
    expect(outcome.error.code).toBe('CONNECTIONLOSS');
  }
}
