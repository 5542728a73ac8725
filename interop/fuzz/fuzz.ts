import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { Random } from '../differential/random.ts';
import { makeFrame } from './frames.ts';
import { type FuzzPort, startTarget, type Target } from './targets.ts';

export interface FuzzOptions {
  readonly port: FuzzPort;
  readonly withTls: boolean;
  readonly frames: number;
  readonly seed: number;
  onProgress?(frames: number): void;
}

export interface FuzzReport {
  readonly frames: number;
  readonly connections: number;
  /** Of the well-behaved client during the attack. */
  readonly turns: Turns;
  /** Of the server with the highest memory usage. */
  readonly residentBytesBefore: number;
  readonly residentBytesAfter: number;
}

/** Turns of a write and a read: their number, and their duration in milliseconds. */
export interface Turns {
  readonly turns: number;
  /** Attackers with the servers' password can displace followers: see docs/security/quorum-sasl.md. */
  readonly reconnects: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

const FRAMES_PER_CONNECTION = 100;
/** Many of them only wait to be closed. */
const CONNECTIONS_AT_ONCE = 96;

/**
 * Sends frames to a port of our servers, before and after authentication, while a client reads and writes.
 *
 * @throws Error when a server exits, refuses the well-behaved client, or logs an internal error
 */
export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  // No `await using`, which the transformer of run.mjs does not lower for Node.js 20.
  const target = await startTarget(options.port, options.withTls);
  try {
    return await attack(target, options);
  } finally {
    await target.dispose();
  }
}

async function attack(target: Target, { frames, seed, onProgress }: FuzzOptions): Promise<FuzzReport> {
  const residentBytes = (): number => Math.max(...target.servers.map((server) => server.residentBytes()));
  const residentBytesBefore = residentBytes();
  const neighbour = new Neighbour(target.clientPort);
  await neighbour.served;
  let sent = 0;
  let connections = 0;
  const run = async (random: Random): Promise<void> => {
    while (sent < frames && !neighbour.hasEnded) {
      sent += FRAMES_PER_CONNECTION;
      const number = ++connections;
      await attackOnce(target, random);
      if (number % 5000 === 0) onProgress?.(sent);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS_AT_ONCE }, (_, i) => run(new Random(seed * 1000 + i))));
  const turns = await neighbour.stop().catch((error: unknown) => {
    const logs = target.servers.map(({ output }) => output.slice(-5000)).join('\n----\n');
    throw new Error(`after ${sent} frames the client that behaves fails\n${logs}`, { cause: error });
  });
  for (const server of target.servers) {
    const ruok = await server.fourLetterWord('ruok');
    if (ruok !== 'imok') throw new Error(`after ${sent} frames a server answers ruok with ${JSON.stringify(ruok)}`);
    const fault = /.*(?:TypeError|RangeError|AssertionError|the server stops|what must hold).*/.exec(server.output);
    if (fault !== null) throw new Error(`a server has said: ${fault[0]}`);
  }
  return {
    frames: sent,
    connections,
    turns,
    residentBytesBefore,
    residentBytesAfter: residentBytes(),
  };
}

/** One connection: advances to its stage, sends frames, and ends. Resolves once the server has closed it. */
async function attackOnce(target: Target, random: Random): Promise<void> {
  const socket = await target.begin(random);
  const closed = new Promise<void>((resolve) => {
    if (socket.destroyed) resolve();
    else socket.once('close', () => resolve());
  });
  const frames = Array.from({ length: FRAMES_PER_CONNECTION }, () => makeFrame(random, target.corpus));
  // In one chunk or in many: chunk boundaries must not matter.
  if (random.oneIn(4)) for (const frame of frames) socket.write(frame);
  else socket.write(Buffer.concat(frames));
  socket.resume();
  // The server answers what it has read, then closes; or it waits for the rest of a message until its own deadline.
  socket.end();
  const patience = setTimeout(() => socket.destroy(), PATIENCE_MS);
  await closed;
  clearTimeout(patience);
}

/** Milliseconds after which a connection that the server does not close is destroyed. */
const PATIENCE_MS = 2000;

/** A client that writes and reads a znode in turn, in a separate process because this one is busy. */
class Neighbour {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #ended: Promise<unknown>;
  /** Resolves after its first turn, or when it has exited. */
  readonly served: Promise<unknown>;
  #output = '';
  #errors = '';

  constructor(port: number) {
    const script = fileURLToPath(new URL('./neighbour.mjs', import.meta.url));
    this.#child = spawn(process.execPath, [script, String(port)], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#ended = once(this.#child, 'close');
    this.served = Promise.race([once(this.#child.stdout, 'data'), this.#ended]);
    this.#child.stdout.on('data', (chunk: Buffer) => {
      this.#output += chunk.toString();
    });
    this.#child.stderr.on('data', (chunk: Buffer) => {
      this.#errors += chunk.toString();
    });
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null;
  }

  /** @throws Error when it was not served until the end */
  async stop(): Promise<Turns> {
    this.#child.stdin.on('error', () => {});
    this.#child.stdin.end();
    await this.#ended;
    if (this.#child.exitCode !== 0) throw new Error(`the client that behaves: ${this.#errors}`);
    return JSON.parse(this.#output.trim().split('\n').at(-1) ?? '') as Turns;
  }
}
