import type { Client } from '@meerkat/client';
import type { VirtualEnsemble } from './virtual-ensemble.ts';
import type { VirtualWorld } from './virtual-world.ts';

/** The znode that a probe writes. */
export const PROBE_PATH = '/probe';

/** Connects the client that finds out whether a healed ensemble works. It may do everything. */
export function connectProbe(
  world: VirtualWorld,
  ensemble: VirtualEnsemble,
  connectTimeoutMs: number,
): Promise<Client> {
  return world.connect('probe', {
    auth: [{ scheme: 'digest', auth: 'super:super' }],
    servers: ensemble.connectString,
    sessionTimeoutMs: 6000,
    connectTimeoutMs,
  });
}
