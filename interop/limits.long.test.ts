import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { connect, ThrottledError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { describeWith } from './harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from './harness/server-process.ts';

async function metricOf(server: ServerProcess, limit: string): Promise<number> {
  const page = await server.askAdmin('/metrics');
  return Number(new RegExp(`^meerkat_refused_total\\{limit="${limit}"\\} (\\d+)$`, 'm').exec(page)?.[1]);
}

/** Retries, because on a busy machine even a single request may wait for too long. */
async function untilTaken<T>(request: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof ThrottledError)) throw error;
    }
  }
}

const lines = ({ output }: ServerProcess, text: string): number => output.split(text).length - 1;

describeWith(['apache'], 'limits', () => {
  test.each(SERVER_KINDS)('%s: clients beyond the tokens in the bucket are closed without an answer', async (kind) => {
    const config = {
      connection_throttle_tokens: 2,
      connection_throttle_fill_time: 3_600_000,
      connection_throttle_fill_count: 1,
    };
    await using server = await ServerProcess.start(kind, { config });
    const servers = `127.0.0.1:${server.port}`;
    const clients = [await connect(servers), await connect(servers)];
    await expect(connect(servers, { connectTimeoutMs: 2000 })).rejects.toMatchObject({ code: 'CONNECTFAILED' });
    await Promise.all(clients.map((client) => client.close()));
  });

  test.each(SERVER_KINDS)('%s: a large request over the memory limit closes its connection', async (kind) => {
    const config = { largeRequestThreshold: 1000, largeRequestMaxBytes: 5000 };
    await using server = await ServerProcess.start(kind, { config });
    const client = await connect(`127.0.0.1:${server.port}`);
    await client.create('/fits', 'x'.repeat(4000));
    await client.create('/small', 'x'.repeat(500));
    await expect(client.create('/too-much', 'x'.repeat(6000))).rejects.toMatchObject({
      code: 'CONNECTIONLOSS',
    });
    expect((await client.get('/fits')).data?.length).toBe(4000);
    await client.close();
  });

  test.each(SERVER_KINDS)('%s: requests that wait for too long are refused, by Meerkat in order', async (kind) => {
    const config = { request_throttle_max_requests: 1, throttled_op_wait_time: 10 };
    await using server = await ServerProcess.start(kind, { config });
    const client = await connect(`127.0.0.1:${server.port}`);
    const create = (name: string): Promise<string> =>
      client.create(`/${name}`).then(
        () => 'ok',
        ({ code }: { code: string }) => code,
      );
    await untilTaken(() => client.create('/first'));
    const order: number[] = [];
    const outcomes = await Promise.all(
      Array.from({ length: 1000 }, (_, i) => create(`${i}`).finally(() => order.push(i))),
    );
    expect(new Set(['ok', ...outcomes])).toEqual(new Set(['ok', 'THROTTLEDOP']));
    // Apache's server refuses in a separate thread: executed requests, if any, may be answered later.
    if (kind === 'meerkat') {
      expect(order).toEqual(order.toSorted((a, b) => a - b));
      expect(outcomes).toContain('ok');
    }
    const { children } = await untilTaken(() => client.children('/'));
    const made = outcomes.flatMap((outcome, i) => (outcome === 'ok' ? [`${i}`] : []));
    expect(children.toSorted()).toEqual([...made, 'first', 'zookeeper'].toSorted());
    await client.close();
  });

  test('sessions beyond sessions.max are refused, counted, and logged once a second', async () => {
    await using server = await ServerProcess.start('meerkat', { config: { 'sessions.max': 2 }, hasAdmin: true });
    const servers = `127.0.0.1:${server.port}`;
    const clients = [await connect(servers), await connect(servers)];
    await expect(connect(servers, { connectTimeoutMs: 1500 })).rejects.toMatchObject({ code: 'CONNECTFAILED' });
    expect(await metricOf(server, 'sessions')).toBeGreaterThan(1);
    expect(lines(server, 'sessions.max allows 2')).toBeLessThanOrEqual(4);
    await clients[0]?.close();
    const another = await connect(servers);
    await Promise.all([clients[1], another].map((client) => client?.close()));
  });

  test('watches beyond watches.max are refused, and reads without them are not', async () => {
    await using server = await ServerProcess.start('meerkat', { config: { 'watches.max': 3 }, hasAdmin: true });
    const client = await connect(`127.0.0.1:${server.port}`);
    for (const path of ['/a', '/b', '/c', '/d']) await client.create(path);
    for (const path of ['/a', '/b', '/c']) await client.get(path, { watch: true });
    await expect(client.get('/d', { watch: true })).rejects.toBeInstanceOf(ThrottledError);
    await client.get('/d');
    await client.delete('/a');
    await client.get('/d', { watch: true });
    expect(await metricOf(server, 'watches')).toBe(1);
    await client.close();
  });

  test('a session has at most the allowed requests in flight, and all are answered', async () => {
    const config = { 'session.maxRequestsInFlight': 4, request_throttle_max_requests: 6 };
    await using server = await ServerProcess.start('meerkat', { config });
    const clients = await Promise.all([1, 2, 3].map(() => connect(`127.0.0.1:${server.port}`)));
    const done = await Promise.all(
      clients.flatMap((client, i) => Array.from({ length: 200 }, (_, n) => client.create(`/${i}-${n}`))),
    );
    expect(done).toHaveLength(600);
    await Promise.all(clients.map((client) => client.close()));
  });

  test.each([
    ['disk', { 'disk.freeBytesMin': 2 ** 49 }],
    ['memory', { 'memory.residentBytesMax': 2 ** 20 }],
  ])('low %s refuses creates and sets, but not reads and deletes', async (_, config) => {
    await using server = await ServerProcess.start('meerkat', { config, hasAdmin: true });
    await expect.poll(() => server.output).toContain('creates and sets are refused');
    const client = await connect(`127.0.0.1:${server.port}`);
    for (let i = 0; i < 50; i++) await expect(client.create(`/${i}`)).rejects.toBeInstanceOf(ThrottledError);
    await expect(client.set('/', 'x')).rejects.toBeInstanceOf(ThrottledError);
    await expect(client.transaction().create('/a').commit()).rejects.toMatchObject({ code: 'THROTTLEDOP' });
    expect((await client.children('/')).children).toEqual(['zookeeper']);
    await expect(client.delete('/none')).rejects.toMatchObject({ code: 'NONODE' });
    expect(await metricOf(server, 'growth')).toBe(52);
    await client.close();
    const before = server.output;
    // One line at the beginning, and one per second while requests are refused.
    expect(lines(server, 'a limit is reached'), before).toBeLessThan(10);
  });

  test('repeatedly refused connections do not flood the log', async () => {
    await using server = await ServerProcess.start('meerkat', { config: { maxClientCnxns: 1 } });
    // With a session, so that the server counts this one, and not the harness's last probe.
    await using _first = await connect(`127.0.0.1:${server.port}`);
    for (let i = 0; i < 300; i++) {
      const socket = connectTcp({ port: server.port, host: '127.0.0.1' }).on('error', () => {});
      await once(socket, 'close');
    }
    expect(lines(server, 'maxClientCnxns allows')).toBeLessThan(20);
  });
});
