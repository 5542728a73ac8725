import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Finds ports of 127.0.0.1 that are free at this moment: all are bound at once, and given back.
 *
 * A process is given each port once (until all 22,528 were given), so that those of several calls differ, too. They are
 * below the range from which systems take the ports of outgoing connections (from 32768 on Linux, from 49152
 * elsewhere), so that no connection takes one before it is used; another process may still be given the same one.
 */
export async function findFreePorts(count: number): Promise<readonly number[]> {
  const bound: { readonly probe: Server; readonly port: number }[] = [];
  while (bound.length < count) {
    at = (at + STEP) % PORTS;
    const port = FIRST_PORT + at;
    const probe = await listen(port);
    if (probe !== null) bound.push({ probe, port });
  }
  await Promise.all(bound.map(({ probe }) => once(probe.close(), 'close')));
  return bound.map(({ port }) => port);
}

const FIRST_PORT = 10_240;
const PORTS = 32_768 - FIRST_PORT;

/** Has no divisor in common with {@link PORTS}, so that each port has its turn; large, since some count up from one. */
const STEP = 7_919;

let at = Math.floor(Math.random() * PORTS);

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
