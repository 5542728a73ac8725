import { type CallOptions, type Client, ZooKeeperError } from '@meerkat/client';
import {
  type CommittedTree,
  FAULT_KINDS,
  type FaultKind,
  type SeededRandom,
  type VirtualWorld,
} from '@meerkat/simulator';
import { expect } from 'vitest';
import type { Held } from '../kernel/holding.ts';
import { NotHeldError } from '../kernel/not-held-error.ts';
import type { Access, FencedStore } from './fenced-store.ts';
import type { Fleet } from './fleet.ts';
import { simulate } from './simulate.ts';
import { openStation, type Station } from './station.ts';

/** A simulation of a storm: as others, but that servers which end by themselves come back, since the disks fail, too. */
export function simulateStorm(
  title: string,
  seedCount: number,
  program: (fleet: Fleet, seed: number) => Promise<void>,
): void {
  simulate(title, seedCount, program, () => ({ restartDelayMs: 500 }));
}

/** What a worker takes in each round: null when it did not get it. It fails only at its limit, and then has nothing. */
export type Take = (worker: Worker) => Promise<{ readonly held: Held; readonly access: Access } | null>;

/**
 * The usual storm: four workers take something again and again, write while they have it, and give it back; the store
 * checks them.
 *
 * @param lines znodes below which nothing may be left in the end
 */
export async function contendInStorm(
  fleet: Fleet,
  store: FencedStore,
  lines: readonly string[],
  take: Take,
  options: ContendOptions = {},
): Promise<void> {
  const { onBegin, onTaken, onGivenBack } = options;
  const work = async (worker: Worker): Promise<void> => {
    const { station, client, random, isOver } = worker;
    const { host } = station;
    onBegin?.(worker);
    while (!isOver()) {
      try {
        await client.ensurePath('/entries');
        const taken = await take(worker).catch(expectGivenUp);
        if (taken === null) store.onReleased(host);
        else {
          await using ending = endOf(taken.held, onGivenBack);
          const { held } = ending;
          onTaken?.(held);
          store.onAcquired(host, held, taken.access);
          for (let i = random.between(0, 3); i > 0; i--) {
            await station.sleep(random.between(1, 300));
            if (taken.access === 'read') continue;
            if (held.isHeld) store.writeOutside(held);
            await store.writeInside(held);
          }
          store.onReleased(host);
        }
      } catch (error) {
        store.onReleased(host);
        if (!(error instanceof ZooKeeperError) && !(error instanceof NotHeldError)) throw error;
      }
      await station.sleep(random.between(1, 200));
    }
  };
  const after = async (observer: Client): Promise<void> => {
    await store.checkWritten(observer);
    expect(store.acquired).toBeGreaterThan(0);
    for (const path of lines) expect((await observer.exists(path))?.numChildren ?? 0, path).toBe(0);
    if (options.check === undefined) return;
    const tree = await fleet.committedTree();
    if (tree !== null) options.check(tree);
  };
  await runStorm(fleet, { ...options, hosts: ['one', 'two', 'three', 'four'] }, work, () => store.check(), after);
}

export interface ContendOptions extends Pick<StormOptions, 'skews'> {
  /** Called with each worker once, and with what was taken. */
  readonly onBegin?: ((worker: Worker) => void) | undefined;
  readonly onTaken?: ((held: Held) => void) | undefined;
  /** Called with what is given back while it is held for certain. */
  readonly onGivenBack?: ((held: Held) => void) | undefined;
  /** Called in the end with everything that was committed, unless no server has the beginning any more. */
  readonly check?: ((tree: CommittedTree) => void) | undefined;
}

/** Gives it back at the end of a scope. */
function endOf(held: Held, onGivenBack: ContendOptions['onGivenBack']): AsyncDisposable & { readonly held: Held } {
  return {
    held,
    [Symbol.asyncDispose]: () => {
      if (held.isHeld) onGivenBack?.(held);
      return held.release();
    },
  };
}

/** A caller that waits goes through everything else, and has nothing when he gives up. */
function expectGivenUp(error: unknown): never {
  if (error instanceof ZooKeeperError) {
    expect(error.code, `what ends a wait: ${error.message}`).toMatch(/^(ABORTED|TIMEOUT)$/);
    expect(error.outcome, `of what was given up: ${error.message}`).toBe('not-applied');
  }
  throw error;
}

/**
 * How much before their deadline holdings end in a storm that `skews`: a client's clock may be slow by 5 % while a server's is
 * fast by 5 %, sessions live for 4000 ms, and the clocks of servers run apart by more than their leases allow for (syncLimit,
 * 5, times the tick, 100 ms). In other storms there is no margin.
 */
export const SKEWED_MARGIN_MS = 1500;

/** Sometimes a short limit, mostly none. */
export function drawLimits(random: SeededRandom): CallOptions {
  return random.chance(0.3) ? { timeoutMs: random.between(1, 6000) } : {};
}

/** What a storm may do to servers, links and disks; `skew` is a matter of its own. */
const KINDS: readonly FaultKind[] = FAULT_KINDS.filter((kind) => !['wipe', 'rot', 'skew'].includes(kind));

export interface StormOptions {
  readonly hosts: readonly string[];
  /** Virtual milliseconds of trouble. Default 30,000. */
  readonly durationMs?: number;
  /** Clocks that run apart beyond what the recipes assume. Default false. */
  readonly skews?: boolean;
}

/** What a worker of a storm has to do with. */
export interface Worker {
  readonly station: Station;
  readonly client: Client;
  readonly random: SeededRandom;
  /** True once everything is healed and it is time to end. */
  readonly isOver: () => boolean;
  readonly fleet: Fleet;
}

/**
 * Workers on hosts of their own, beside an ensemble of three servers, while everything goes wrong: servers crash, links
 * break, processes stand still for longer than a session lives. Then everything is healed, and the workers end.
 *
 * @param work what one worker does until `isOver`
 * @param everyNow looked at every few virtual milliseconds
 * @param after what must hold in the end, with a client of its own
 */
export async function runStorm(
  fleet: Fleet,
  { hosts, durationMs = 30_000, skews = false }: StormOptions,
  work: (worker: Worker) => Promise<void>,
  everyNow: () => void,
  after: (client: Client) => Promise<void>,
): Promise<void> {
  const { world, ensemble } = fleet;
  const random = world.random.fork('storm');
  const stations = await Promise.all(hosts.map((host) => openStation(world, ensemble, host)));
  // A second of a server lasts at least as long as one of a client: so much the locks assume.
  for (const host of hosts) world.clockOf(host).setDrift(random.between(0, 20_000));
  for (const { host } of ensemble.servers) world.clockOf(host).setDrift(-random.between(0, 20_000));

  fleet.unleash(durationMs, hosts, skews ? [...KINDS, 'skew'] : KINDS, null);
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
    work({ station, client: station.client, random: random.fork(`worker ${station.host}`), isOver: isCalm, fleet }),
  );
  // An error of a worker is reported at once.
  await Promise.race([world.sleep(durationMs), Promise.all(working).then(() => world.sleep(durationMs))]);
  fleet.heal();
  isOver = true;
  await Promise.all([pausing, watching]);
  await Promise.all(working);
  // Whatever is removed in the background is gone by then, and sessions that no client has any more are over.
  await Promise.all(stations.map(({ client }) => client.whenConnected()));
  await world.sleep(30_000);
  const observer = await fleet.connectAs('judge');
  await observer.sync('/');
  await after(observer);
  await Promise.all([...stations.map(({ client }) => client.close()), observer.close()]);
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
