import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Finds ports of 127.0.0.1 that are free at this moment: all are bound at once, so that they differ, and given back.
 *
 * They are drawn below the range from which systems take the ports of outgoing connections (from 32768 on Linux, from
 * 49152 elsewhere), so that no connection takes one before it is used; a server that draws the same one still may.
 */
export async function findFreePorts(count: number): Promise<readonly number[]> {
  const bound: { readonly probe: Server; readonly port: number }[] = [];
  while (bound.length < count) {
    const port = FIRST_PORT + Math.floor(Math.random() * (END_PORT - FIRST_PORT));
    const probe = await listen(port);
    if (probe !== null) bound.push({ probe, port });
  }
  await Promise.all(bound.map(({ probe }) => once(probe.close(), 'close')));
  return bound.map(({ port }) => port);
}

const FIRST_PORT = 10_240;
const END_PORT = 32_768;

/** @returns null when the port is taken */
async function listen(port: number): Promise<Server | null> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return null;
    throw error;
  }
}
