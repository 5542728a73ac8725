import { connect, type Socket } from 'node:net';
import { Random } from '../differential/random.ts';
import { connectRequest, Op, RawClient } from '../harness/raw-client.ts';
import { record } from '../harness/record-builder.ts';
import { ServerProcess } from '../harness/server-process.ts';
import { digestResponse, format } from '../sasl/digest-response.ts';
import { makeFrame } from './frames.ts';

export interface FuzzOptions {
  readonly frames: number;
  readonly seed: number;
  onProgress?(frames: number): void;
}

export interface FuzzReport {
  readonly frames: number;
  readonly connections: number;
  /** Of the client that behaves, while the others do not. */
  readonly requests: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly residentBytesBefore: number;
  readonly residentBytesAfter: number;
}

/** How far a connection has come when it begins to send what it should not. */
const STAGES = ['nothing', 'session', 'digest', 'sasl begun', 'sasl done'] as const;
const FRAMES_PER_CONNECTION = 40;
const CONNECTIONS_AT_ONCE = 8;
const BOB = { username: 'bob', password: 'bobsecret' };

/**
 * Sends frames to the client port of a server of ours, before and after authentication, while another client reads and writes.
 *
 * @throws Error when the server ends, refuses the client that behaves, or says that something has gone wrong in it
 */
export async function fuzzClientPort(options: FuzzOptions): Promise<FuzzReport> {
  const server = await ServerProcess.start('meerkat', {
    saslUsers: { bob: BOB.password },
    config: { minSessionTimeout: 1000, tickTime: 500 },
  });
  try {
    return await fuzz(server, options);
  } finally {
    await server.dispose();
  }
}

async function fuzz(server: ServerProcess, { frames, seed, onProgress }: FuzzOptions): Promise<FuzzReport> {
  const residentBytesBefore = server.residentBytes();
  const neighbour = new Neighbour();
  const behaving = neighbour.run(server.port);
  let sent = 0;
  let connections = 0;
  const attack = async (random: Random): Promise<void> => {
    while (sent < frames) {
      sent += FRAMES_PER_CONNECTION;
      connections++;
      await attackOnce(server.port, random);
      if (connections % 250 === 0) onProgress?.(sent);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS_AT_ONCE }, (_, i) => attack(new Random(seed * 1000 + i))));
  neighbour.stop();
  await behaving;
  const ruok = await server.fourLetterWord('ruok');
  if (ruok !== 'imok') throw new Error(`after ${sent} frames the server answers ruok with ${JSON.stringify(ruok)}`);
  const fault = /.*(?:TypeError|RangeError|AssertionError|the server stops|what must hold).*/.exec(server.output);
  if (fault !== null) throw new Error(`the server has said: ${fault[0]}`);
  return {
    frames: sent,
    connections,
    ...neighbour.latencies(),
    residentBytesBefore,
    residentBytesAfter: server.residentBytes(),
  };
}

/** One connection: as far as its stage, then frames, then its end. Resolves once the server has closed it. */
async function attackOnce(port: number, random: Random): Promise<void> {
  const stage = random.pick(STAGES);
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  if (stage !== 'nothing') {
    socket.write(framed(connectRequest({ timeoutMs: 1000 })));
    if (stage === 'digest') {
      socket.write(framed(record().int(-4).int(Op.auth).int(0).ustring('digest').buffer('ann:x').build()));
    }
    if (stage.startsWith('sasl')) socket.write(framed(record().int(1).int(Op.sasl).buffer('').build()));
    if (stage === 'sasl done') await login(socket, closed);
  }
  for (let i = 0; i < FRAMES_PER_CONNECTION; i++) socket.write(makeFrame(random));
  socket.resume();
  // The server answers what it has read, then closes.
  socket.end();
  await closed;
}

/** Waits for the challenge and answers it. */
async function login(socket: Socket, closed: Promise<void>): Promise<void> {
  let received = '';
  const challenged = new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      if (received.includes('algorithm=md5-sess')) resolve();
    });
  });
  await Promise.race([challenged, closed]);
  const nonce = /nonce="([^"]*)"/.exec(received)?.[1] ?? '';
  const answer = format(digestResponse({ ...BOB, nonce }));
  socket.write(framed(record().int(2).int(Op.sasl).buffer(answer).build()));
}

function framed(frame: Buffer): Buffer {
  return record().buffer(frame).build();
}

/** A client that writes and reads one znode after another, and measures how long each takes. */
class Neighbour {
  readonly #latenciesMs: number[] = [];
  #isStopped = false;

  stop(): void {
    this.#isStopped = true;
  }

  async run(port: number): Promise<void> {
    const client = await RawClient.connect(port, { timeoutMs: 10_000 });
    const acl = [{ perms: 31, scheme: 'ip', id: '127.0.0.1' }];
    const path = '/behaves';
    await client.demand(Op.create, record().ustring(path).buffer('0').acls(acl).int(0).build());
    while (!this.#isStopped) {
      const startedMs = performance.now();
      await client.demand(Op.exists, record().ustring(path).bool(false).build());
      await client.demand(Op.ping, undefined, -2);
      this.#latenciesMs.push(performance.now() - startedMs);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await client.close();
  }

  latencies(): Pick<FuzzReport, 'requests' | 'p50Ms' | 'p99Ms'> {
    const sorted = this.#latenciesMs.toSorted((a, b) => a - b);
    const at = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? 0;
    return { requests: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99) };
  }
}
