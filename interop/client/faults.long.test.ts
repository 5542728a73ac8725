import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ClientState, ClosedError, connect, SessionLostError } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';
import { assert, describe, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS } from '../harness/server-process.ts';
import { EventLog } from './event-log.ts';
import { FaultSite, QUICK } from './fault-site.ts';
import { errorOf, type Outcome, outcomeOf } from './outcome.ts';
import { StateLog } from './state-log.ts';
import { WriteLedger } from './write-ledger.ts';

/** A very short session: suspended after 400 ms of silence, lost after 600. */
const SHORT = { sessionTimeoutMs: 600 } as const;

for (const kind of SERVER_KINDS) {
  describeWith(kind === 'apache' ? ['apache'] : [], `a client whose ${kind} server fails`, () => {
    test('and comes back: the session continues, with all its znodes, watches and acknowledged writes', async () => {
      await using site = await FaultSite.start(kind, { sessionTimeoutMs: 60_000, attemptTimeoutMs: 1000 });
      // Apache's server never answers a connection that arrives during its start: that attempt has to time out.
      const { client, server, states } = site;
      await client.create('/ephemeral', '', { mode: 'ephemeral' });
      await client.create('/writes');
      await client.create('/watched');
      const id = client.session?.id;
      const { lostSignal } = client;
      await using stream = client.watch('/watched');
      const events = new EventLog(stream);
      await stream.ready;
      const ledger = new WriteLedger(client, '/writes');
      const rounds = kind === 'meerkat' ? 6 : 2;
      for (let round = 0; round < rounds; round++) {
        const { stat, changed } = await client.get('/watched', { watch: true });
        const reads: Promise<unknown>[] = [];
        const load = keepWriting(ledger, () => reads.push(client.get('/ephemeral')));
        await load.progress(50 + 37 * round);
        if (round % 2 === 0) await server.stop();
        else await server.kill();
        await states.until('suspended');
        await load.progress(20);
        await server.restart();
        expect(await states.until('connected')).toMatchObject({ sameSession: true, sessionId: id });
        await load.progress(50);
        await load.stop();
        // No read has failed because of a lost connection.
        await Promise.all(reads);
        await site.observer.whenConnected();
        expect((await site.observer.set('/watched', 'x', { version: stat.version })).version).toBe(stat.version + 1);
        expect(await changed).toMatchObject({ type: 'changed', path: '/watched' });
        await events.until(({ type }) => type === 'gap');
        await events.until(({ type }) => type === 'changed');
        events.events.length = 0;
      }
      expect(await client.ephemerals()).toEqual(['/ephemeral']);
      expect(lostSignal.aborted).toBe(false);
      for (const { code } of ledger.errors) expect(code).toBe('CONNECTIONLOSS');
      await ledger.check(site.observer);
      expect(ledger.count('acknowledged')).toBeGreaterThan(100 * rounds);
    });

    test('to answer: suspended, lost, and a new session once a server answers again', async () => {
      // On a busy machine the server may answer later than a short session timeout.
      await using site = await FaultSite.start(kind, kind === 'apache' ? { sessionTimeoutMs: 4000 } : SHORT);
      const { client, observer, proxy, states } = site;
      await client.create('/ephemeral', '', { mode: 'ephemeral' });
      await client.create('/data', '0');
      const before = client.session;
      const { lostSignal } = client;
      const own = await client.exists('/ephemeral', { watch: true });
      const data = await client.get('/data', { watch: true });
      const gone = await observer.exists('/ephemeral', { watch: true });
      await using stream = client.watch('/', { recursive: true });
      const events = new EventLog(stream);
      await stream.ready;

      proxy.freeze();
      const sentWrite = outcomeOf(client.create('/sent'));
      const sentRead = outcomeOf(client.get('/data'));
      await states.until('suspended');
      expect(lostSignal.aborted).toBe(false);
      expect(await sentWrite).toMatchObject({ error: { code: 'CONNECTIONLOSS', outcome: 'unknown' } });
      const waitingWrite = outcomeOf(client.create('/waiting'));
      const waitingRead = outcomeOf(client.get('/data'));
      const waitingPing = outcomeOf(client.ping());
      expect(await waitingPing).toMatchObject({ error: { code: 'CONNECTIONLOSS' } });

      const lost = await states.until('lost');
      expect(lost).toMatchObject({ previous: 'suspended', sessionId: before?.id, server: null });
      expect(lostSignal.aborted).toBe(true);
      expect(lostSignal.reason).toBeInstanceOf(Error);
      for (const rejected of [waitingWrite, waitingRead, sentRead]) {
        expect(await rejected).toMatchObject({ error: { code: 'SESSIONLOST', outcome: 'not-applied' } });
      }
      const late = await errorOf(client.create('/late'));
      expect(late).toBeInstanceOf(SessionLostError);
      expect(late).toMatchObject({ outcome: 'not-applied', operation: 'create', path: '/late' });
      expect(client.state).toBe('lost');

      // The server has expired the session too.
      expect(await gone.changed).toMatchObject({ type: 'deleted', path: '/ephemeral' });
      await observer.set('/data', '1');
      proxy.thaw();
      const again = await states.until('connected');
      expect(again).toMatchObject({ sameSession: false });
      expect(again.sessionId).not.toBe(before?.id);
      expect(client.session?.id).toBe(again.sessionId);
      expect(client.lostSignal.aborted).toBe(false);
      expect(lostSignal.aborted).toBe(true);
      // Missed and later changes are both reported.
      expect(await own.changed).toMatchObject({ type: 'deleted', path: '/ephemeral' });
      expect(await data.changed).toMatchObject({ type: 'changed', path: '/data' });
      expect(await events.until(({ type }) => type === 'gap')).toMatchObject({ reason: 'new-session' });
      await observer.create('/news');
      await events.until((event) => event.type === 'created' && event.path === '/news');
      expect([await client.exists('/waiting'), await client.exists('/late')]).toEqual([null, null]);
      expect(states.states).toEqual(['suspended', 'lost', 'connected']);
    });
  });
}

describe('a client whose server freezes', () => {
  test('for less than the session timeout: suspended, then the same session; waiting requests are sent', async () => {
    await using site = await FaultSite.start('meerkat', { sessionTimeoutMs: 2000 });
    const { client, proxy, states } = site;
    await client.create('/counter');
    const id = client.session?.id;
    proxy.freeze();
    const sent = outcomeOf(client.set('/counter', 'sent'));
    const read = client.get('/counter');
    await states.until('suspended');
    const waiting = [client.set('/counter', 'a'), client.set('/counter', 'b')];
    proxy.thaw();
    expect(await states.until('connected', 'lost')).toMatchObject({ state: 'connected', sameSession: true });
    expect(client.session?.id).toBe(id);
    expect(await sent).toMatchObject({ error: { code: 'CONNECTIONLOSS', outcome: 'unknown' } });
    const versions = await Promise.all(waiting.map(async (write) => (await write).version));
    // The request in flight when the proxy froze may have arrived; the waiting ones arrived once and in order.
    expect([
      [1, 2],
      [2, 3],
    ]).toContainEqual(versions);
    await read;
  });

  test('in its replies only: lost, then the same session again, with its ephemeral znodes', async () => {
    await using site = await FaultSite.start('meerkat', SHORT);
    const { client, proxy, states } = site;
    await client.create('/ephemeral', '', { mode: 'ephemeral' });
    const { lostSignal } = client;
    const id = client.session?.id;
    // The client's pings arrive, so the session stays alive at the server.
    proxy.freeze('toClient');
    const write = outcomeOf(client.create('/arrived'));
    await states.until('lost');
    expect(lostSignal.aborted).toBe(true);
    expect(await write).toMatchObject({ error: { outcome: 'unknown' } });
    expect(await site.observer.exists('/arrived')).not.toBeNull();
    proxy.thaw();
    const again = await states.until('connected');
    // The server decides whether the last reconnect was in time.
    expect(again.sameSession).toBe(again.sessionId === id);
    expect(await site.observer.exists('/ephemeral')).toEqual(again.sameSession ? expect.anything() : null);
    expect(lostSignal.aborted).toBe(true);
    expect(client.lostSignal.aborted).toBe(false);
  });

  test('completely: lost on time, and then the session that the server reports', async () => {
    await using server = await TestServer.start({ tickTimeMs: 100 });
    await using client = await connect(server.connectString, { ...SHORT, backOff: QUICK });
    const states = new StateLog(client);
    for (let round = 0; round < 3; round++) {
      const path = `/ephemeral-${round}`;
      await client.create(path, '', { mode: 'ephemeral' });
      const id = client.session?.id;
      server.pause();
      const write = outcomeOf(client.create(`/write-${round}`));
      await states.until('suspended');
      await states.until('lost');
      expect((await errorOf(client.get('/'))).code).toBe('SESSIONLOST');
      expect(await write).toMatchObject({ error: { outcome: 'unknown' } });
      server.resume();
      const again = await states.until('connected');
      expect(again.sameSession).toBe(again.sessionId === id);
      expect(await client.exists(path)).toEqual(again.sameSession ? expect.anything() : null);
    }
  });
});

describe('a client whose session expires', () => {
  test('gets: lost, then connected with a new session; ephemeral znodes are gone, watches are set again', async () => {
    await using server = await TestServer.start();
    await using client = await connect(server.connectString, { backOff: QUICK });
    await using observer = await connect(server.connectString);
    const states = new StateLog(client);
    await client.create('/data');
    await using stream = client.watch('/data');
    const events = new EventLog(stream);
    await stream.ready;
    for (let round = 0; round < 5; round++) {
      await client.create('/ephemeral', '', { mode: 'ephemeral' });
      const { lostSignal } = client;
      const id = client.session!.id;
      const own = await client.exists('/ephemeral', { watch: true });
      const { changed } = await client.get('/data', { watch: true });
      const load = Array.from({ length: 20 }, () => outcomeOf(client.set('/data-none', '')));
      const reads = Array.from({ length: 20 }, () => outcomeOf(client.get('/data')));
      await server.expireSession(id);
      expect((await states.until('lost')).sessionId).toBe(id);
      expect(lostSignal.aborted).toBe(true);
      const again = await states.until('connected');
      expect(again).toMatchObject({ sameSession: false });
      expect(again.sessionId).not.toBe(id);
      for (const each of await Promise.all(load)) {
        expect(each.ok ? '' : each.error.code).toMatch(/^(NONODE|CONNECTIONLOSS|SESSIONEXPIRED|SESSIONLOST)$/);
      }
      for (const each of await Promise.all(reads)) {
        expect(each.ok ? 'ok' : each.error.code).toMatch(/^(ok|SESSIONEXPIRED|SESSIONLOST)$/);
      }
      expect(await own.changed).toMatchObject({ type: 'deleted', path: '/ephemeral' });
      expect(await client.exists('/ephemeral')).toBeNull();
      expect(await events.until(({ type }) => type === 'gap')).toMatchObject({ reason: 'new-session' });
      await observer.set('/data', 'x');
      expect(await changed).toMatchObject({ type: 'changed', path: '/data' });
      await events.until(({ type }) => type === 'changed');
      events.events.length = 0;
    }
  });

  test('while disconnected is notified by the next server', async () => {
    await using site = await FaultSite.start('meerkat', { sessionTimeoutMs: 60_000 });
    const { client, proxy, server, states } = site;
    assert(server instanceof TestServer);
    await client.create('/ephemeral', '', { mode: 'ephemeral' });
    const id = client.session!.id;
    await proxy.refuse();
    await proxy.cut();
    await states.until('suspended');
    const waiting = outcomeOf(client.create('/waiting'));
    await server.expireSession(id);
    await proxy.accept();
    expect(await states.until('lost')).toMatchObject({ previous: 'suspended', sessionId: id });
    // The request was waiting when its session expired: the caller decides whether to repeat it.
    expect(await waiting).toMatchObject({ error: { code: 'SESSIONEXPIRED', outcome: 'not-applied' } });
    expect(await states.until('connected')).toMatchObject({ sameSession: false });
    expect(await client.exists('/waiting')).toBeNull();
  });
});

describe('a client whose server has lost its data', () => {
  test.each([
    ['fewer', 0],
    ['more', 100],
  ])(
    'and has seen %s changes since: the old session is lost, a new one starts, and watches report changes',
    async (_, writes) => {
      await using old = await TestServer.start();
      await using fresh = await TestServer.start();
      await using proxy = await TcpProxy.start({ target: old.port });
      // Long enough that the session is not lost earlier on a busy machine.
      await using client = await connect(proxy.connectString, { sessionTimeoutMs: 2000, backOff: QUICK });
      await using observer = await connect(fresh.connectString);
      const states = new StateLog(client);
      for (let i = 0; i < 20; i++) await client.create(`/old-${i}`);
      await client.create('/ephemeral', '', { mode: 'ephemeral' });
      const kept = await client.get('/old-0', { watch: true });
      await using stream = client.watch('/', { recursive: true });
      const events = new EventLog(stream);
      await stream.ready;
      await observer.create('/writes');
      for (let i = 0; i < writes; i++) await observer.set('/writes', String(i));

      proxy.target = fresh.port;
      await proxy.cut();
      expect(await states.until('lost')).toMatchObject({ previous: 'suspended' });
      expect(await states.until('connected')).toMatchObject({ sameSession: false });
      expect((await client.children('/')).children).toEqual(expect.arrayContaining(['writes']));
      expect(await kept.changed).toMatchObject({ type: 'deleted', path: '/old-0' });
      expect(await events.until(({ type }) => type === 'gap')).toMatchObject({ reason: 'new-session' });
      // A change while the watch is being set is reported as a gap; the next one as an event.
      for (let i = 0, latest = 'gap'; latest !== 'created'; i++) {
        const from = events.events.length;
        await observer.create(`/news-${i}`);
        latest = (await events.until(({ type }) => type !== 'changed', from)).type;
      }
      await client.create('/mine', '', { mode: 'ephemeral' });
    },
  );

  test('and has an old copy that still knows the session: eventually there is a new one', async () => {
    const directories = await Promise.all(['', ''].map(() => mkdtemp(join(tmpdir(), 'meerkat-copy-'))));
    const [directory = '', copyDirectory = ''] = directories;
    try {
      await using server = await TestServer.start({ storage: { directory } });
      await using proxy = await TcpProxy.start({ target: server.port });
      // The copy has the session with its first timeout, so it does not expire there before the client reconnects.
      const first = await connect(proxy.connectString, { sessionTimeoutMs: 2000 });
      const session = first.session!;
      await proxy.refuse();
      await proxy.cut();
      await first.close();
      await proxy.accept();
      await server.stop();
      await cp(directory, copyDirectory, { recursive: true });
      await server.restart();

      await using client = await connect(proxy.connectString, { session, sessionTimeoutMs: 400, backOff: QUICK });
      expect(client.session?.id).toBe(session.id);
      const states = new StateLog(client);
      for (let i = 0; i < 20; i++) await client.create(`/new-${i}`);
      await using copy = await TestServer.start({ storage: { directory: copyDirectory } });
      expect(copy.sessions().map(({ id }) => id)).toEqual([session.id]);
      proxy.target = copy.port;
      await proxy.cut();
      expect(await states.until('lost')).toMatchObject({ previous: 'suspended' });
      expect(await states.until('connected')).toMatchObject({ sameSession: false });
      expect(await client.exists('/new-0')).toBeNull();
    } finally {
      await Promise.all(directories.map((each) => rm(each, { recursive: true })));
    }
  });
});

describe('requests made at each state change', () => {
  test('all settle according to the state', async () => {
    await using site = await FaultSite.start('meerkat', SHORT);
    const { client, observer, proxy, states } = site;
    await client.create('/writes');
    const ledger = new WriteLedger(client, '/writes');
    const reads: { readonly state: ClientState; readonly outcome: Promise<Outcome<unknown>> }[] = [];
    const ask = (state: ClientState): void => {
      void ledger.write();
      reads.push({ state, outcome: outcomeOf(client.get('/writes')) });
      reads.push({ state, outcome: outcomeOf(client.exists('/writes', { read: 'linearizable' })) });
      void ledger.write();
    };
    client.onState(({ state }) => {
      ask(state);
      queueMicrotask(() => ask(client.state));
      setImmediate(() => ask(client.state));
    });
    for (let round = 0; round < 2; round++) {
      await proxy.cut();
      await states.until('connected');
      proxy.freeze();
      await states.until('lost');
      proxy.thaw();
      await states.until('connected');
      await client.moveTo();
    }
    await client.close();
    await ledger.settled();
    for (const { state, outcome } of reads) {
      const { ok, ...rest } = await outcome;
      const code = 'error' in rest ? rest.error.code : 'OK';
      if (state === 'closed') expect(code).toBe('CLOSED');
      else if (state === 'lost') expect(['SESSIONLOST', 'OK']).toContain(code);
      else expect(['OK', 'SESSIONLOST', 'SESSIONEXPIRED', 'CLOSED']).toContain(code);
      expect(ok).toBe(code === 'OK');
    }
    await ledger.check(observer);
    expect(ledger.count('acknowledged')).toBeGreaterThan(0);
    expect(ledger.errors.some((error) => error instanceof ClosedError)).toBe(true);
    expect(ledger.errors.some((error) => error instanceof SessionLostError)).toBe(true);
  });
});

interface Load {
  /** Resolves when `writes` more writes have settled, or wait for a connection. */
  progress(writes: number): Promise<void>;
  /** Starts no more writes, and waits for all to settle. */
  stop(): Promise<void>;
}

/** Keeps many writes in flight, regardless of failures. */
function keepWriting(ledger: WriteLedger, onTurn: () => void): Load {
  let isStopping = false;
  const running = (async () => {
    while (!isStopping) {
      // While the server is down writes wait; a few hundred are enough.
      for (let i = 0; i < 5 && ledger.count('pending') < 300; i++) {
        void ledger.write();
        onTurn();
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  return {
    async progress(writes) {
      const goal = ledger.length + writes;
      while (ledger.length < goal && ledger.count('pending') < 300)
        await new Promise((resolve) => setImmediate(resolve));
    },
    async stop() {
      isStopping = true;
      await running;
      await ledger.settled();
    },
  };
}
