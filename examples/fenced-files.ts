import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@meerkat/client';
import { type FencedStore, fence, Mutex, NotHeldError } from '@meerkat/recipes';
import { TestServer } from '@meerkat/testing';

const directory = await mkdtemp(join(tmpdir(), 'fenced-'));

/** Stores files, each with the largest token that has written it. Handles one request at a time. */
let turn: Promise<unknown> = Promise.resolve();
const files = createServer((request, response) => {
  const put = async (): Promise<void> => {
    const path = join(directory, encodeURIComponent(request.url ?? ''));
    const token = BigInt(String(request.headers['fencing-token']));
    const kept = BigInt(await readFile(`${path}.token`, 'utf8').catch(() => '0'));
    if (token >= kept) {
      // The token first, so that after a crash in between no older write is accepted.
      await writeFile(`${path}.token`, `${token}`);
      await writeFile(path, request);
    }
    response.writeHead(token >= kept ? 204 : 412).end();
  };
  turn = turn.then(put, put);
});
await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
const { port } = files.address() as AddressInfo;

const store: FencedStore<string, string> = {
  async write(name, content, token) {
    const headers = { 'fencing-token': `${token}` };
    const { status } = await fetch(`http://127.0.0.1:${port}/${name}`, { method: 'PUT', headers, body: content });
    if (status !== 204 && status !== 412) throw new Error(`PUT ${name}: ${status}`);
    return status === 204;
  },
};

await using server = await TestServer.start();
await using ann = await connect(server.connectString);
await using bob = await connect(server.connectString);

const annsLock = await new Mutex(ann, '/locks/report').acquire();
await fence(annsLock, store).write('report', 'by ann');

await server.expireSession(annsLock.sessionId);
const bobsLock = await new Mutex(bob, '/locks/report').acquire();
await fence(bobsLock, store).write('report', 'by bob');

// A delayed write of Ann's: the store refuses it.
console.log(`taken from ann: ${await store.write('report', 'by ann, late', annsLock.token)}`);
// Once she checks, she does not even ask the store.
const failure = await fence(annsLock, store)
  .write('report', 'by ann, later')
  .catch((error: unknown) => error);
console.log(`ann is told: ${failure instanceof NotHeldError}`);

console.log(await readFile(join(directory, encodeURIComponent('/report')), 'utf8'));
await bobsLock.release();
files.closeAllConnections();
files.close();
await rm(directory, { recursive: true });

// Prints:
//   taken from ann: false
//   ann is told: true
//   by bob
