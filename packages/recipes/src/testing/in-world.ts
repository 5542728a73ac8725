import type { VirtualServer } from '@meerkat/simulator';
import { Fleet } from './fleet.ts';
import { openStation, type Station } from './station.ts';

/**
 * Runs a program with some stations on one server that never fails. A server that is crashed stays down until it is
 * started.
 */
export async function inWorld<T, Count extends number>(
  count: Count,
  program: (stations: Stations<Count>, tools: Tools) => Promise<T>,
): Promise<T> {
  const fleet = new Fleet(1, { servers: 1 });
  const { world, ensemble } = fleet;
  return fleet.run(async () => {
    const hosts = Array.from({ length: count }, (_, i) => `host${i + 1}`);
    const stations = await Promise.all(hosts.map((host) => openStation(world, ensemble, host)));
    return program(stations as unknown as Stations<Count>, {
      server: ensemble.servers[0]!,
      sleep: (ms) => world.sleep(ms),
      cut: (host) => {
        world.network.block(host, 'zk1');
        world.network.block('zk1', host);
      },
      heal: () => world.network.heal(),
      breakConnections: () => {
        for (const end of world.network.openEnds) end.breakStream();
      },
    });
  });
}

/** A tuple type, so that the compiler knows the first few stations exist. */
export type Stations<Count extends number> = readonly [...Named<Count>, ...Station[]];

type Named<Count extends number, Some extends readonly Station[] = []> = number extends Count
  ? []
  : Some['length'] extends Count
    ? Some
    : Named<Count, [...Some, Station]>;

export interface Tools {
  readonly server: VirtualServer;
  readonly sleep: (ms: number) => Promise<void>;
  readonly cut: (host: string) => void;
  readonly heal: () => void;
  readonly breakConnections: () => void;
}

/** The children of a znode. */
export async function names(station: Station, path = '/lock'): Promise<readonly string[]> {
  const { children } = await station.client.children(path, { read: 'linearizable' });
  return children;
}
