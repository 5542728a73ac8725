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

/** A simulation of a storm: crashed servers are restarted, since disks fail, too. */
export function simulateStorm(
  title: string,
  seedCount: number,
  program: (fleet: Fleet, seed: number) => Promise<void>,
): void {
  simulate(title, seedCount, program, () => ({ restartDelayMs: 500 }));
}

/** What a worker acquires in each round: null when it did not. It fails only at its limit, and then holds nothing. */
export type Take = (worker: Worker) => Promise<{ readonly held: Held; readonly access: Access } | null>;

/**
 * The usual storm: four workers repeatedly acquire something, write while they hold it, and release it; the store
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
  /** Called once with each worker and its holding. */
  readonly onBegin?: ((worker: Worker) => void) | undefined;
  readonly onTaken?: ((held: Held) => void) | undefined;
  /** Called with a holding that is released while it is certain. */
  readonly onGivenBack?: ((held: Held) => void) | undefined;
  /** Called in the end with the committed history, unless no server has its beginning. */
  readonly check?: ((tree: CommittedTree) => void) | undefined;
}

/** Releases it at the end of a scope. */
function endOf(held: Held, onGivenBack: ContendOptions['onGivenBack']): AsyncDisposable & { readonly held: Held } {
  return {
    held,
    [Symbol.asyncDispose]: () => {
      if (held.isHeld) onGivenBack?.(held);
      return held.release();
    },
  };
}

/** A waiting call fails only when it is cancelled, and then holds nothing. */
function expectGivenUp(error: unknown): never {
  if (error instanceof ZooKeeperError) {
    expect(error.code, `what ends a wait: ${error.message}`).toMatch(/^(ABORTED|TIMEOUT)$/);
    expect(error.outcome, `after a cancelled call: ${error.message}`).toBe('not-applied');
  }
  throw error;
}

/**
 * The margin of holdings in a storm that `skews`: a client's clock may be slow by 5 % while a server's is fast by 5 %,
 * sessions live for 4000 ms, and the clocks of servers drift by more than their leases allow for (syncLimit, 5, times
 * the tick, 100 ms). In other storms there is no margin.
 */
export const SKEWED_MARGIN_MS = 1500;

/** Sometimes a short limit, mostly none. */
export function drawLimits(random: SeededRandom): CallOptions {
  return random.chance(0.3) ? { timeoutMs: random.between(1, 6000) } : {};
}

/** The faults of servers, links and disks in a storm; `skew` is a separate option. */
const KINDS: readonly FaultKind[] = FAULT_KINDS.filter((kind) => !['wipe', 'rot', 'skew'].includes(kind));

export interface StormOptions {
  readonly hosts: readonly string[];
  /** Virtual milliseconds with faults. Default 30,000. */
  readonly durationMs?: number;
  /** Clock drift beyond what the recipes assume. Default false. */
  readonly skews?: boolean;
}

/** The context of a worker of a storm. */
export interface Worker {
  readonly station: Station;
  readonly client: Client;
  readonly random: SeededRandom;
  /** True once all faults are healed and it is time to end. */
  readonly isOver: () => boolean;
  readonly fleet: Fleet;
}

/**
 * Workers on hosts of their own, with an ensemble of three servers, under faults: servers crash, links break, processes
 * are paused for longer than a session lives. Then all faults are healed, and the workers end.
 *
 * @param work runs one worker until `isOver`
 * @param everyNow called every few virtual milliseconds
 * @param after checks what must hold in the end, with a client of its own
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
  // A second of a server lasts at least as long as one of a client: the locks assume that.
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
  // Background removals are complete by then, and abandoned sessions have expired.
  await Promise.all(stations.map(({ client }) => client.whenConnected()));
  await world.sleep(30_000);
  const observer = await fleet.connectAs('judge');
  await observer.sync('/');
  await after(observer);
  await Promise.all([...stations.map(({ client }) => client.close()), observer.close()]);
}

/** Pauses processes: mostly briefly, sometimes for longer than their session lives. */
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
