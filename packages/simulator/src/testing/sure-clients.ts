import { env } from 'node:process';
import { type Client, type Clock, connect } from '@meerkat/client';
import { expect, test } from 'vitest';
import { type FaultKind, planFaults } from '../fault.ts';
import type { LinkQuality } from '../link-quality.ts';
import { Nemesis } from '../nemesis.ts';
import type { SeededRandom } from '../seeded-random.ts';
import { makeClientClock, VirtualTransport } from '../virtual-client.ts';
import type { EnsembleShape, VirtualEnsemble } from '../virtual-ensemble.ts';
import type { VirtualServer } from '../virtual-server.ts';
import { VirtualWorld } from '../virtual-world.ts';

export interface SureClientsOptions {
  readonly seed: number;
  readonly shape?: Partial<EnsembleShape> | undefined;
  /** Virtual milliseconds of faults. Default 30,000. */
  readonly durationMs?: number | undefined;
  /** Clocks of servers run apart by so many parts per million. Default 20,000. */
  readonly driftPpm?: number | undefined;
  readonly onLine?: ((line: string) => void) | undefined;
}

export interface SureClientsResult {
  /** Sessions that ended while their clients could still be sure of them. */
  readonly violations: readonly string[];
  /** Sessions that ended at a server, for any reason. */
  readonly ended: number;
}

/**
 * Clients that repeatedly fall silent, mostly right after a reply, while servers are cut off, paused and killed, and the
 * leadership moves. No session may end while its client can be sure that it lives, by `Client.lostAtMs`: otherwise a lock
 * could have two holders.
 */
export async function runSureClients(options: SureClientsOptions): Promise<SureClientsResult> {
  const { seed, durationMs = 30_000, driftPpm = 20_000 } = options;
  const world = new VirtualWorld({ seed, onLine: options.onLine });
  const random = world.random.fork('sure clients');
  const ensemble = world.startEnsemble({
    servers: 3,
    observers: random.chance(0.3) ? 1 : 0,
    restartDelayMs: 300,
    ...options.shape,
    ensemble: { syncLimit: 20, leaseTicks: random.pick([2, 2, 6]), ...options.shape?.ensemble },
    core: { sessionTimeoutMinMs: 200, ...options.shape?.core },
  });
  const hosts = Array.from({ length: CLIENTS }, (_, i) => `app${i + 1}`);
  const clients: Map<string, Client> = new Map();
  const violations: string[] = [];
  const ended: Set<bigint> = new Set();
  world.watch({
    onTrace(server, event) {
      if (event.kind !== 'session-closed' || ended.has(event.sessionId)) return;
      ended.add(event.sessionId);
      for (const [host, client] of clients) {
        const leftMs = client.lostAtMs - world.clockOf(host).monotonicMs();
        if (client.session?.id !== event.sessionId || client.state === 'closed' || !(leftMs > 0)) continue;
        const id = event.sessionId.toString(16);
        violations.push(
          `${world.nowMs.toFixed(1)} ms: session 0x${id} has ended at ${server.host}, and ${host} is sure of it for ${leftMs.toFixed(1)} ms`,
        );
      }
    },
  });
  await world.run(async () => {
    for (const host of hosts) world.clockOf(host).setDrift(random.between(0, driftPpm));
    for (const { host } of ensemble.servers) world.clockOf(host).setDrift(-random.between(0, driftPpm));
    const faults = { kinds: KINDS, durationMs, servers: ensemble.servers.map(({ host }) => host), clients: hosts };
    const nemesis = new Nemesis(world, ensemble);
    nemesis.unleash(planFaults(random.fork('faults'), faults));
    const endMs = world.nowMs + durationMs;
    await Promise.all([
      ...hosts.map((host) => live(world, ensemble, host, clients, random.fork(host), endMs)),
      seed % 2 === 0
        ? cutFollowers(world, ensemble, random.fork('followers'), endMs)
        : leaveBehind(world, ensemble, hosts, random.fork('left behind'), endMs),
    ]);
    nemesis.heal();
  });
  return { violations, ended: ended.size };
}

/**
 * One test for each seed, every third with five servers; instead those of the environment variable SEEDS, such as `9` or
 * `1..500`.
 */
export function testSureClients(first: number, last: number): void {
  const [from = first, to = env['SEEDS'] === undefined ? last : from] = (env['SEEDS'] ?? '')
    .split('..')
    .flatMap(toSeed);
  const seeds = Array.from({ length: to - from + 1 }, (_, i) => from + i);
  test.each(seeds)(
    'seed %i',
    async (seed) => {
      const { violations, ended } = await runSureClients({ seed, shape: { servers: seed % 3 === 0 ? 5 : 3 } });
      expect(violations).toEqual([]);
      expect(ended).toBeGreaterThan(0);
    },
    TIMEOUT_MS,
  );
}

function toSeed(text: string): number[] {
  return /^\d+$/.test(text) ? [Number(text)] : [];
}

/** A seed takes less than a second, longer on a busy machine. */
const TIMEOUT_MS = 600_000;

/** A client sends a few or many requests, then is cut off or paused for about as long as its session lives. */
async function live(
  world: VirtualWorld,
  ensemble: VirtualEnsemble,
  host: string,
  clients: Map<string, Client>,
  random: SeededRandom,
  endMs: number,
): Promise<void> {
  const sessionTimeoutMs = random.pick([200, 300, 500, 1000, 2000]);
  const stops = new StoppableClock(makeClientClock(world.timeline, world.clockOf(host)));
  const client = await connect({
    servers: ensemble.connectString,
    sessionTimeoutMs,
    connectTimeoutMs: 300_000,
    transport: new VirtualTransport(world.network, world.timeline, host),
    clock: stops,
    random: world.random.fork(`client ${host}`),
  });
  client.onState(({ state, reason }) => world.record(host, `${state}: ${reason}`));
  clients.set(host, client);
  while (world.nowMs < endMs) {
    const untilMs = world.nowMs + random.between(1, 2 * sessionTimeoutMs);
    const pauseMs = random.pick([10, 50, sessionTimeoutMs]);
    while (world.nowMs < untilMs) {
      await world.sleep(random.between(1, pauseMs));
      await client.exists('/', { timeoutMs: sessionTimeoutMs }).catch(() => {});
    }
    const silentMs = sessionTimeoutMs * (0.5 + 2 * random.fraction());
    if (random.chance(0.5)) {
      stops.stop();
      world.network.freezeHost(host);
      await world.sleep(silentMs);
      stops.goOn();
      world.network.thawHost(host);
      world.timeline.touch();
    } else {
      await silence(world, ensemble, [host], silentMs);
    }
  }
}

/** Cuts clients off from all servers for a while. */
async function silence(
  world: VirtualWorld,
  ensemble: VirtualEnsemble,
  hosts: readonly string[],
  ms: number,
): Promise<void> {
  const servers = ensemble.servers.map(({ host }) => host);
  world.network.partition(hosts, servers);
  await world.sleep(ms);
  join(world, hosts, servers);
}

function join(world: VirtualWorld, some: readonly string[], others: readonly string[]): void {
  for (const a of some) {
    for (const b of others) {
      world.network.unblock(a, b);
      world.network.unblock(b, a);
    }
  }
}

/** The clock of a program that can be paused, as by SIGSTOP: timers due meanwhile fire when it resumes. */
class StoppableClock implements Clock {
  readonly #clock: Clock;
  #waiting: (() => void)[] | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  schedule(delayMs: number, callback: () => void): () => void {
    let isCancelled = false;
    const cancel = this.#clock.schedule(delayMs, () => this.#whenRunning(() => !isCancelled && callback()));
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  defer(callback: () => void): void {
    this.#clock.defer(() => this.#whenRunning(callback));
  }

  stop(): void {
    this.#waiting ??= [];
  }

  goOn(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = null;
    for (const callback of waiting) callback();
  }

  #whenRunning(callback: () => void): void {
    if (this.#waiting === null) callback();
    else this.#waiting.push(callback);
  }
}

/**
 * The leader, perhaps with a follower, and some clients are cut off from the others, which notice at once and elect
 * another leader. Then these clients fall silent.
 */
async function leaveBehind(
  world: VirtualWorld,
  ensemble: VirtualEnsemble,
  clients: readonly string[],
  random: SeededRandom,
  endMs: number,
): Promise<void> {
  while (world.nowMs < endMs) {
    await world.sleep(random.between(500, 3000));
    const leader = ensemble.leader ?? null;
    if (leader === null) continue;
    const followers = ensemble.servers.filter((server) => server !== leader);
    const mates = ensemble.participants.length > 3 && random.chance(0.7) ? [random.pick(followers)] : [];
    const left = [leader, ...mates];
    const others = ensemble.servers.filter((server) => !left.includes(server));
    const [here, there] = [left, others].map((servers) => servers.map(({ host }) => host)) as [string[], string[]];
    const isSlow = random.chance(0.5);
    if (isSlow) {
      for (const b of there) for (const a of here) world.network.slowDown(b, a, SLOW);
      await world.sleep(random.between(100, 1500));
    }
    for (const a of here) for (const b of there) world.network.block(a, b);
    if (!isSlow) for (const a of here) for (const b of there) world.network.block(b, a);
    for (const server of left) dropLinks(world, others, server);
    await world.sleep(random.between(1, 800));
    await silence(
      world,
      ensemble,
      clients.filter(() => random.chance(0.5)),
      random.between(300, 2500),
    );
    for (const b of there) for (const a of here) world.network.speedUp(b, a);
    join(world, here, there);
  }
}

/** The fault that most often leaves servers behind, more frequent here than in a fault plan. */
async function cutFollowers(
  world: VirtualWorld,
  ensemble: VirtualEnsemble,
  random: SeededRandom,
  endMs: number,
): Promise<void> {
  while (world.nowMs < endMs) {
    await world.sleep(random.between(50, 2000));
    const { leader } = ensemble;
    const server = random.pick(ensemble.servers);
    if (leader === undefined || leader === null) continue;
    const others = server === leader ? ensemble.servers.filter((other) => other !== leader) : [leader];
    const lasting = random.between(20, 1500);
    if (random.chance(0.3)) {
      server.pause();
      await world.sleep(lasting);
      server.resume();
      continue;
    }
    const [isOut, isIn] = random.pick([
      [true, true],
      [true, false],
      [false, true],
    ]);
    for (const other of others) {
      if (isOut) world.network.block(server.host, other.host);
      if (isIn) world.network.block(other.host, server.host);
    }
    // The others notice at once that it is gone; it does not notice that they are, as a reset does not come through.
    if (isIn && random.chance(0.5)) dropLinks(world, others, server);
    await world.sleep(lasting);
    for (const other of others) {
      world.network.unblock(server.host, other.host);
      world.network.unblock(other.host, server.host);
    }
  }
}

function dropLinks(world: VirtualWorld, here: readonly VirtualServer[], there: VirtualServer): void {
  for (const end of world.network.openEnds) {
    if (end.peerHost === there.host && here.some(({ host }) => host === end.host)) end.destroy();
  }
}

const CLIENTS = 8;
const SLOW: LinkQuality = { delayMinMs: 50, delayMaxMs: 500, splitChance: 0, mergeChance: 0 };
const KINDS: readonly FaultKind[] = ['crash', 'stop', 'pause', 'isolate', 'one-way', 'slow', 'break', 'disk-stall'];
