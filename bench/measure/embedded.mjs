// From `TestServer.start()` to the first answered request, in a warmed-up process.
import { connect } from 'node:net';
import { TestServer } from '@meerkat/testing';
import { locked } from '../measure-lock.mjs';

const STARTS = 100;
/** The first starts are slower: V8 has not compiled anything yet. */
const WARM_UP = 10;

export async function measureEmbedded() {
  const figures = await locked(async () => {
    for (let i = 0; i < WARM_UP; i++) await measureOnce();
    const all = [];
    for (let i = 0; i < STARTS; i++) all.push(await measureOnce());
    return all.sort((a, b) => a - b);
  });
  const row = (title, value) => ({ title, unit: 'ms', reference: [], meerkat: [value], must: { valueMax: 10 } });
  return [
    row('embedded server, start to the first answer, p50', figures[Math.floor(STARTS / 2)]),
    row('embedded server, start to the first answer, p99', figures[Math.ceil(STARTS * 0.99) - 1]),
  ];
}

/** Milliseconds until a client has a session. */
async function measureOnce() {
  const startedMs = performance.now();
  const server = await TestServer.start();
  const socket = connect(server.port, '127.0.0.1');
  socket.write(CONNECT_REQUEST);
  await new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject));
  const elapsedMs = performance.now() - startedMs;
  socket.destroy();
  await server.dispose();
  return elapsedMs;
}

/** ConnectRequest: 45 bytes; version 0, zxid 0, timeout 10,000, session 0, a password of 16 zeros, not read-only. */
const CONNECT_REQUEST = Buffer.from(
  `0000002d${'00'.repeat(12)}00002710${'00'.repeat(8)}00000010${'00'.repeat(17)}`,
  'hex',
);
