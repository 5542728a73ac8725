import { CreateMode, ErrorCode, JuteWriter, OPEN_ACL, OpCode, Perm, type Request } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PLAIN_AUTHENTICATOR } from './testing/plain-authenticator.ts';
import { type Arrival, type TestClient, TestServer } from './testing/test-server.ts';

const create = (path: string, flags: number = CreateMode.persistent, bytes = 3): Request => ({
  op: OpCode.create,
  path,
  data: new Uint8Array(bytes),
  acl: OPEN_ACL,
  flags,
  ttl: -1,
});
const getData = (path: string, watch = false): Request => ({ op: OpCode.getData, path, watch });

function errorsOf(arrivals: readonly Arrival[]): number[] {
  return arrivals.flatMap((arrival) => (arrival.kind === 'reply' ? [arrival.header.error] : []));
}

function ask(server: TestServer, client: TestClient, request: Request): number | undefined {
  client.send(request);
  server.run();
  return errorsOf(client.takeArrivals())[0];
}

function frame(...ints: number[]): Uint8Array {
  const writer = new JuteWriter();
  const at = writer.beginFrame();
  for (const int of ints) writer.int(int);
  writer.endFrame(at);
  return writer.toBytes();
}

describe('a server that starts again on its data', () => {
  it('has every acknowledged write, and sessions that can come back with their ephemerals', () => {
    const first = new TestServer();
    const client = first.connect();
    expect(ask(first, client, create('/a'))).toBe(ErrorCode.ok);
    expect(ask(first, client, create('/e', CreateMode.ephemeral))).toBe(ErrorCode.ok);
    first.disk.crash();
    const second = new TestServer({}, first.disk, first.clock);
    const back = second.open();
    back.connect({ session: client.session! });
    second.run();
    expect(back.takeArrivals()[0]).toMatchObject({ kind: 'session', response: { sessionId: client.session!.id } });
    expect(ask(second, back, getData('/a'))).toBe(ErrorCode.ok);
    expect(ask(second, back, getData('/e'))).toBe(ErrorCode.ok);
    expect(ask(second, back, { op: OpCode.closeSession })).toBe(ErrorCode.ok);
    expect(ask(second, second.connect(), getData('/e'))).toBe(ErrorCode.noNode);
  });

  it('gives every session its whole timeout anew, and then expires it', () => {
    const first = new TestServer();
    ask(first, first.connect(3000), create('/e', CreateMode.ephemeral));
    first.stop();
    expect(first.isStopped).toBe(true);
    first.clock.nowMs += 60_000;
    const second = new TestServer({}, first.disk, first.clock);
    const other = second.connect(20_000);
    second.advance(2000);
    expect(ask(second, other, getData('/e'))).toBe(ErrorCode.ok);
    second.advance(3000);
    expect(ask(second, other, getData('/e'))).toBe(ErrorCode.noNode);
  });
});

describe('a disk that fails', () => {
  it('leads to no acknowledgement, closes the connections and stops the server with words', () => {
    for (const code of ['ENOSPC', 'EIO']) {
      for (const op of ['write', 'sync'] as const) {
        const server = new TestServer();
        const client = server.connect();
        expect(ask(server, client, create('/a'))).toBe(ErrorCode.ok);
        server.disk.failNext({ operation: op, code });
        client.send(create('/b'));
        server.run();
        expect(client.takeArrivals()).toEqual([{ kind: 'closed' }]);
        expect(server.failure?.message).toContain(code);
        const late = server.open();
        expect(late.isClosed).toBe(true);
      }
    }
  });
});

describe('input that is not acceptable', () => {
  it('closes only the connection that it came from', () => {
    const server = new TestServer();
    const bystander = server.connect();
    const tooLong = new Uint8Array([0x7f, 0xff, 0xff, 0xff]);
    const negative = new Uint8Array([0xff, 0xff, 0xff, 0xfe]);
    const hello = new Uint8Array([0x16, 3, 1, 2]);
    for (const bytes of [tooLong, negative, hello, frame(1), frame()]) {
      const fresh = server.open();
      fresh.sendBytes(bytes);
      server.run();
      expect(fresh.isClosed).toBe(true);
      const established = server.connect();
      established.sendBytes(bytes);
      server.run();
      expect(established.isClosed).toBe(true);
    }
    expect(ask(server, bystander, create('/a'))).toBe(ErrorCode.ok);
    const reasons = server.trace.flatMap((event) => (event.kind === 'connection-closed' ? [event.reason] : []));
    expect(new Set(reasons)).toEqual(
      new Set([
        'it announced a frame of 2147483647 bytes, and jute.maxbuffer allows 1048575',
        'it announced a frame of -2 bytes, and jute.maxbuffer allows 1048575',
        'it speaks TLS, and this port does not: the client needs secureClientPort, or the server client.portUnification=true',
        'it announced a frame of 369295618 bytes, and jute.maxbuffer allows 1048575',
        'its first frame is not a connect request',
        'it sent a frame that is too short for a request header',
      ]),
    );
  });

  it('answers an operation that no client may send with UNIMPLEMENTED and zxid -1, in turn, and closes', () => {
    for (const op of [0, 13, 20, -1, -10, 99, 12345]) {
      const server = new TestServer();
      const client = server.connect();
      client.send(create('/a'));
      client.sendBytes(frame(7, op, 0, 0));
      server.run();
      expect(client.takeArrivals()).toMatchObject([
        { kind: 'reply', header: { error: ErrorCode.ok } },
        { kind: 'reply', header: { xid: 7, zxid: -1, error: ErrorCode.unimplemented } },
        { kind: 'closed' },
      ]);
    }
  });

  it('answers a record that cannot be decoded with MARSHALLINGERROR and goes on', () => {
    const server = new TestServer();
    const client = server.connect();
    client.sendBytes(frame(1, OpCode.create, 1000));
    client.sendBytes(frame(2, OpCode.getData));
    client.send(getData('/'), 3);
    server.run();
    expect(errorsOf(client.takeArrivals())).toEqual([
      ErrorCode.marshallingError,
      ErrorCode.marshallingError,
      ErrorCode.ok,
    ]);
  });

  it('never disturbs the server: random bytes, and requests with random bytes changed', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 80 }), { minLength: 1, maxLength: 8 }),
        fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 5 }),
        (blobs, changes) => {
          const server = new TestServer();
          const bystander = server.connect();
          for (const blob of blobs) {
            const raw = server.open();
            raw.sendBytes(blob);
            const client = server.connect();
            const bytes = new Uint8Array(12 + blob.length);
            bytes.set(frame(1, OpCode.multi));
            bytes.set(blob, 12);
            for (const [at, value] of changes) if (at >= 4 && at < bytes.length) bytes[at] = value;
            bytes.set([0, 0, 0, bytes.length - 4]);
            client.sendBytes(bytes);
            server.run();
          }
          expect(ask(server, bystander, create('/still-here'))).toBe(ErrorCode.ok);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('takes frames in pieces of any size', () => {
    const server = new TestServer();
    const client = server.connect();
    const writer = new JuteWriter();
    for (let xid = 1; xid <= 5; xid++) {
      const at = writer.beginFrame();
      writer.int(xid);
      writer.int(OpCode.exists);
      writer.ustring('/');
      writer.boolean(false);
      writer.endFrame(at);
    }
    for (const byte of writer.toBytes()) {
      client.sendBytes(new Uint8Array([byte]));
      server.run();
    }
    expect(errorsOf(client.takeArrivals())).toEqual([0, 0, 0, 0, 0]);
  });

  it('drops connections that never ask for a session', () => {
    const server = new TestServer({ sessionlessTimeoutMs: 5000 });
    const silent = Array.from({ length: 1000 }, () => server.open());
    const client = server.connect(20_000);
    server.advance(8000);
    expect(silent.every((each) => each.isClosed)).toBe(true);
    expect(client.isClosed).toBe(false);
    expect(server.core.view.connectionCount).toBe(1);
  });

  it('refuses connections beyond those of one address', () => {
    const server = new TestServer({ connectionsPerHostMax: 2 });
    const clients = [server.open(), server.open(), server.open()];
    expect(clients.map((client) => client.isClosed)).toEqual([false, false, true]);
    expect(server.open('10.0.0.2').isClosed).toBe(false);
    clients[0]!.drop();
    expect(server.open().isClosed).toBe(false);
  });
});

describe('a client that does not read', () => {
  it('is not read either once a megabyte of replies waits, and gets them all in order when it reads again', () => {
    const server = new TestServer();
    const client = server.connect();
    ask(server, client, create('/big', CreateMode.persistent, 200_000));
    client.isDeaf = true;
    for (let i = 0; i < 100; i++) client.send(getData('/big'));
    server.run();
    expect(client.isPaused).toBe(true);
    expect(client.queuedBytes).toBeLessThan(2_000_000);
    for (let round = 0; round < 100; round++) {
      client.listen();
      client.isDeaf = true;
      server.run();
    }
    client.listen();
    server.run();
    const xids = client.takeArrivals().map((arrival) => (arrival.kind === 'reply' ? arrival.header.xid : 0));
    expect(xids).toEqual(Array.from({ length: 100 }, (_, i) => i + 2));
  });

  it('may have writes behind reads that fill its output: everything is answered in order, none sees a later write', () => {
    const server = new TestServer();
    const client = server.connect();
    ask(server, client, create('/big', CreateMode.persistent, 300_000));
    const setData = (bytes: number): Request => ({
      op: OpCode.setData,
      path: '/big',
      data: new Uint8Array(bytes),
      version: -1,
    });
    server.isDiskHeld = true;
    const sent = [setData(200_000), ...Array.from({ length: 20 }, () => getData('/big')), setData(1), getData('/big')];
    for (const request of sent) client.send(request);
    server.run();
    expect(client.takeArrivals()).toEqual([]);
    // Both writes become durable at once.
    server.isDiskHeld = false;
    server.run();
    const replies = client.takeArrivals().flatMap((arrival) => (arrival.kind === 'reply' ? [arrival] : []));
    expect(replies.map(({ header }) => header.xid)).toEqual(sent.map((_, i) => i + 2));
    const lengths = replies.map(({ body }) => body.length);
    // A Stat; int length, data and a Stat.
    expect(lengths).toEqual([68, ...Array.from({ length: 20 }, () => 200_072), 68, 73]);
  });

  it('is disconnected when what it asked before a write of its own would fill the memory; the write is applied', () => {
    const server = new TestServer();
    const client = server.connect();
    ask(server, client, create('/big', CreateMode.persistent, 300_000));
    server.isDiskHeld = true;
    client.send({ op: OpCode.setData, path: '/big', data: new Uint8Array(900_000), version: -1 });
    for (let i = 0; i < 500; i++) client.send(getData('/big'));
    client.send({ op: OpCode.setData, path: '/big', data: new Uint8Array(7), version: -1 });
    server.run();
    client.isDeaf = true;
    server.isDiskHeld = false;
    server.run();
    expect(client.isClosed).toBe(true);
    expect(client.queuedBytes).toBeLessThan(20 * 1024 * 1024);
    const other = server.connect();
    other.send(getData('/big'));
    server.run();
    const [reply] = other.takeArrivals();
    expect(reply?.kind === 'reply' && reply.body.length).toBe(4 + 7 + 68);
  });

  it('is not disconnected by an event behind long replies: it is read no further, and gets everything in the end', () => {
    const bytes = 20 * 1024 * 1024;
    const server = new TestServer({ frameBytesMax: 2 * bytes });
    const client = server.connect();
    ask(server, client, create('/big', CreateMode.persistent, bytes));
    ask(server, client, { op: OpCode.addWatch, path: '/', mode: 1 });
    client.isDeaf = true;
    const asked = Array.from({ length: 5 }, () => client.send(getData('/big')));
    server.run();
    const other = server.connect();
    for (let i = 0; i < 3; i++) ask(server, other, create(`/new${i}`));
    expect(client.isClosed).toBe(false);
    // Of the others nothing is answered, nor anything that comes behind them.
    expect(client.queuedBytes).toBeLessThan(1.1 * bytes);
    client.listen();
    server.run();
    const arrivals = client.takeArrivals();
    expect(arrivals.filter(({ kind }) => kind === 'reply')).toHaveLength(asked.length);
    expect(arrivals.filter(({ kind }) => kind === 'event').length).toBeGreaterThanOrEqual(3);
  });

  it('is disconnected when events alone fill its output, and nobody else notices', () => {
    const server = new TestServer();
    const writer = server.connect();
    const watcher = server.connect();
    ask(server, watcher, { op: OpCode.addWatch, path: '/', mode: 1 });
    watcher.isDeaf = true;
    const name = 'x'.repeat(1000);
    for (let i = 0; i < 10_000 && !watcher.isClosed; i++) {
      writer.send(create(`/${name}${i}`));
      writer.send({ op: OpCode.delete, path: `/${name}${i}`, version: -1 });
      server.run();
    }
    expect(watcher.isClosed).toBe(true);
    expect(ask(server, writer, create('/a'))).toBe(ErrorCode.ok);
    const closed = server.trace.find((event) => event.kind === 'connection-closed');
    expect(closed).toMatchObject({ reason: 'it does not read: 16777216 bytes of events are queued' });
  });
});

describe('a server with too much to do', () => {
  it('stops reading those who wait for replies, and goes on when there is less', () => {
    const server = new TestServer({ globalOutstandingLimit: 10 });
    const client = server.connect();
    server.isDiskHeld = true;
    for (let i = 0; i < 100; i++) client.send(create(`/n${i}`));
    server.run();
    expect(server.core.view.outstandingRequests).toBeLessThan(20);
    expect(client.isPaused).toBe(true);
    server.isDiskHeld = false;
    server.run();
    expect(errorsOf(client.takeArrivals())).toEqual(Array.from({ length: 100 }, () => 0));
    expect(client.isPaused).toBe(false);
  });

  it('counts reads that wait behind their own write, and answers all of them in order once it is applied', () => {
    const server = new TestServer({ globalOutstandingLimit: 10 });
    const client = server.connect();
    const other = server.connect();
    server.isDiskHeld = true;
    client.send(create('/a'));
    for (let i = 0; i < 100; i++) {
      if (i % 3 === 0) client.send({ op: OpCode.sync, path: '/' });
      else if (i % 3 === 1) client.send(getData('/a'));
      else client.sendBytes(frame(++client.lastXid, OpCode.getData));
    }
    server.run();
    expect(server.core.view.outstandingRequests).toBe(11);
    expect(client.isPaused).toBe(true);
    // Who waits for nothing is served.
    expect(ask(server, other, getData('/'))).toBe(ErrorCode.ok);
    server.isDiskHeld = false;
    server.run();
    const replies = client
      .takeArrivals()
      .map((arrival) => (arrival.kind === 'reply' ? arrival.header.xid : arrival.kind));
    expect(replies).toEqual(Array.from({ length: 101 }, (_, i) => i + 1));
    expect(client.isPaused).toBe(false);
    expect(server.core.view.outstandingRequests).toBe(0);
  });

  it('lets no client keep more than a megabyte of requests waiting behind its own write', () => {
    for (const [path, most] of [
      ['/', 5092],
      [`/${'x'.repeat(400_000)}`, 3],
    ] as const) {
      const server = new TestServer({ globalOutstandingLimit: 1_000_000 });
      const client = server.connect();
      server.isDiskHeld = true;
      client.send(create('/a'));
      const asked = Math.ceil(most * 1.2) + 5;
      for (let i = 0; i < asked; i++) client.send(getData(path));
      server.run();
      expect(server.core.view.outstandingRequests).toBeLessThanOrEqual(most + 1);
      expect(server.core.view.outstandingRequests).toBeGreaterThan(most / 2);
      expect(client.isPaused).toBe(true);
      server.isDiskHeld = false;
      server.run();
      expect(errorsOf(client.takeArrivals())).toHaveLength(asked + 1);
      expect(server.core.view.outstandingRequests).toBe(0);
    }
  });

  it('is not kept from reading others by a client that takes no replies', () => {
    const server = new TestServer({ globalOutstandingLimit: 10 });
    const deaf = server.connect();
    const other = server.connect();
    ask(server, deaf, create('/big', CreateMode.persistent, 900_000));
    server.isDiskHeld = true;
    deaf.send(create('/a'));
    for (let i = 0; i < 20; i++) deaf.send(getData('/big'));
    server.run();
    expect(server.core.view.outstandingRequests).toBe(11);
    deaf.isDeaf = true;
    server.isDiskHeld = false;
    server.run();
    // Two replies are queued, eight reads wait for room.
    expect(server.core.view.outstandingRequests).toBe(0);
    server.isDiskHeld = true;
    for (let i = 0; i < 9; i++) other.send(create(`/n${i}`));
    server.run();
    expect(other.isPaused).toBe(false);
    expect(server.core.view.outstandingRequests).toBe(9);
    server.isDiskHeld = false;
    server.run();
    deaf.listen();
    server.run();
    expect(errorsOf(deaf.takeArrivals())).toHaveLength(21);
    expect(server.core.view.outstandingRequests).toBe(0);
  });

  it('forgets what waited for a client that is gone', () => {
    const server = new TestServer({ globalOutstandingLimit: 10 });
    const client = server.connect();
    const other = server.connect();
    server.isDiskHeld = true;
    client.send(create('/a'));
    for (let i = 0; i < 100; i++) client.send(getData('/a'));
    server.run();
    client.drop();
    server.run();
    expect(server.core.view.outstandingRequests).toBe(1);
    other.send(create('/b'));
    for (let i = 0; i < 5; i++) other.send(getData('/b'));
    server.run();
    expect(server.core.view.outstandingRequests).toBe(7);
    server.isDiskHeld = false;
    server.run();
    expect(errorsOf(other.takeArrivals())).toEqual([0, 0, 0, 0, 0, 0]);
    expect(server.core.view.outstandingRequests).toBe(0);
  });
});

describe('a disk that stalls longer than a session timeout', () => {
  it('ends no session whose requests wait for it, and ends one that is silent', () => {
    const server = new TestServer({ globalOutstandingLimit: 5 });
    const busy = server.connect(4000);
    const silent = server.connect(4000);
    const watcher = server.connect(20_000);
    ask(server, busy, create('/busy', CreateMode.ephemeral));
    ask(server, silent, create('/silent', CreateMode.ephemeral));
    server.isDiskHeld = true;
    for (let i = 0; i < 50; i++) busy.send(create(`/n${i}`));
    server.advance(15_000);
    server.isDiskHeld = false;
    server.run();
    expect(errorsOf(busy.takeArrivals())).toEqual(Array.from({ length: 50 }, () => 0));
    expect(ask(server, watcher, getData('/busy'))).toBe(ErrorCode.ok);
    expect(ask(server, watcher, getData('/silent'))).toBe(ErrorCode.noNode);
  });

  it('ends the session of a client that takes no replies', () => {
    const server = new TestServer();
    const deaf = server.connect(4000);
    ask(server, deaf, create('/big', CreateMode.persistent, 500_000));
    ask(server, deaf, create('/e', CreateMode.ephemeral));
    deaf.isDeaf = true;
    for (let i = 0; i < 20; i++) deaf.send(getData('/big'));
    server.advance(8000);
    expect(deaf.isClosed).toBe(true);
    expect(ask(server, server.connect(), getData('/e'))).toBe(ErrorCode.noNode);
  });
});

describe('a session that is expired by hand', () => {
  it('ends as one that was not heard of: ephemerals go, watchers are told, its connection closes', () => {
    const server = new TestServer();
    const client = server.connect();
    const other = server.connect();
    ask(server, client, create('/e', CreateMode.ephemeral));
    ask(server, other, getData('/e', true));
    const { id } = client.session!;
    expect(server.core.view.sessions()).toEqual([
      { id, timeoutMs: 10_000, remote: client.remote },
      { id: other.session!.id, timeoutMs: 10_000, remote: other.remote },
    ]);
    expect(server.core.expireSession(id)).toBe(true);
    expect(server.core.view.sessions()).toHaveLength(1);
    server.run();
    expect(client.isClosed).toBe(true);
    expect(other.takeArrivals()).toMatchObject([{ kind: 'event', event: { path: '/e' } }]);
    expect(server.trace.map(({ kind }) => kind)).toContain('session-expired');
    expect(server.core.expireSession(id)).toBe(false);
  });

  it('ends as an operator wants it, and the trace says nothing of silence', () => {
    const server = new TestServer();
    const client = server.connect();
    ask(server, client, create('/e', CreateMode.ephemeral));
    const { id } = client.session!;
    expect(server.core.view.ephemeralCountOf(id)).toBe(1);
    expect(server.core.expireSession(id, 'operator')).toBe(true);
    server.run();
    expect(client.isClosed).toBe(true);
    expect(server.core.view.ephemeralCountOf(id)).toBe(0);
    const kinds = server.trace.map(({ kind }) => kind);
    expect(kinds).toContain('session-closed');
    expect(kinds).not.toContain('session-expired');
  });
});

describe('stopping', () => {
  it('answers what is in flight, ends the connections and keeps everything', () => {
    const server = new TestServer();
    const client = server.connect();
    client.send(create('/a'));
    server.stop();
    expect(server.isStopped).toBe(true);
    expect(client.takeArrivals()).toMatchObject([{ kind: 'reply', header: { error: 0 } }, { kind: 'closed' }]);
    const again = new TestServer({}, server.disk, server.clock);
    expect(ask(again, again.connect(), getData('/a'))).toBe(ErrorCode.ok);
  });
});

describe('stopping while the disk is slow', () => {
  it('answers the write in flight although its client goes on sending, and does nothing new', () => {
    const server = new TestServer();
    const client = server.connect();
    server.isDiskHeld = true;
    client.send(create('/a'));
    server.run();
    server.stop();
    client.send(create('/b'));
    server.run();
    expect(client.isClosed).toBe(false);
    server.isDiskHeld = false;
    server.run();
    expect(client.takeArrivals()).toMatchObject([{ kind: 'reply', header: { xid: 1, error: 0 } }, { kind: 'closed' }]);
    const again = new TestServer({}, server.disk, server.clock);
    expect(ask(again, again.connect(), getData('/a'))).toBe(ErrorCode.ok);
    expect(ask(again, again.connect(), getData('/b'))).toBe(ErrorCode.noNode);
  });
});

describe('a connection for which there is no room', () => {
  it('takes the place of the one that has been silent for longest', () => {
    const server = new TestServer();
    const client = server.connect();
    const silent = [server.open(), server.open()];
    const asking = server.open('10.0.0.9', true);
    asking.connect({ timeoutMs: 10_000 });
    server.run();
    expect(silent.map(({ isClosed }) => isClosed)).toEqual([true, false]);
    expect(asking.session).not.toBeNull();
    expect(ask(server, client, getData('/'))).toBe(ErrorCode.ok);
    expect(server.open('10.0.0.9', true).isClosed).toBe(false);
    expect(silent.map(({ isClosed }) => isClosed)).toEqual([true, true]);
  });

  it('takes the place of one from the address that has the most', () => {
    const server = new TestServer();
    const quiet = server.open('10.0.0.1');
    const crowd = [2, 3].flatMap((host) => Array.from({ length: 3 }, () => server.open(`10.0.0.${host}`)));
    for (let i = 0; i < 50; i++) crowd.push(server.open(`10.0.0.${2 + (i % 2)}`, true));
    expect(quiet.isClosed).toBe(false);
    expect(crowd.filter(({ isClosed }) => !isClosed)).toHaveLength(6);
    quiet.connect({ timeoutMs: 10_000 });
    server.run();
    expect(quiet.session).not.toBeNull();
  });

  it('is refused when all others have asked for a session', () => {
    const server = new TestServer();
    const client = server.connect();
    const refused = server.open('10.0.0.9', true);
    server.run();
    expect([refused.isClosed, client.isClosed]).toEqual([true, false]);
    expect(server.core.stats.connectionsRefused).toBe(1);
    expect(server.trace.at(-1)).toMatchObject({
      kind: 'connection-refused',
      reason: expect.stringMatching(
        /as many connections of clients as the descriptors of this process allow, and none/,
      ),
    });
  });

  it('does not take the place of one that waits for a session to be decided', () => {
    const server = new TestServer();
    server.isDiskHeld = true;
    const waiting = server.open();
    waiting.connect({ timeoutMs: 10_000 });
    server.run();
    expect(server.open('10.0.0.9', true).isClosed).toBe(true);
    server.isDiskHeld = false;
    server.run();
    expect(waiting.session).not.toBeNull();
  });
});

describe('ACLs of a scheme that a server cannot keep', () => {
  it('keep it from starting, unless ACLs do not count', () => {
    const first = new TestServer();
    const client = first.connect();
    const acl = [{ perms: Perm.all, scheme: 'digest', id: 'ann:secret' }];
    expect(ask(first, client, { ...create('/private'), acl } as Request)).toBe(ErrorCode.ok);
    first.stop();
    const asked: string[][] = [];
    const authenticator = {
      ...PLAIN_AUTHENTICATOR,
      refusalOf: (schemes: ReadonlySet<string>) => {
        asked.push([...schemes].sort());
        return schemes.has('digest') ? 'no digest here' : null;
      },
    };
    const refused = new TestServer({}, first.disk, first.clock, authenticator);
    expect(asked).toEqual([['digest', 'world']]);
    expect([refused.isServing, refused.failure?.message]).toEqual([false, 'no digest here']);
    first.disk.crash();
    expect(new TestServer({ skipAcl: true }, first.disk, first.clock, authenticator).isServing).toBe(true);
  });
});

describe('containers and TTL znodes', () => {
  it('go when they are empty and their time is over', () => {
    const server = new TestServer({ extendedTypesEnabled: true, containerCheckIntervalMs: 1000 });
    const client = server.connect(20_000);
    ask(server, client, { ...create('/c', CreateMode.container), op: OpCode.createContainer } as Request);
    ask(server, client, create('/c/child'));
    ask(server, client, {
      ...create('/t', CreateMode.persistentWithTtl),
      op: OpCode.createTTL,
      ttl: 3000,
    } as Request);
    server.advance(2500);
    expect(ask(server, client, getData('/c'))).toBe(ErrorCode.ok);
    expect(ask(server, client, getData('/t'))).toBe(ErrorCode.ok);
    ask(server, client, { op: OpCode.delete, path: '/c/child', version: -1 });
    server.advance(3000);
    expect(ask(server, client, getData('/c'))).toBe(ErrorCode.noNode);
    expect(ask(server, client, getData('/t'))).toBe(ErrorCode.noNode);
  });
});

describe('a second connection for a session', () => {
  it('takes it over with the right password, and cuts nobody off with a wrong one', () => {
    const server = new TestServer();
    const client = server.connect();
    const session = client.session!;
    const thief = server.open();
    thief.connect({ session: { id: session.id, password: new Uint8Array(16) } });
    server.run();
    expect(thief.takeArrivals()).toMatchObject([{ kind: 'session', response: { timeoutMs: 0 } }, { kind: 'closed' }]);
    expect(ask(server, client, create('/a'))).toBe(ErrorCode.ok);
    const again = server.open();
    again.connect({ session });
    server.run();
    expect(client.isClosed).toBe(true);
    again.takeArrivals();
    expect(ask(server, again, getData('/a'))).toBe(ErrorCode.ok);
  });

  it('is closed without an answer when it has seen more than this server knows', () => {
    const server = new TestServer();
    const client = server.open();
    client.connect({ lastZxidSeen: 1000 });
    server.run();
    expect(client.takeArrivals()).toEqual([{ kind: 'closed' }]);
  });
});
