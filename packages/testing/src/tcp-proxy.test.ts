import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Op, RawClient } from '../../../interop/harness/raw-client.ts';
import { OPEN_ACL, record } from '../../../interop/harness/record-builder.ts';
import { TcpProxy, TestServer } from './index.ts';
import { End, Target } from './testing/recording-target.ts';

let target: Target;
let proxy: TcpProxy;
const dialed: End[] = [];

beforeEach(async () => {
  target = await Target.start();
  proxy = await TcpProxy.start({ target: target.port });
});

afterEach(async () => {
  for (const { socket } of dialed.splice(0)) socket.destroy();
  await proxy.stop();
  target.stop();
});

/** A client of the proxy and its counterpart at the target, after a first byte was forwarded. */
async function dial(port = proxy.port): Promise<[client: End, server: End]> {
  const index = target.ends.length;
  const client = new End(connect({ port, host: '127.0.0.1', noDelay: true }));
  dialed.push(client);
  client.socket.write('>');
  const server = await target.end(index);
  await server.until(({ received }) => received === '>');
  return [client, server];
}

/** A round trip beside the proxy: what would have come through it has come meanwhile. */
async function roundTripElsewhere(): Promise<void> {
  const server = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  for (let i = 0; i < 5; i++) {
    socket.write('x');
    await once(socket, 'data');
  }
  socket.destroy();
  server.close();
}

describe('a proxy', () => {
  test('passes on bytes both ways and counts them', async () => {
    const [client, server] = await dial();
    server.socket.write('hello');
    await client.until(({ received }) => received === 'hello');
    expect([proxy.bytesToServer, proxy.bytesToClient, proxy.acceptedCount]).toEqual([1, 5, 1]);
    const [connection] = proxy.connections;
    expect([connection?.bytesToServer, connection?.bytesToClient]).toEqual([1, 5]);
    expect(connection?.target).toBe(`127.0.0.1:${target.port}`);
    expect(connection?.client).toBe(`127.0.0.1:${client.socket.localPort}`);
    expect(proxy.connectString).toBe(`127.0.0.1:${proxy.port}`);
  });

  test('passes on megabytes to a peer that reads slowly, unchanged', async () => {
    const [client, server] = await dial();
    const block = Buffer.from(Array.from({ length: 64 * 1024 }, (_, i) => (i * 31) & 0xff));
    server.socket.pause();
    for (let i = 0; i < 200; i++) client.socket.write(block);
    client.socket.end();
    server.socket.resume();
    await server.closed;
    expect(server.received.length).toBe(1 + 200 * block.length);
    expect(server.received.slice(1)).toBe(block.toString('latin1').repeat(200));
  });

  test('passes on the end of one direction while the other continues', async () => {
    const halfOpen = await Target.start({ allowHalfOpen: true });
    proxy.target = halfOpen.port;
    const client = new End(connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true }));
    dialed.push(client);
    client.socket.end('question');
    const server = await halfOpen.end(0);
    await server.until(({ ending }) => ending === 'end');
    expect(server.received).toBe('question');
    server.socket.end('answer');
    await client.until(({ ending }) => ending === 'end');
    expect(client.received).toBe('answer');
    halfOpen.stop();
  });

  test('says why a connection ended', async () => {
    const reason = async (end: (client: End, server: End) => void): Promise<string | undefined> => {
      const coming = proxy.nextConnection();
      const [client, server] = await dial();
      const connection = await coming;
      end(client, server);
      return connection.closed;
    };
    expect(await reason((client) => client.socket.end())).toBe('closed by the client');
    expect(await reason((_client, server) => server.socket.end())).toBe('closed by the server');
    expect(await reason((client) => client.socket.resetAndDestroy())).toBe('broken by the client: ECONNRESET');
    expect(await reason((_client, server) => server.socket.resetAndDestroy())).toBe('broken by the server: ECONNRESET');
    expect(proxy.connections).toEqual([]);
  });

  test('passes on a reset as a reset', async () => {
    const [client, server] = await dial();
    client.socket.resetAndDestroy();
    await server.closed;
    expect(server.ending).toBe('reset');
    const [other, otherServer] = await dial();
    otherServer.socket.resetAndDestroy();
    await other.closed;
    expect(other.ending).toBe('reset');
  });

  test('a target where there is no listener breaks the connection, and the reason says so', async () => {
    target.stop();
    const coming = proxy.nextConnection();
    const client = new End(connect(proxy.port, '127.0.0.1'));
    await client.closed;
    expect(await (await coming).closed).toBe(`no connection to 127.0.0.1:${target.port}: ECONNREFUSED`);
  });

  test('leads new connections to another target, and leaves the others where they are', async () => {
    const [, server] = await dial();
    const other = await Target.start();
    proxy.target = `127.0.0.1:${other.port}`;
    expect(proxy.target).toBe(`127.0.0.1:${other.port}`);
    const client = new End(connect(proxy.port, '127.0.0.1'));
    dialed.push(client);
    client.socket.write('new');
    await (await other.end(0)).until(({ received }) => received === 'new');
    expect(server.ending).toBe('open');
    other.stop();
  });

  test.each(['', 'localhost', 'localhost:', ':2181', 'host:0', 'host:70000', '::1:2181', 0, -1, 1.5])(
    'a target %j is refused with words',
    async (wrong) => {
      await expect(TcpProxy.start({ target: wrong })).rejects.toThrow('the target of a proxy is a port or host:port');
    },
  );

  test('an IPv6 target stands in brackets', async () => {
    await using other = await TcpProxy.start({ target: '[::1]:2181' });
    expect(other.target).toBe('[::1]:2181');
  });
});

describe('delay', () => {
  test('keeps the order, and holds back at least that long', async () => {
    const [client, server] = await dial();
    proxy.delay(30, 'toServer');
    const sentMs = performance.now();
    client.socket.write('slow');
    await server.until(({ received }) => received === '>slow');
    expect(performance.now() - sentMs).toBeGreaterThanOrEqual(29);
    client.socket.write(' first');
    // The proxy has read it, and waits, before the delay ends.
    await roundTripElsewhere();
    proxy.delay(0);
    client.socket.end(' second');
    await server.closed;
    expect(server.received).toBe('>slow first second');
  });

  test('holds for one direction when asked', async () => {
    const [client, server] = await dial();
    proxy.delay(1_000_000, 'toServer');
    client.socket.write('never');
    server.socket.write('at once');
    await client.until(({ received }) => received === 'at once');
    expect(server.received).toBe('>');
  });

  test('what is no delay is refused', () => {
    expect(() => proxy.delay(-1)).toThrow(RangeError);
    expect(() => proxy.delay(Number.NaN)).toThrow(RangeError);
  });
});

describe('freeze', () => {
  test('lets nothing through, ends of connections neither, until thaw', async () => {
    const [client, server] = await dial();
    const [leaving, left] = await dial();
    proxy.freeze();
    client.socket.write('up');
    server.socket.write('down');
    leaving.socket.end('bye');
    await roundTripElsewhere();
    expect([server.received, client.received, left.received, left.ending]).toEqual(['>', '', '>', 'open']);
    expect(proxy.connections).toHaveLength(2);
    proxy.thaw();
    await server.until(({ received }) => received === '>up');
    await client.until(({ received }) => received === 'down');
    await left.until(({ ending }) => ending === 'end');
    expect(left.received).toBe('>bye');
  });

  test('holds for one direction when asked', async () => {
    const [client, server] = await dial();
    proxy.freeze('toClient');
    client.socket.write('request');
    await server.until(({ received }) => received === '>request');
    server.socket.write('reply');
    await roundTripElsewhere();
    expect(client.received).toBe('');
    proxy.thaw('toClient');
    await client.until(({ received }) => received === 'reply');
  });

  test('holds for connections that come later', async () => {
    proxy.freeze();
    const coming = proxy.nextConnection();
    const client = new End(connect(proxy.port, '127.0.0.1'));
    dialed.push(client);
    client.socket.write('early');
    await coming;
    const server = await target.end(0);
    await roundTripElsewhere();
    expect(server.received).toBe('');
    proxy.thaw();
    await server.until(({ received }) => received === 'early');
  });

  test('can be for one connection alone', async () => {
    const [client, server] = await dial();
    const [other, otherServer] = await dial();
    proxy.connections[0]?.freeze();
    client.socket.write('frozen');
    other.socket.write('free');
    await otherServer.until(({ received }) => received === '>free');
    expect(server.received).toBe('>');
    proxy.connections[0]?.thaw();
    await server.until(({ received }) => received === '>frozen');
  });
});

describe('cut', () => {
  test.each(['reset', 'end'] as const)('ends all connections by %s, and new ones come through', async (how) => {
    const ends = [...(await dial()), ...(await dial())];
    proxy.freeze();
    await proxy.cut({ how });
    proxy.thaw();
    await Promise.all(ends.map(({ closed }) => closed));
    expect(ends.map(({ ending }) => ending)).toEqual([how, how, how, how]);
    expect(proxy.connections).toEqual([]);
    await dial();
  });

  test('a connection that is cut says so', async () => {
    const coming = proxy.nextConnection();
    await dial();
    const connection = await coming;
    await connection.cut();
    expect(await connection.closed).toBe('cut');
  });
});

describe('cutAfter', () => {
  test.each(['reset', 'end'] as const)(
    'lets exactly so many bytes of the next connection arrive, then %s',
    async (how) => {
      for (const bytes of [1, 2, 7, 100]) {
        const cut = proxy.cutAfter({ direction: 'toServer', bytes, how });
        const index = target.ends.length;
        const client = new End(connect(proxy.port, '127.0.0.1'));
        dialed.push(client);
        // In pieces of three bytes, so that the limit lies within and between pieces.
        for (let i = 0; i < 50; i++) client.socket.write('abc');
        await cut;
        const server = await target.end(index);
        await Promise.all([server.closed, client.closed]);
        expect(server.received).toBe('abc'.repeat(50).slice(0, bytes));
        expect(client.ending).toBe(how);
        // Bytes and a reset that are found together look like an end.
        if (how === 'end') expect(server.ending).toBe(how);
      }
      await dial();
    },
  );

  test('cuts at the last byte, also when no other follows', async () => {
    const cut = proxy.cutAfter({ direction: 'toServer', bytes: 7 });
    const client = new End(connect(proxy.port, '127.0.0.1'));
    dialed.push(client);
    client.socket.write('request');
    await cut;
    await client.closed;
    expect((await target.end(0)).received).toBe('request');
  });

  test('with 0 bytes cuts when the next byte comes, which is lost', async () => {
    const coming = proxy.nextConnection();
    const [client, server] = await dial();
    const cut = (await coming).cutAfter({ direction: 'toClient', bytes: 0 });
    client.socket.write('request');
    await server.until(({ received }) => received === '>request');
    expect(client.ending).toBe('open');
    server.socket.write('reply');
    await cut;
    await client.closed;
    expect(client.received).toBe('');
  });

  test('of an open connection counts from now', async () => {
    const coming = proxy.nextConnection();
    const [client, server] = await dial();
    const connection = await coming;
    client.socket.write('12345');
    await server.until(({ received }) => received === '>12345');
    const cut = connection.cutAfter({ direction: 'toServer', bytes: 2 });
    client.socket.write('67890');
    await cut;
    await server.closed;
    expect(server.received).toBe('>1234567');
  });

  test('of two limits the one that is reached first counts', async () => {
    const late = proxy.cutAfter({ direction: 'toServer', bytes: 50 });
    const soon = proxy.cutAfter({ direction: 'toServer', bytes: 5 });
    const client = new End(connect(proxy.port, '127.0.0.1'));
    client.socket.write('x'.repeat(100));
    await soon;
    const server = await target.end(0);
    await server.closed;
    expect(server.received).toBe('xxxxx');
    await expect(late).rejects.toThrow('the connection ended (cut) after 5 of 50 bytes toServer');
  });

  test('rejects when the connection ends before', async () => {
    const cut = proxy.cutAfter({ direction: 'toClient', bytes: 10 });
    const [client] = await dial();
    client.socket.end();
    await expect(cut).rejects.toThrow('the connection ended (closed by the client) after 0 of 10 bytes toClient');
  });

  test.each([-1, 0.5, Number.NaN])('after %d bytes is refused', (bytes) => {
    expect(() => proxy.cutAfter({ direction: 'toClient', bytes })).toThrow(RangeError);
  });
});

describe('refuse', () => {
  test('refuses new connections and leaves the others, until accept on the same port', async () => {
    const [client, server] = await dial();
    const { port } = proxy;
    for (let i = 0; i < 3; i++) {
      await proxy.refuse();
      const refused = connect(port, '127.0.0.1');
      const [error] = await once(refused, 'error');
      expect(error).toMatchObject({ code: 'ECONNREFUSED' });
      await proxy.accept();
      expect(proxy.port).toBe(port);
      await dial();
    }
    client.socket.write('still there');
    await server.until(({ received }) => received === '>still there');
  });

  test('accepts and closes at once when asked', async () => {
    await proxy.refuse({ how: 'close' });
    const client = new End(connect(proxy.port, '127.0.0.1'));
    await client.closed;
    expect(client.ending).toBe('end');
    await proxy.refuse();
    await proxy.refuse({ how: 'close' });
    await new End(connect(proxy.port, '127.0.0.1')).closed;
    await proxy.accept();
    await dial();
  });
});

describe('stop', () => {
  test('breaks everything, and a caller that waits learns of it', async () => {
    const [client, server] = await dial();
    const waiting = [proxy.nextConnection(), proxy.cutAfter({ direction: 'toServer', bytes: 1 })];
    const { port } = proxy;
    {
      await using same = proxy;
      expect(same.connections).toHaveLength(1);
    }
    await Promise.all([client.closed, server.closed]);
    for (const each of waiting) await expect(each).rejects.toThrow('the proxy has been stopped');
    const [error] = await once(connect(port, '127.0.0.1'), 'error');
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
    await expect(proxy.accept()).rejects.toThrow('the proxy has been stopped');
    await proxy.stop();
  });

  test('comes to its end while the end of a connection is being passed on', async () => {
    for (let round = 0; round < 10; round++) {
      const one = await TcpProxy.start({ target: target.port });
      const [client, server] = await dial(one.port);
      server.socket.end('bye');
      await client.until(({ received }) => received === 'bye');
      await one.stop();
    }
  });
});

describe('before a server', () => {
  const createRequest = (path: string): Buffer => record().ustring(path).buffer('').acls(OPEN_ACL).int(0).build();

  test('a connection can be cut at every byte of a request and of its reply', async () => {
    await using server = await TestServer.start();
    proxy.target = server.port;
    const body = createRequest('/n-0000');
    // A length of 4 bytes, a header of 8.
    const requestBytes = 12 + body.length;
    // A length, a header of 16, a path.
    const replyBytes = 4 + 16 + 4 + '/n-0000'.length;
    const observer = await RawClient.connect(server.port);
    const attempt = async (path: string, direction: 'toServer' | 'toClient', bytes: number): Promise<boolean> => {
      const coming = proxy.nextConnection();
      const client = await RawClient.connect(proxy.port);
      const cut = (await coming).cutAfter({ direction, bytes });
      await expect(client.request(Op.create, createRequest(path))).rejects.toThrow('the server closed the connection');
      await cut;
      await expect
        .poll(() => server.sessions().find(({ id }) => id === client.sessionId)?.address, { interval: 1 })
        .toBeNull();
      const { error } = await observer.request(Op.exists, record().ustring(path).bool(false).build());
      await server.expireSession(client.sessionId);
      return error === 0;
    };
    for (let bytes = 0; bytes < requestBytes; bytes++) {
      expect(await attempt(`/q-${String(bytes).padStart(4, '0')}`, 'toServer', bytes)).toBe(false);
    }
    for (let bytes = 0; bytes < replyBytes; bytes++) {
      expect(await attempt(`/r-${String(bytes).padStart(4, '0')}`, 'toClient', bytes)).toBe(true);
    }
    observer.destroy();
  });

  test('a frozen client loses its session at the server, and learns of it after thaw', async () => {
    await using server = await TestServer.start({ tickTimeMs: 50 });
    proxy.target = server.port;
    const client = await RawClient.connect(proxy.port);
    proxy.freeze();
    let isClosed = false;
    const closed = client.closed.then(() => {
      isClosed = true;
    });
    await server.expireSession(client.sessionId);
    await roundTripElsewhere();
    expect(isClosed).toBe(false);
    proxy.thaw();
    await closed;
  });
});
