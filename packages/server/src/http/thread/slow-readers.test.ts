import { connect, type Socket } from 'node:net';
import { MessageChannel } from 'node:worker_threads';
import { afterEach, expect, test } from 'vitest';
import { HttpFigures } from '../figures.ts';
import type { ToHttp, ToService } from '../messages.ts';
import { makeAdminApp } from './admin-app.ts';
import { listen } from './listen.ts';
import { MetricsReader } from './metrics-app.ts';
import { ServiceThread } from './service-thread.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

test('callers who take nothing of their answers make no server look dead', async () => {
  const { port, asked } = await start(60_000);
  const sockets = Array.from({ length: 16 }, () => ask(port, '/commands/connections'));
  await asked(sockets.length);
  const ready = await fetch(`http://127.0.0.1:${port}/livez`);
  expect([ready.status, await ready.text()]).toEqual([200, 'ok']);
  expect((await fetch(`http://127.0.0.1:${port}/commands/ruok`)).status).toBe(503);
});

test('a caller who takes nothing of its answer is cut off after the idle timeout, and the answer is dropped', async () => {
  const { port, dropped } = await start(50);
  ask(port, '/commands/connections');
  await dropped;
});

test.each([
  ['ask nothing', ''],
  ['never finish their question', 'GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX: '],
  ['have asked', 'GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'],
  ['take none of their answers', 'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.repeat(50)],
])('connections that %s do not lock others out', async (_what, sent) => {
  const { port, figures, logged } = await start(60_000);
  for (let i = 0; i < 64; i++) {
    const socket = connect({ host: '127.0.0.1', port });
    ends.push(() => socket.destroy());
    socket.on('error', () => {});
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.write(sent);
  }
  await expect.poll(() => fetch(`http://127.0.0.1:${port}/livez`).then(({ status }) => status)).toBe(200);
  expect(figures.exceededConnections).toBeGreaterThan(0);
  expect(logged[0]).toContain('127.0.0.1 is refused: it is one of more than 64 connections');
});

function ask(port: number, path: string): Socket {
  const socket = connect({ host: '127.0.0.1', port });
  ends.push(() => socket.destroy());
  socket.on('error', () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  // No listener for "data": nothing is read.
  return socket;
}

/** An admin port whose service gives commands answers without an end. */
async function start(idleTimeoutMs: number): Promise<{
  port: number;
  figures: HttpFigures;
  logged: string[];
  asked(count: number): Promise<void>;
  dropped: Promise<void>;
}> {
  const { port1, port2 } = new MessageChannel();
  const questions = new Set<number>();
  const logged: string[] = [];
  const figures = new HttpFigures();
  let onAsked = (): void => {};
  let onDropped = (): void => {};
  const dropped = new Promise<void>((resolve) => {
    onDropped = resolve;
  });
  const listening = new Promise<number>((resolve) => {
    const send = (message: ToHttp): void => port2.postMessage(message);
    const part = 'x'.repeat(65_536);
    port2.on('message', (message: ToService) => {
      switch (message.kind) {
        case 'listening':
          resolve(message.at.port);
          break;
        case 'ask': {
          const { id, question } = message;
          send({ kind: 'head', id, head: { status: 200, contentType: 'application/json', headers: {}, file: null } });
          const isEndless = question.kind === 'command';
          if (isEndless) questions.add(id);
          const text = question.kind === 'health' ? '{"live":[],"ready":[]}' : part;
          send({ kind: 'part', id, text, isLast: !isEndless });
          onAsked();
          break;
        }
        case 'taken':
          send({ kind: 'part', id: message.id, text: part, isLast: false });
          break;
        case 'log':
          logged.push(message.text);
          break;
        case 'drop':
          onDropped();
      }
    });
  });
  const place = { host: '127.0.0.1', port: 0, commandUrl: '/commands', idleTimeoutMs, tls: null };
  const service = new ServiceThread(port1);
  const app = makeAdminApp(place, service, new MetricsReader(service));
  ends.push(() => port2.close());
  ends.push(() => app.close());
  await listen(app, { port: 'admin', at: place, tls: null, idleTimeoutMs }, service, figures);
  return {
    figures,
    logged,
    port: await listening,
    dropped,
    asked: (count) =>
      new Promise((resolve) => {
        onAsked = () => questions.size >= count && resolve();
        onAsked();
      }),
  };
}
