import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Finds ports of 127.0.0.1 that are free at this moment: all are bound at once, and released.
 *
 * While this process lives, no other one that asks here is given the same ports, so a server that is killed finds its port free
 * when it starts again. That holds for 44 processes at a time; more of them share the whole range. A process is given 511 ports that
 * differ, then the first again. They are below the range from which systems take the ports of outgoing connections
 * (from 32768 on Linux, from 49152 elsewhere), so that no connection takes one before it is used.
 *
 * @throws Error when too few of them are free
 */
export async function findFreePorts(count: number): Promise<readonly number[]> {
  range ??= claimRange().catch((error) => {
    range = null;
    throw error;
  });
  const { first, size } = await range;
  const bound: { readonly probe: Server; readonly port: number }[] = [];
  for (let tries = 0; tries < size && bound.length < count; tries++) {
    const port = first + (at++ % size);
    const probe = await listen(port);
    if (probe !== null) bound.push({ probe, port });
  }
  await Promise.all(bound.map(({ probe }) => once(probe.close(), 'close')));
  if (bound.length < count) {
    throw new Error(
      `found ${bound.length} free ports from ${first} to ${first + size - 1}, not ${count}: ask for fewer`,
    );
  }
  return bound.map(({ port }) => port);
}

interface Range {
  readonly first: number;
  readonly size: number;
}

const ALL: Range = { first: 10_240, size: 32_768 - 10_240 };
const BLOCK = 512;
const BLOCKS = ALL.size / BLOCK;

let range: Promise<Range> | null = null;
let at = 0;

/** A block that no other process has: this one listens on the first of its ports for as long as it lives. */
async function claimRange(): Promise<Range> {
  const start = Math.floor(Math.random() * BLOCKS);
  for (let i = 0; i < BLOCKS; i++) {
    const port = ALL.first + ((start + i) % BLOCKS) * BLOCK;
    const guard = await listen(port);
    if (guard === null) continue;
    guard.unref();
    return { first: port + 1, size: BLOCK - 1 };
  }
  at = Math.floor(Math.random() * ALL.size);
  return ALL;
}

/** For this process alone, not for all workers of a cluster; who connects is turned away. @returns null when the port is taken */
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
