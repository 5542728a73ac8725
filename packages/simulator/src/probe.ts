import type { Client } from '@meerkat/client';
import type { VirtualWorld } from './virtual-world.ts';

/** The znode that a probe writes. */
export const PROBE_PATH = '/probe';

/** Connects the client that finds out whether a healed ensemble works. It may do everything. */
export function connectProbe(world: VirtualWorld, servers: string, connectTimeoutMs: number): Promise<Client> {
  return world.connect('probe', {
    auth: [{ scheme: 'digest', auth: 'super:super' }],
    servers,
    sessionTimeoutMs: 6000,
    connectTimeoutMs,
  });
}
