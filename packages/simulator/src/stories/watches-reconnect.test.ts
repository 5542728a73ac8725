import { EventType, OpCode, Perm, type Request, SpecialXid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { VirtualServer } from '../virtual-server.ts';
import { CLOSE, children, exists, get, remove, set } from './requests.ts';
import { play } from './stage.ts';
import { WireClient } from './wire-client.ts';

/** What a client sends after a reconnect, with all watches that it still waits for. */
function setWatches(
  relativeZxid: number,
  paths: Partial<Record<'data' | 'exist' | 'child', readonly string[]>>,
): Request {
  return {
    op: OpCode.setWatches2,
    relativeZxid,
    dataWatches: paths.data ?? [],
    existWatches: paths.exist ?? [],
    childWatches: paths.child ?? [],
    persistentWatches: [],
    persistentRecursiveWatches: [],
  };
}

/** The largest zxid that a client has seen. */
function lastSeen(...clients: readonly WireClient[]): number {
  return Math.max(0, ...clients.flatMap(({ replies, events }) => [...replies, ...events].map(({ zxid }) => zxid)));
}

function eventsOf(client: WireClient): readonly string[] {
  return client.events.map(({ type, path }) => `${EVENT_NAMES[type]} ${path}`).toSorted();
}

const EVENT_NAMES: Readonly<Record<number, string>> = {
  [EventType.nodeCreated]: 'created',
  [EventType.nodeDeleted]: 'deleted',
  [EventType.nodeDataChanged]: 'changed',
  [EventType.nodeChildrenChanged]: 'children',
};

describe('watches', () => {
  test('1667: report at any other server exactly what has become of their znodes meanwhile, including recreated ones', () =>
    play({ servers: 3, observers: 1 }, async (stage) => {
      const leader = await stage.start();
      const writer = await stage.at(leader);
      const first = new WireClient(stage.world, 'app', stage.servers.find((server) => server !== leader)!);
      await first.whenAnswered();
      for (const name of [
        'recreated',
        'deleted',
        'changed',
        'untouched',
        'parent',
        'parent-recreated',
        'parent-deleted',
      ]) {
        await writer.create(`/${name}`);
      }
      await writer.create('/parent/old');
      await stage.whole();
      const data = ['/recreated', '/deleted', '/changed', '/untouched'];
      const exist = ['/made', '/made-and-deleted', '/never-made'];
      const child = ['/parent', '/parent-recreated', '/parent-deleted', '/untouched'];
      let xid = 1;
      for (const path of data) first.send(xid++, get(path, true));
      for (const path of exist) first.send(xid++, exists(path, true));
      for (const path of child) first.send(xid++, children(path, true));
      await first.reply(xid - 1);
      first.destroy();
      for (const path of ['/recreated', '/parent-recreated']) {
        await writer.delete(path);
        await writer.create(path);
      }
      for (const path of ['/deleted', '/parent-deleted', '/parent/old']) await writer.delete(path);
      await writer.create('/parent/old');
      await writer.set('/changed', 'data');
      await writer.create('/made');
      await writer.create('/made-and-deleted');
      await writer.delete('/made-and-deleted');
      await stage.whole();
      const missed = [
        'changed /changed',
        'changed /recreated',
        'children /parent',
        'children /parent-recreated',
        'created /made',
        'deleted /deleted',
        'deleted /parent-deleted',
      ];
      // Each server in turn; watches that it has not fired are still set there.
      for (const [round, server] of stage.servers.entries()) {
        const lastZxidSeen = lastSeen(first);
        const next = new WireClient(stage.world, 'app', server, { session: first.session, lastZxidSeen });
        await next.whenAnswered();
        next.send(SpecialXid.setWatches, setWatches(lastZxidSeen, { data, exist, child }));
        await next.reply(SpecialXid.setWatches);
        expect([server.host, ...eventsOf(next)]).toEqual([server.host, ...missed]);
        next.events.length = 0;
        if (round < stage.servers.length - 1) continue;
        await writer.set('/untouched', 'data');
        await writer.create('/untouched/new');
        await writer.create('/made-and-deleted');
        await writer.create('/never-made');
        await writer.set('/changed', 'again');
        await stage.until('all is told', () => next.events.length >= 4);
        await stage.sleep(20);
        expect(eventsOf(next)).toEqual([
          'changed /untouched',
          'children /untouched',
          'created /made-and-deleted',
          'created /never-made',
        ]);
      }
    }));

  test('1412: report a change exactly once, wherever in the stream of replies, errors among them, a client loses its server', () =>
    play({ servers: 3, observers: 1 }, async (stage) => {
      const leader = await stage.start();
      const [a, b] = stage.servers.filter((server) => server !== leader);
      const writer = await stage.at(leader);
      await writer.create('/watched');
      await writer.create('/other');
      // The server that it leaves is behind the one that the client moves to, or the other way round.
      const slow = { delayMinMs: 1, delayMaxMs: 9, splitChance: 0.1, mergeChance: 0.1 };
      let session = new WireClient(stage.world, 'app', a!);
      await session.whenAnswered();
      for (let round = 0; round < 24; round++) {
        const [from, to] = round % 2 === 0 ? [a!, b!] : [b!, stage.servers[3]!];
        await stage.whole();
        const first = new WireClient(stage.world, 'app', from, { session: session.session });
        await first.whenAnswered();
        await first.ask(1, get('/watched', true));
        stage.world.network.slowDown(leader.host, round % 3 === 0 ? from.host : to.host, slow);
        // Each reply but the pings' has a zxid, including refusals.
        for (let xid = 2; xid < 10; xid += 4) {
          first.send(xid, set('/watched', 'wrong', 1_000_000));
          first.send(xid + 1, get('/none'));
          first.send(xid + 2, set('/other', 'right'));
          first.send(xid + 3, remove('/watched', 1_000_000));
        }
        writer.set('/watched', String(round)).catch(() => {});
        await first.reply(2 + (round % 8));
        first.destroy();
        const lastZxidSeen = lastSeen(first);
        // A server that is behind the client closes the connection.
        let next = first;
        while (next === first || !next.hasSession) {
          next = new WireClient(stage.world, 'app', to, { session: session.session, lastZxidSeen });
          await next.whenAnswered();
        }
        const eventCount = first.events.length;
        if (eventCount === 0) next.send(SpecialXid.setWatches, setWatches(lastZxidSeen, { data: ['/watched'] }));
        stage.world.network.heal();
        await stage.until('it is told', () => first.events.length + next.events.length > 0);
        await stage.whole();
        await stage.sleep(20);
        expect([...eventsOf(first), ...eventsOf(next)]).toEqual(['changed /watched']);
        session = next;
        next.destroy();
      }
    }));

  test('1382: of a session that has ended are gone, even in the middle of notifications', () =>
    play({ servers: 3, observers: 1 }, async (stage) => {
      const leader = await stage.start();
      const writer = await stage.at(leader);
      await writer.create('/watched');
      for (const server of stage.servers) {
        await stage.whole();
        const open = async (host: string): Promise<WireClient> => {
          const client = new WireClient(stage.world, host, server, { timeoutMs: 200 });
          await client.whenAnswered();
          await client.ask(1, get('/watched', true));
          client.send(2, { op: OpCode.addWatch, path: '/watched', mode: 1 });
          client.send(3, children('/', true));
          await client.reply(3);
          return client;
        };
        // One closes its session, one falls silent, one disconnects while it is being notified.
        const polite = await open('polite');
        const silent = await open('silent');
        const gone = await open('gone');
        const view = (): number => server.core!.view.watches.count;
        expect([server.host, view()]).toEqual([server.host, 6]);
        polite.send(4, CLOSE);
        polite.send(5, set('/watched', 'too late'));
        await writer.set('/watched', 'data');
        gone.destroy();
        await polite.whenClosed();
        await silent.whenClosed();
        await stage.until('no watch is left', () => view() === 0);
        const { stat } = await writer.get('/watched');
        await writer.set('/watched', 'more', { version: stat.version });
        expect(polite.replyTo(5)).toBeNull();
      }
    }));

  test('4475, 4466: of all kinds on one path, and recursive ones above it, each fire for their own changes, once', () =>
    play({ servers: 3, observers: 1 }, async (stage) => {
      const leader = await stage.start();
      const writer = await stage.at(leader);
      await writer.create('/top');
      await writer.create('/top/mid');
      const clients: { readonly server: VirtualServer; readonly mixed: WireClient; readonly recursive: WireClient }[] =
        [];
      await stage.whole();
      for (const [i, server] of stage.servers.entries()) {
        const mixed = new WireClient(stage.world, `mixed-${i}`, server);
        const recursive = new WireClient(stage.world, `recursive-${i}`, server);
        for (const client of [mixed, recursive]) await client.whenAnswered();
        await mixed.ask(1, get('/top/mid', true));
        await mixed.ask(2, children('/top/mid', true));
        await mixed.ask(3, { op: OpCode.addWatch, path: '/top/mid', mode: 0 });
        await recursive.ask(1, { op: OpCode.addWatch, path: '/top', mode: 1 });
        clients.push({ server, mixed, recursive });
      }
      await writer.set('/top/mid', 'one');
      await writer.create('/top/mid/leaf');
      await writer.set('/top/mid/leaf', 'two');
      await writer.delete('/top/mid/leaf');
      await writer.set('/top/mid', 'three');
      await writer.delete('/top/mid');
      await writer.create('/top/mid');
      await stage.whole();
      await stage.sleep(20);
      for (const { mixed, recursive } of clients) {
        const inOrder = ({ events }: WireClient) => events.map(({ type, path }) => `${EVENT_NAMES[type]} ${path}`);
        expect(inOrder(mixed)).toEqual([
          'changed /top/mid',
          'children /top/mid',
          'children /top/mid',
          'changed /top/mid',
          'deleted /top/mid',
          'created /top/mid',
        ]);
        expect(inOrder(recursive)).toEqual([
          'changed /top/mid',
          'created /top/mid/leaf',
          'changed /top/mid/leaf',
          'deleted /top/mid/leaf',
          'changed /top/mid',
          'deleted /top/mid',
          'created /top/mid',
        ]);
      }
    }));

  test('706: that exceed one packet are moved to another server, again and again', () =>
    play({ servers: 3, core: { frameBytesMax: 150_000 }, seeds: [1] }, async (stage) => {
      const leader = await stage.start();
      const client = await stage.connect('app');
      const writer = await stage.at(leader);
      const name = 'n'.repeat(150);
      const asked = Array.from({ length: 3000 }, (_, i) => client.exists(`/${name}${i}`, { watch: true }));
      const watched = await Promise.all(asked);
      for (let round = 0; round < 3; round++) {
        const before = client.server;
        stage.world.network.dropConnects(before!.host);
        for (const end of stage.world.network.openEnds) if (end.host === 'app') end.breakStream();
        await stage.until('it has another server', () => client.state === 'connected' && client.server !== before);
        stage.heal();
        const i = 1000 * round + 500;
        await writer.create(`/${name}${i}`);
        expect(await watched[i]!.changed).toMatchObject({ type: 'created', path: `/${name}${i}` });
      }
      expect(client.session).not.toBeNull();
      await client.close();
    }));

  test('for children, beside a recursive one, tell of a child that their client may not read, also after a reconnect', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      const follower = stage.servers.find((server) => server !== leader)!;
      const { world } = stage;
      const ann = await world.connect('ann', {
        servers: `${leader.host}:${leader.port}`,
        auth: [{ scheme: 'digest', auth: 'ann:ann' }],
      });
      const reader = await stage.at(follower);
      await ann.create('/a');
      await stage.whole();
      const stream = reader.watch('/a', { recursive: true });
      await stream.ready;
      follower.crash();
      // It is sent together with the watches, before the client knows which kind of server this is.
      const reading = reader.children('/a', { watch: true });
      follower.start();
      const { changed } = await reading;
      await ann.create('/a/hidden', '', { acl: [{ scheme: 'digest', id: 'ann:ann', perms: Perm.all }] });
      expect(await changed).toMatchObject({ type: 'children', path: '/a' });
      await stream.close();
      await ann.close();
    }));
});
