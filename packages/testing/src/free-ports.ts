import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Finds ports of 127.0.0.1 that are free at this moment: all are bound at once, and given back.
 *
 * No other process that asks here is given the same ones while this one lives, so a server that is killed finds its port free
 * when it starts again. This process is given 2,016 different ones, then the first again. They are below the range from
 * which systems take the ports of outgoing connections (from 32768 on Linux, from 49152 elsewhere), so that no connection takes
 * one before it is used.
 *
 * @throws Error when other processes have all of them, or none of those of this process is free
 */
export async function findFreePorts(count: number): Promise<readonly number[]> {
  const bound: { readonly probe: Server; readonly port: number }[] = [];
  let rounds = 0;
  while (bound.length < count) {
    const port = next.shift();
    if (port === undefined) {
      if (!(await addPorts()) && ++rounds > 1) throw new Error(`of ${own.length * (BLOCK - 1)} ports none is free`);
      continue;
    }
    const probe = await listen(port);
    if (probe !== null) bound.push({ probe, port });
  }
  await Promise.all(bound.map(({ probe }) => once(probe.close(), 'close')));
  return bound.map(({ port }) => port);
}

const FIRST_PORT = 10_240;
const BLOCK = 64;
const BLOCKS = (32_768 - FIRST_PORT) / BLOCK;
/** That one process has. */
const BLOCKS_MAX = 32;

/** Those that are given next. */
const next: number[] = [];
/** First ports of the blocks that this process has: it listens there for as long as it lives. */
const own: number[] = [];

/** Adds those of a block that no process has, or of all own ones again. @returns false when there is no other one */
async function addPorts(): Promise<boolean> {
  const first = Math.floor(Math.random() * BLOCKS);
  for (let i = 0; i < BLOCKS && own.length < BLOCKS_MAX; i++) {
    const port = FIRST_PORT + ((first + i) % BLOCKS) * BLOCK;
    const guard = await listen(port);
    if (guard === null) continue;
    guard.unref();
    own.push(port);
    next.push(...portsOf(port));
    return true;
  }
  if (own.length === 0) throw new Error(`other processes have all ports from ${FIRST_PORT} to 32767: end some of them`);
  next.push(...own.flatMap(portsOf));
  return false;
}

function portsOf(first: number): readonly number[] {
  return Array.from({ length: BLOCK - 1 }, (_, i) => first + 1 + i);
}

/** @returns null when the port is taken */
async function listen(port: number): Promise<Server | null> {
  const server = createServer((socket) => socket.destroy()).listen({ port, host: '127.0.0.1', exclusive: true });
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return null;
    throw error;
  }
}
