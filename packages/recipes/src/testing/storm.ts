import type { Client } from '@meerkat/client';
import { FAULT_KINDS, type FaultKind, Nemesis, planFaults, type SeededRandom, VirtualWorld } from '@meerkat/simulator';
import { openStation, type Station } from './line-world.ts';

/** What a storm may do to servers, links and disks; `skew` is a matter of its own. */
const KINDS: readonly FaultKind[] = FAULT_KINDS.filter((kind) => !['wipe', 'rot', 'skew'].includes(kind));

export interface StormOptions {
  readonly seed: number;
  readonly hosts: readonly string[];
  /** Virtual milliseconds of trouble. Default 30,000. */
  readonly durationMs?: number;
  /** Clocks that run apart beyond what the recipes assume. Default false. */
  readonly skews?: boolean;
  /** What happens, line by line. */
  readonly onLine?: ((line: string) => void) | undefined;
}

/** What a worker of a storm has to do with. */
export interface Worker {
  readonly station: Station;
  readonly client: Client;
  readonly random: SeededRandom;
  /** True once everything is healed and it is time to end. */
  readonly isOver: () => boolean;
}

/**
 * Workers on hosts of their own, beside an ensemble of three servers, while everything goes wrong: servers crash, links
 * break, processes stand still for longer than a session lives. Then everything is healed, and the workers end.
 *
 * @param work what one worker does until `isOver`
 * @param everyNow looked at every few virtual milliseconds
 * @param after what must hold in the end, seen by a client of its own
 */
export async function runStorm(
  options: StormOptions,
  work: (worker: Worker) => Promise<void>,
  everyNow: () => void,
  after: (client: Client, world: VirtualWorld) => Promise<void>,
): Promise<void> {
  const { seed, hosts, durationMs = 30_000, skews = false } = options;
  const world = new VirtualWorld({ seed, onLine: options.onLine });
  const random = world.random.fork('storm');
  const ensemble = world.startEnsemble({ servers: 3, restartDelayMs: 500 });
  await world.run(async () => {
    const stations = await Promise.all(hosts.map((host) => openStation(world, ensemble, host)));
    // A second of a server lasts at least as long as one of a client: so much the locks assume.
    for (const host of hosts) world.clockOf(host).setDrift(random.between(0, 20_000));
    for (const { host } of ensemble.servers) world.clockOf(host).setDrift(-random.between(0, 20_000));

    const nemesis = new Nemesis(world, ensemble);
    const kinds: readonly FaultKind[] = skews ? [...KINDS, 'skew'] : KINDS;
    const servers = ensemble.servers.map(({ host }) => host);
    nemesis.unleash(planFaults(random.fork('faults'), { kinds, durationMs, servers, clients: hosts }));
    let isOver = false;
    const isCalm = (): boolean => isOver;
    const pausing = pauseByChance(world, stations, random.fork('pauses'), isCalm);
    const watching = (async () => {
      while (!isOver) {
        everyNow();
        await world.sleep(20);
      }
    })();
    const working = stations.map((station) =>
      work({ station, client: station.client, random: random.fork(`worker ${station.host}`), isOver: isCalm }),
    );
    // An error of a worker is told at once.
    await Promise.race([world.sleep(durationMs), Promise.all(working).then(() => world.sleep(durationMs))]);
    nemesis.heal();
    isOver = true;
    await Promise.all([pausing, watching]);
    await Promise.all(working);
    // Whatever is removed in the background is gone by then, and sessions that nobody has any more are over.
    await Promise.all(stations.map(({ client }) => client.whenConnected()));
    await world.sleep(30_000);
    const judge = await world.connect('judge', { servers: ensemble.connectString, connectTimeoutMs: 60_000 });
    await judge.sync('/');
    await after(judge, world);
    await Promise.all([...stations.map(({ client }) => client.close()), judge.close()]);
  });
}

/** Stops processes: mostly shortly, sometimes for longer than their session lives. */
async function pauseByChance(
  world: VirtualWorld,
  stations: readonly Station[],
  random: SeededRandom,
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    await world.sleep(random.between(100, 5000));
    const station = random.pick(stations);
    station.pause();
    await world.sleep(random.chance(0.5) ? random.between(1, 500) : random.between(2000, 9000));
    station.resume();
  }
}
