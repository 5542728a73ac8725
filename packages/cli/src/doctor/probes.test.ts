import { createServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseState } from '../monitoring/server-state.ts';
import { checkEnsemble } from './ensemble-checks.ts';
import { probeGreeting } from './greeting-probe.ts';
import { parseLogLine } from './log-lines.ts';
import { LogFindings } from './log-rules.ts';
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

  test('reports a host name that does not resolve, and one with dead addresses', async () => {
    const { port, name } = await listen(() => {});
    const server = { host: 'zk.example', port, name, tls: null };
    const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' });
    const none = await probeReach(server, 10_000, NEVER, () => Promise.reject(unknown));
    expect(none).toMatchObject({ isReached: false, findings: [{ fault: 'name-unknown' }] });
    // It listens on the first one alone.
    const both = await probeReach(server, 10_000, NEVER, async () =>
      ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 })),
    );
    expect(both).toMatchObject({ isReached: true, findings: [{ fault: 'address-dead' }] });
    expect(both.findings[0]?.found).toContain('127.0.0.2: refused');
  });

  test('names a handshake that fails for a reason of the other side', async () => {
    // A fatal alert: internal error.
    const target = await listen((socket) =>
      socket.once('data', () => socket.end(Buffer.from([21, 3, 3, 0, 2, 2, 80]))),
    );
    const { findings } = await probeGreeting({ ...target, tls: {} }, 10_000, NEVER);
    expect(findings).toMatchObject([{ fault: 'tls-failed' }]);
  });

  test('names a server that is behind the others, and one of an older epoch not', () => {
    const at = (name: string, zxid: bigint) => {
      const server = { host: 'h', port: 1, name, tls: null };
      const text = `Zookeeper version: 3.8.0\nZxid: 0x${zxid.toString(16)}\nMode: follower\n`;
      return { name, state: parseState(server, text), monitor: null, isLooking: false, isReached: true };
    };
    const found = checkEnsemble([at('a', 0x200000000n), at('b', 0x200010000n), at('c', 0x100000000n)]);
    expect(found.filter(({ fault }) => fault === 'server-behind')).toEqual([
      { fault: 'server-behind', where: 'a', found: '65536 txns behind the furthest' },
    ]);
  });

  test('names a log-in between servers that is refused, from the log of either make, unless it serves behind that', () => {
    const lines = [
      '2026-03-01 10:00:00,001 - ERROR [ListenerHandler-zk1:3888:SaslQuorumAuthServer@96] - Failed to authenticate using SASL',
      '2026-03-01 10:00:00.001 WARN  javax.security.sasl.SaslException: GSS initiate failed',
    ];
    for (const line of lines) {
      const found = new LogFindings('zk.log');
      found.add(parseLogLine(line));
      expect(found.list(), line).toMatchObject([{ fault: 'quorum-login-refused', where: 'zk.log' }]);
      found.add(parseLogLine('2026-03-01 10:00:09.001 INFO  clients are served'));
      expect(found.list()).toEqual([]);
    }
  });
});
