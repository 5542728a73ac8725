import { createServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { probeGreeting } from './greeting-probe.ts';
import { probeReach } from './tcp-probe.ts';

const NEVER = new AbortController().signal;

async function listen(onSocket: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as { port: number };
  return { host: '127.0.0.1', port, name: 'here', tls: null };
}

describe('doctor', () => {
  test.each([
    ['a page of the web', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), 'not-zookeeper'],
    ['noise', Buffer.from([0xff, 0, 1, 0x80, 0x7f]), 'not-zookeeper'],
    ['an alert of TLS', Buffer.from([0x15, 0x03, 0x03, 0, 2, 2, 70]), 'tls-expected'],
  ])('names a port that answers with %s', async (_what, answer, fault) => {
    const target = await listen((socket) => socket.end(answer));
    expect((await probeGreeting(target, 10_000, NEVER)).findings).toMatchObject([{ fault }]);
  });

  test('ends with a server that sends without end', async () => {
    const target = await listen((socket) => {
      const send = (): void => {
        while (!socket.destroyed && socket.write('x'.repeat(65_536))) {}
      };
      socket.on('drain', send);
      send();
    });
    expect((await probeGreeting(target, 500, NEVER)).findings).toMatchObject([{ fault: 'not-zookeeper' }]);
  });

  test('does not wait for a name service that says nothing', async () => {
    const server = { host: 'zk.example', port: 2181, name: 'zk.example:2181', tls: null };
    const reach = await probeReach(server, 50, NEVER, () => new Promise(() => {}));
    expect(reach).toMatchObject({ isReached: false, findings: [{ fault: 'name-service-silent' }] });
  });
});
