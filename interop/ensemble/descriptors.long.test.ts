/** Unknown clients that connect and stay, on every port of every server, with a low limit of file descriptors. */
import { connect, type Socket } from 'node:net';
import { connect as connectClient } from '@meerkat/client';
import { afterEach, expect, onTestFailed, test } from 'vitest';
import { Ensemble, THREADED } from './ensemble.ts';
import { startWriter, waitForProgress } from './load.ts';
import { observerInfo } from './raw-peer.ts';

const DESCRIPTORS_MAX = 128;
/** Concurrent connections of one crowd to one port: more than the share of any port. */
const CROWD = 80;
/** Additional connections of each crowd that the server has closed and this end has not. */
const HALF_CLOSED_MAX = 80;
/** Milliseconds until a closed connection is reopened. */
const AGAIN_MS = 500;
/** Milliseconds in which a client must connect, on a busy machine. */
const WAY_IN_MAX_MS = 8000;

const crowds: Crowd[] = [];

afterEach(() => {
  for (const crowd of crowds.splice(0)) crowd.end();
});

test('affect neither the servers, nor their logs, nor elections, nor new clients', async () => {
  const place = { kind: 'meerkat', descriptorsMax: DESCRIPTORS_MAX } as const;
  // A new log file and snapshot every few txns.
  const threaded = { ...THREADED, descriptorsMax: DESCRIPTORS_MAX };
  const ensemble = await Ensemble.start([place, threaded, threaded], { snapCount: 20, 'autopurge.purgeInterval': 0 });
  onTestFailed(() => console.log(ensemble.logs));
  try {
    await using writer = await startWriter(ensemble.connectString, '/written', 60_000);
    await waitForProgress([writer]);
    const ports = ensemble.members.flatMap(({ server, quorumPort, electionPort }) => [
      server.port,
      quorumPort,
      electionPort,
    ]);
    // The quorum port of a leader also serves observers that are not in the member list.
    const sayings: readonly Saying[] = [
      (n) => (n % 2 === 0 ? RUOK : null),
      (n) => (n % 2 === 0 ? observerInfo({ serverId: 100 + n, acceptedEpoch: 0 }) : null),
      (n) => (n % 2 === 0 ? RUOK : null),
    ];
    crowds.push(...ports.map((port, i) => new Crowd(port, sayings[i % 3]!)));
    while (crowds.some(({ dialled }) => dialled < 2 * CROWD)) await waitForProgress([writer]);
    for (const { server } of ensemble.members) await comeIn(server.port);

    const dying = await ensemble.leader();
    await dying.server.kill();
    await waitForProgress([writer]);
    const startMs = performance.now();
    await dying.server.restart();
    console.log(`the server that had died served within ${(performance.now() - startMs).toFixed(0)} ms`);
    await waitForProgress([writer]);
    for (let round = 0; round < 10; round++) {
      for (const { server } of ensemble.members) await comeIn(server.port);
    }
    const { count } = await writer.finish();
    await using client = await connectClient(ensemble.connectString);
    await client.sync();
    // Plus `register` and `mine`.
    expect((await client.children('/written')).children).toHaveLength(count + 2);
    for (const { server } of ensemble.members) expect(server.output).not.toMatch(/EMFILE|the server stops/);
  } finally {
    await ensemble.dispose();
  }
});

/** Connects a new client to one server. */
async function comeIn(port: number): Promise<void> {
  const startMs = performance.now();
  await using client = await connectClient(`127.0.0.1:${port}`, { connectTimeoutMs: 30_000 });
  await client.sync();
  const tookMs = performance.now() - startMs;
  console.log(`a client got in within ${tookMs.toFixed(0)} ms`);
  expect(tookMs).toBeLessThan(WAY_IN_MAX_MS);
}

/** The bytes that connection n sends; null: none. */
type Saying = (n: number) => Uint8Array | null;
/** Not a valid message on the ports between servers. */
const RUOK = new TextEncoder().encode('ruok');

/**
 * Connections to one port, from many addresses. Some send nothing, some send one request, and the last ones that the
 * server closed stay open at this end. Closed connections are reopened. At most `CROWD` and `HALF_CLOSED_MAX` are open
 * at once: without a limit this process would run out of descriptors before the servers.
 */
class Crowd {
  dialled = 0;
  readonly #port: number;
  readonly #say: Saying;
  readonly #sockets = new Set<Socket>();
  /** Those closed by the server, oldest first. */
  readonly #halfClosed = new Set<Socket>();
  #isOver = false;

  constructor(port: number, say: Saying) {
    this.#port = port;
    this.#say = say;
    for (let i = 0; i < CROWD; i++) this.#dial();
  }

  end(): void {
    this.#isOver = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  #dial(): void {
    if (this.#isOver) return;
    const n = this.dialled++;
    const localAddress = `127.0.0.${10 + (n % 5)}`;
    const socket = connect({ port: this.#port, host: '127.0.0.1', localAddress, allowHalfOpen: true });
    this.#sockets.add(socket);
    let isReplaced = false;
    const replace = (): void => {
      if (!isReplaced) setTimeout(() => this.#dial(), AGAIN_MS);
      isReplaced = true;
    };
    socket.on('error', () => {}); // to be shut out is the point
    socket.resume();
    const word = this.#say(n);
    if (word !== null) socket.write(word);
    socket.once('end', () => {
      this.#halfClosed.add(socket);
      for (const oldest of this.#halfClosed) {
        if (this.#halfClosed.size <= HALF_CLOSED_MAX) break;
        this.#halfClosed.delete(oldest);
        oldest.destroy();
      }
      replace();
    });
    socket.once('close', () => {
      this.#sockets.delete(socket);
      this.#halfClosed.delete(socket);
      replace();
    });
  }
}
