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

function ask(port: number, path: string): Socket {
  const socket = connect({ host: '127.0.0.1', port });
  ends.push(() => socket.destroy());
  socket.on('error', () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  // No listener for "data": nothing is read.
  return socket;
}

/** An admin port whose service gives answers without an end, but for health. */
async function start(idleTimeoutMs: number): Promise<{
  port: number;
  asked(count: number): Promise<void>;
  dropped: Promise<void>;
}> {
  const { port1, port2 } = new MessageChannel();
  const questions = new Set<number>();
  let onAsked = (): void => {};
  let onDropped = (): void => {};
  const dropped = new Promise<void>((resolve) => {
    onDropped = resolve;
  });
  const listening = new Promise<number>((resolve) => {
    const tell = (message: ToHttp): void => port2.postMessage(message);
    const part = 'x'.repeat(65_536);
    port2.on('message', (message: ToService) => {
      switch (message.kind) {
        case 'listening':
          resolve(message.at.port);
          break;
        case 'ask': {
          const { id, question } = message;
          tell({ kind: 'head', id, head: { status: 200, contentType: 'application/json', headers: {}, file: null } });
          const isHealth = question.kind === 'health';
          if (!isHealth) questions.add(id);
          tell({ kind: 'part', id, text: isHealth ? '{"live":[],"ready":[]}' : part, isLast: isHealth });
          onAsked();
          break;
        }
        case 'taken':
          tell({ kind: 'part', id: message.id, text: part, isLast: false });
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
  await listen(app, { port: 'admin', at: place, tls: null, idleTimeoutMs }, service, new HttpFigures());
  return {
    port: await listening,
    dropped,
    asked: (count) =>
      new Promise((resolve) => {
        onAsked = () => questions.size >= count && resolve();
        onAsked();
      }),
  };
}
