import type { Client, ConnectOptions } from '@meerkat/client';
import type { PeerCertificate } from '@meerkat/core';
import type { SeededRandom } from './seeded-random.ts';
import type { ClientTap } from './virtual-client.ts';
import type { VirtualEnsemble } from './virtual-ensemble.ts';
import type { VirtualWorld } from './virtual-world.ts';

/** The world that a workload lives in: a virtual one, or a real one with processes and sockets. */
export interface WorkloadHost {
  readonly random: SeededRandom;
  /**
   * Connects to all servers.
   *
   * @param makeTap sees the bytes of each connection to a server, by its name
   * @param certificate what each connection shows; null: none
   */
  connect(
    client: string,
    options: Omit<ConnectOptions, 'servers'>,
    makeTap: (server: string) => ClientTap,
    certificate: PeerCertificate | null,
  ): Promise<Client>;
  /** Resolves when so many milliseconds have passed. */
  sleep(ms: number): Promise<void>;
  /** A background task has thrown. */
  fail(error: unknown): void;
}

/** Clients of an ensemble in a virtual world. */
export function hostWorkload(world: VirtualWorld, ensemble: VirtualEnsemble): WorkloadHost {
  return {
    random: world.random,
    connect: (client, options, makeTap, certificate) =>
      world.connect(client, { ...options, servers: ensemble.connectString }, makeTap, certificate),
    sleep: (ms) => world.sleep(ms),
    fail: (error) => world.fail(error),
  };
}
