import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import { TestServer } from '@meerkat/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { connect } from '../connect.ts';
import { NoNodeError } from '../errors.ts';
import type { RequestTrace } from './request-trace.ts';
import { isTraced, traceRequest } from './trace-request.ts';

const ABOUT = { operation: 'get', path: '/a' };

describe('traceRequest', () => {
  test('without subscribers nothing is created for a trace', () => {
    expect(isTraced()).toBe(false);
    listen();
    expect(isTraced()).toBe(true);
  });

  test('a successful request is reported from start to end, as one object', async () => {
    const { messages, traces } = listen();
    const session = { server: null, lastZxid: 7 };
    const server = { host: 'zk1', port: 2181, address: '10.0.0.1' };

    const result = await traceRequest(ABOUT, session, async () => {
      Object.assign(session, { server, lastZxid: 9 });
      return 'data';
    });

    expect(result).toBe('data');
    expect(messages).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
    expect(new Set(traces).size).toBe(1);
    expect(traces[0]).toEqual({ operation: 'get', path: '/a', server, zxid: 9n, result: 'data' });
  });

  test('a failed request is reported with its error, and rejects with it', async () => {
    const { messages, traces } = listen();
    const error = new NoNodeError(ABOUT);

    const made = traceRequest(ABOUT, { server: null, lastZxid: 0 }, () => Promise.reject(error));

    await expect(made).rejects.toBe(error);
    expect(messages).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
    expect(traces[0]?.error).toBe(error);
  });

  test('the server of the request is kept when the connection is gone at its end', async () => {
    const { traces } = listen();
    const server = { host: 'zk1', port: 2181, address: '10.0.0.1' };
    const session = { server: server as typeof server | null, lastZxid: 0 };

    await traceRequest(ABOUT, session, async () => {
      session.server = null;
    });

    expect(traces[0]?.server).toBe(server);
  });
});

describe('a client', () => {
  test('reports each request, also linearizable ones, with the server and the zxid', async () => {
    await using server = await TestServer.start();
    await using client = await connect(server.connectString);
    const { messages, traces } = listen();

    await client.create('/a', 'x');
    await client.get('/a', { read: 'linearizable' });
    await client.exists('/nowhere');
    await client.set('/nowhere', 'x').catch(() => undefined);

    const ends = traces.filter((_trace, i) => messages[i] === 'asyncEnd');
    expect(ends).toMatchObject([
      { operation: 'create', path: '/a', server: { port: server.port }, result: { path: '/a' } },
      { operation: 'get', path: '/a', result: { data: Uint8Array.from(Buffer.from('x')) } },
      { operation: 'exists', path: '/nowhere', result: null },
      { operation: 'set', path: '/nowhere', error: expect.any(NoNodeError) },
    ]);
    expect(ends[0]).toMatchObject({ result: { stat: { czxid: ends[0]?.zxid } } });
  });

  test('reports its changes of state', async () => {
    await using server = await TestServer.start();
    const states: string[] = [];
    const onState = (message: unknown): void => void states.push((message as { state: string }).state);
    subscribe('meerkat.client.state', onState);
    ends.push(() => unsubscribe('meerkat.client.state', onState));

    const client = await connect(server.connectString);
    await client.close();

    expect(states).toEqual(['connected', 'closed']);
  });
});

const ends: (() => void)[] = [];

afterEach(() => {
  for (const end of ends.splice(0)) end();
});

interface Recorded {
  /** Names of the events, and their messages. */
  readonly messages: string[];
  readonly traces: RequestTrace[];
}

/** Subscribes by channel name only. */
function listen(): Recorded {
  const recorded: Recorded = { messages: [], traces: [] };
  const note = (name: string) => (message: object) => {
    recorded.messages.push(name);
    recorded.traces.push(message as RequestTrace);
  };
  const handlers = {
    start: note('start'),
    end: note('end'),
    asyncStart: note('asyncStart'),
    asyncEnd: note('asyncEnd'),
    error: note('error'),
  };
  const requests = tracingChannel('meerkat.client.request');
  requests.subscribe(handlers);
  ends.push(() => requests.unsubscribe(handlers));
  return recorded;
}
