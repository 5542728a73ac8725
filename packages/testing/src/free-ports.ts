import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/**
 * Finds ports of 127.0.0.1 that are free at this moment: all are bound at once, so that they differ, and given back.
 * Another program may take one before it is used.
 */
export async function findFreePorts(count: number): Promise<readonly number[]> {
  const probes = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(probes.map((probe) => once(probe, 'listening')));
  const ports = probes.map((probe) => (probe.address() as AddressInfo).port);
  await Promise.all(probes.map((probe) => once(probe.close(), 'close')));
  return ports;
}
