import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CoreOptions, type Disk, DiskError, type TraceEvent } from '@meerkat/core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeConfiguration } from './config/options.ts';
import { ServerError } from './exit-codes.ts';
import { TextLogger } from './logger.ts';
import type { RunningServer } from './running-server.ts';
import { startServer } from './server.ts';

let directory = '';
const servers: RunningServer[] = [];
const log: string[] = [];
const logger = new TextLogger('info', (line) => log.push(line.replace(/^[-\d]+ [:.\d]+ /, '').trimEnd()));

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-server-'));
  log.length = 0;
});

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function start(core: Partial<CoreOptions> = {}, trace?: (event: TraceEvent) => void): Promise<RunningServer> {
  const configuration = makeConfiguration(directory, { core, server: { clientHost: '127.0.0.1', clientPort: 0 } });
  const server = await startServer(configuration, {
    logger,
    ...(trace === undefined ? {} : { trace: { emit: trace } }),
  });
  servers.push(server);
  return server;
}

/** Sends bytes and collects everything until the server closes. */
async function converse(server: RunningServer, bytes: Uint8Array): Promise<Buffer> {
  const socket = connect(server.address.port, server.address.host);
  socket.write(bytes);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** A connect request for a new session (ConnectRequest), then closeSession (op −11), written by hand. */
const CONNECT_AND_CLOSE = Buffer.from(
  '0000002d' + // 45 bytes: version 0, zxid 0, timeout 10000, session 0, password of 16 bytes, read-only false
    '00000000' +
    '0000000000000000' +
    '00002710' +
    '0000000000000000' +
    '00000010' +
    '00'.repeat(16) +
    '00' +
    '00000008' + // 8 bytes: xid 1, op -11
    '00000001' +
    'fffffff5',
  'hex',
);

test('a session is created, closed and kept in the log across a restart', async () => {
  const kinds: string[] = [];
  const first = await start({}, (event) => kinds.push(event.kind));
  const answer = await converse(first, CONNECT_AND_CLOSE);
  // ConnectResponse: 37 bytes with the timeout granted; then a reply header with xid 1, zxid 2 and no error.
  expect(answer.readInt32BE(0)).toBe(37);
  expect(answer.readInt32BE(8)).toBe(10_000);
  expect(answer.subarray(41).toString('hex')).toBe('00000010' + '00000001' + '0000000000000002' + '00000000');
  expect(kinds).toContain('log-synced');
  await first.stop();
  const second = await start();
  expect(second.view.lastZxid).toBe(2);
  expect(second.view.sessionCount).toBe(0);
});

test('bad input closes the connection, and the log names the peer and the reason', async () => {
  const server = await start();
  expect(await converse(server, Buffer.from('7fffffff', 'hex'))).toHaveLength(0);
  await expect
    .poll(() => log.find((line) => line.startsWith('WARN')))
    .toMatch(
      /^WARN {2}client 127\.0\.0\.1:\d+ closed: it announced a frame of 2147483647 bytes, and jute\.maxbuffer allows 1048575$/,
    );
  expect(server.view.isServing).toBe(true);
});

test('connections beyond maxClientCnxns are closed, with a line in the log', async () => {
  const server = await start({ connectionsPerHostMax: 1 });
  const first = connect(server.address.port, server.address.host);
  await expect.poll(() => server.view.connectionCount).toBe(1);
  expect(await converse(server, Buffer.from('srvr'))).toHaveLength(0);
  expect(server.view.stats.connectionsRefused).toBe(1);
  expect(log.some((line) => line.includes('refused: its address has 1 connections'))).toBe(true);
  first.destroy();
});

test('two servers cannot have one directory, in one process either', async () => {
  await start();
  await expect(start()).rejects.toMatchObject({ name: 'ServerError', exitCode: 3 });
});

test('an aborted start leaves nothing behind', async () => {
  const controller = new AbortController();
  const configuration = makeConfiguration(directory, { server: { clientHost: '127.0.0.1', clientPort: 0 } });
  const starting = startServer(configuration, { signal: controller.signal });
  controller.abort();
  await starting.then(
    (server) => servers.push(server),
    (error) => expect(error).toBeInstanceOf(ServerError),
  );
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  await start();
});

test('a killed server answers nothing more and leaves its directory to the next one', async () => {
  const server = await start();
  const socket = connect(server.address.port, server.address.host);
  socket.write(CONNECT_AND_CLOSE.subarray(0, 49));
  // Answered, so it is in the log.
  await once(socket, 'data');
  const expiring = server.expireSession(server.view.sessions()[0]?.id ?? 0n);
  const killed = server.kill();
  await expect(expiring).rejects.toThrow('the server was killed');
  await killed;
  await server.stop();
  const next = await start();
  expect(next.view.sessionCount).toBe(1);
  await expect(next.expireSession(1n)).resolves.toBe(false);
  await expect(next.expireSession(next.view.sessions()[0]?.id ?? 0n)).resolves.toBe(true);
  expect(next.view.sessionCount).toBe(0);
  socket.destroy();
});

test('a paused server does not move until it is resumed; stop resumes it', async () => {
  const server = await start();
  const socket = connect(server.address.port, server.address.host);
  await expect.poll(() => server.view.connectionCount).toBe(1);
  server.pause();
  let answer = '';
  const closed = once(socket, 'close');
  socket.on('data', (chunk) => {
    answer += chunk;
  });
  socket.write('srvr');
  // Another server in this process continues to serve meanwhile.
  const configuration = makeConfiguration(join(directory, 'other'), {
    server: { clientHost: '127.0.0.1', clientPort: 0 },
  });
  const other = await startServer(configuration);
  servers.push(other);
  expect(String(await converse(other, Buffer.from('srvr')))).toContain('Mode: standalone');
  expect(answer).toBe('');
  server.resume();
  await closed;
  expect(answer).toContain('Mode: standalone');
  server.pause();
  await server.stop();
});

test('stop does not wait for clients that stay connected', async () => {
  const server = await start();
  const socket = connect(server.address.port, server.address.host);
  await expect.poll(() => server.view.connectionCount).toBe(1);
  await server.stop();
  socket.destroy();
});

test('a disk that is put before the files is the one that the core sees', async () => {
  const asked: string[] = [];
  const configuration = makeConfiguration(directory, { server: { clientHost: '127.0.0.1', clientPort: 0 } });
  const starting = startServer(configuration, {
    logger,
    decorateDisk: (disk, deliver) =>
      new Proxy(disk, {
        get(files, name: keyof Disk) {
          if (name !== 'makeDirectory') return files[name].bind(files);
          const makeDirectory: Disk['makeDirectory'] = (path, done) => {
            asked.push(path);
            setImmediate(() => deliver(() => done(new DiskError('create directory', path, 'ENOSPC'), undefined)));
          };
          return makeDirectory;
        },
      }),
  });
  await expect(starting).rejects.toThrow(/ENOSPC.*the disk is full: make room/);
  expect(asked).toEqual([expect.stringContaining(directory)]);
});
