import { ClosedError } from '@meerkat/client';
import { TcpProxy } from '@meerkat/testing';
import { describe, expect, test } from 'vitest';
import { errorOf, errorsOf } from '../outcome.ts';
import { StateLog } from '../state-log.ts';
import { type Site, text } from './site.ts';

/** Sessions: properties, hand-over and end. */
export function testSessions(site: Site): void {
  describe('sessions', () => {
    test('a connected client knows its session, its timeout and its server', async () => {
      await using client = await site.connect({ sessionTimeoutMs: 3210 });
      expect(client.state).toBe('connected');
      expect(client.session?.id).not.toBe(0n);
      expect(client.session?.password).toHaveLength(16);
      expect(client.session?.timeoutMs).toBe(3210);
      expect(client.server).toEqual({ host: '127.0.0.1', port: site.server.port, address: '127.0.0.1' });
      expect(client.lostSignal.aborted).toBe(false);
      expect(client.chroot).toBe('');
    });

    test('the server negotiates the session timeout within its limits', async () => {
      await using hasty = await site.connect({ sessionTimeoutMs: 1, connectTimeoutMs: 10_000 });
      await using slow = await site.connect({ sessionTimeoutMs: 10_000_000 });
      expect([hasty.session?.timeoutMs, slow.session?.timeoutMs]).toEqual([1000, 10_000]);
    });

    test('another client resumes a session with its ephemeral znodes', async () => {
      await using proxy = await TcpProxy.start({ target: site.server.port });
      const first = await site.connectThrough(proxy);
      const path = site.freshPath();
      await first.create(path, 'kept', { mode: 'ephemeral' });
      const session = first.session!;
      // The first owner disappears without closing, like a killed process.
      await proxy.stop();
      await first.close();

      const second = await site.connect({ session });
      expect(second.session).toMatchObject({ id: session.id, password: session.password });
      expect(await second.ephemerals()).toEqual([path]);
      await second.set(path, 'taken over');
      await second.close();
      await using third = await site.connect();
      expect(await third.exists(path)).toBeNull();
    });

    test('a client hands its session over after its requests in flight', async () => {
      const first = await site.connect();
      const path = site.freshPath();
      const inFlight = Array.from({ length: 20 }, (_, i) => first.create(`${path}-${i}`, '', { mode: 'ephemeral' }));
      const session = await first.detach();
      expect(await Promise.all(inFlight)).toHaveLength(20);
      expect(first.state).toBe('closed');
      expect(first.lostSignal.aborted).toBe(true);
      for (const error of await errorsOf([first.get('/'), first.detach()])) expect(error).toBeInstanceOf(ClosedError);

      await using second = await site.connect({ session });
      expect(second.session?.id).toBe(session.id);
      expect(await second.ephemerals(path)).toHaveLength(20);
    });

    test('an expired session is not resumed: a new one starts, and this is reported', async () => {
      const first = await site.connect();
      const session = first.session!;
      await first.close();
      await using second = await site.connect({ session });
      expect(second.state).toBe('connected');
      expect(second.session?.id).not.toBe(session.id);
    });

    test('a session with a wrong password is not resumed', async () => {
      await using first = await site.connect();
      const { id, password } = first.session!;
      await using second = await site.connect({ session: { id, password: password.map((byte) => byte ^ 1) } });
      expect(second.session?.id).not.toBe(id);
    });

    test('a session moves to another server, named or the next one, with its requests in flight', async () => {
      await using one = await TcpProxy.start({ target: site.server.port });
      await using two = await TcpProxy.start({ target: site.server.port });
      await using client = await site.connectThrough([one, two]);
      const path = site.freshPath();
      await client.create(path, '', { mode: 'ephemeral' });
      const { changed } = await client.get(path, { watch: true });
      const id = client.session?.id;
      const { lostSignal } = client;
      const states = new StateLog(client);
      let version = 0;
      for (const proxy of [two, one, one, two]) {
        const before = Array.from({ length: 10 }, () => client.set(`${path}`, 'x'));
        const moved = client.moveTo({ host: '127.0.0.1', port: proxy.port });
        const behind = Array.from({ length: 10 }, () => client.set(`${path}`, 'x'));
        await moved;
        expect(client.server?.port).toBe(proxy.port);
        for (const made of [...before, ...behind]) expect((await made).version).toBe(++version);
      }
      const here = client.server?.port;
      await client.moveTo();
      expect(client.server?.port).not.toBe(here);
      expect(client.session?.id).toBe(id);
      expect(lostSignal.aborted).toBe(false);
      expect(await client.ephemerals()).toEqual([path]);
      expect(await changed).toMatchObject({ type: 'changed', path });
      expect(states.states).toEqual(Array.from({ length: 5 }, () => ['suspended', 'connected']).flat());
      expect(states.changes.every(({ sameSession }) => sameSession)).toBe(true);
    });

    test('a chrooted client sees its znode as the root', async () => {
      await using whole = await site.connect();
      const root = site.freshPath();
      await using client = await site.connect({ chroot: root });
      expect((await errorOf(client.get('/'))).code).toBe('NONODE');
      expect(await errorOf(client.create('/a'))).toMatchObject({ code: 'NONODE', path: '/a' });
      await whole.create(root, 'root');
      expect(text((await client.get('/')).data)).toBe('root');
      expect((await client.create('/a', 'x')).path).toBe('/a');
      expect(text((await whole.get(`${root}/a`)).data)).toBe('x');
      expect((await client.create('/a/n-', '', { sequential: true })).path).toBe('/a/n-0000000000');
      expect((await client.create('/', '', { sequential: true, mode: 'ephemeral' })).path).toBe('/0000000001');
      expect(await client.ephemerals()).toEqual(['/0000000001']);
      expect(await whole.ephemerals()).toEqual([]);

      const inner = client.withChroot('/a');
      expect(inner.chroot).toBe(`${root}/a`);
      expect(client.withChroot('/').chroot).toBe(root);
      expect((await inner.children('/')).children).toEqual(['n-0000000000']);
      const { changed } = await inner.exists('/ready', { watch: true });
      await whole.create(`${root}/a/ready`);
      expect(await changed).toMatchObject({ type: 'created', path: '/ready' });
      expect(await errorOf(inner.set('/none', ''))).toMatchObject({ path: '/none' });
      const atRoot = await inner.get('/', { watch: true });
      await whole.set(`${root}/a`, 'y');
      expect(await atRoot.changed).toMatchObject({ type: 'changed', path: '/' });
      // One session: closing a view closes it.
      await inner.close();
      expect([client.state, inner.state]).toEqual(['closed', 'closed']);
    });

    test('close waits for requests in flight, ends the session and rejects waiting calls', async () => {
      await using observer = await site.connect();
      const client = await site.connect();
      const path = site.freshPath();
      const { lostSignal } = client;
      const states = new StateLog(client);
      const { changed } = await client.exists(`${path}/never`, { watch: true });
      const inFlight = Array.from({ length: 50 }, (_, i) => client.create(`${path}-${i}`, '', { mode: 'ephemeral' }));
      const closed = Promise.all([client.close(), client.close()]);
      const late = await errorOf(client.get('/'));
      expect(late).toBeInstanceOf(ClosedError);
      expect(late).toMatchObject({ code: 'CLOSED', outcome: 'not-applied', operation: 'get', path: '/' });
      expect((await Promise.all(inFlight)).length).toBe(50);
      await closed;
      expect(client.state).toBe('closed');
      expect(client.server).toBeNull();
      expect(lostSignal.aborted).toBe(true);
      expect(states.states).toEqual(['closed']);
      expect(await errorOf(changed)).toBeInstanceOf(ClosedError);
      expect(await observer.exists(`${path}-0`)).toBeNull();
      for (const later of await errorsOf([
        client.create(path),
        client.ping(),
        client.addAuth('ip', ''),
        client.whenConnected(),
        client.moveTo(),
      ])) {
        expect(later).toBeInstanceOf(ClosedError);
      }
      await client.close();
      const iterated: unknown[] = [];
      for await (const change of client.states()) iterated.push(change);
      expect(iterated).toEqual([]);
    });

    test('states() and listeners report the same changes', async () => {
      await using proxy = await TcpProxy.start({ target: site.server.port });
      const client = await site.connectThrough(proxy);
      const iterated = (async () => {
        const seen: string[] = [];
        for await (const { state } of client.states()) seen.push(state);
        return seen;
      })();
      const twice: string[] = [];
      const listener = ({ state }: { state: string }): unknown => twice.push(state);
      const states = new StateLog(client);
      client.onState(listener);
      const registration = client.onState(listener);
      await proxy.cut();
      await states.until('connected');
      registration[Symbol.dispose]();
      await proxy.cut();
      await states.until('connected');
      await client.close();
      expect(states.states).toEqual(['suspended', 'connected', 'suspended', 'connected', 'closed']);
      expect(await iterated).toEqual(states.states);
      expect(twice).toEqual(states.states);
    });
  });
}
