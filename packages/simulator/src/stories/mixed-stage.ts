/**
 * An ensemble of our servers and Apache 3.8.0 servers, the latter simulated by `ApachePeer`.
 *
 * The checkers of other stories observe every server; here they would miss half of what happens. Instead the peers
 * report what 3.8.0 cannot handle, and at the end all servers must show the same znodes.
 */
import type { Client } from '@meerkat/client';
import { expect } from 'vitest';
import { ApachePeer, type ApachePeerOptions } from '../apache/apache-peer.ts';
import { TraceTail } from '../trace-tail.ts';
import type { EnsembleShape, VirtualEnsemble } from '../virtual-ensemble.ts';
import type { VirtualServer } from '../virtual-server.ts';
import { VirtualWorld } from '../virtual-world.ts';
import { treeOf } from './tree-of.ts';

export interface MixedShape extends EnsembleShape {
  /** Ids of the Apache servers. */
  readonly apache: readonly number[];
  readonly peer?: Partial<Pick<ApachePeerOptions, 'commitLogCount' | 'isLogSyncEnabled'>> | undefined;
}

export type MixedServer = VirtualServer | ApachePeer;

/**
 * Plays a story once for each of three seeds; with `STORY_SEEDS=n` in the environment, for the seeds 1 to n instead.
 *
 * @throws Error with the seed and the end of the trace
 */
export async function playMixed(shape: MixedShape, story: (stage: MixedStage) => Promise<void>): Promise<void> {
  const count = Number(process.env['STORY_SEEDS'] ?? 3);
  for (let seed = 1; seed <= count; seed++) {
    const stage = new MixedStage(shape, seed);
    try {
      await stage.world.run(async () => {
        await story(stage);
        await stage.end();
      }, 300_000);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error([`seed ${seed}: ${reason}`, ...stage.tail.lines].join('\n'), { cause: error });
    }
  }
}

export class MixedStage {
  readonly world: VirtualWorld;
  readonly ours: readonly VirtualServer[];
  readonly peers: readonly ApachePeer[];
  readonly tail: TraceTail = new TraceTail(150);
  readonly #ensemble: VirtualEnsemble;
  readonly #clients: Map<VirtualServer, Client> = new Map();
  #nextName = 1;

  constructor({ apache, peer, ...shape }: MixedShape, seed: number) {
    const world = new VirtualWorld({ seed, onLine: (line) => this.tail.add(line) });
    const { tickTimeMs = 100 } = shape;
    this.world = world;
    this.#ensemble = world.addEnsemble(shape);
    const { membership, servers } = this.#ensemble;
    this.ours = servers.filter(({ serverId }) => !apache.includes(serverId));
    this.peers = apache.map(
      (serverId) =>
        new ApachePeer({
          ...peer,
          serverId,
          membership,
          timeline: world.timeline,
          network: world.network,
          random: world.random.fork(`peer ${serverId}`),
          timings: { tickTimeMs, initLimit: 20, syncLimit: 5 },
          onLine: (line) => this.tail.add(line),
        }),
    );
  }

  /** Server n is the one of index n − 1. */
  get servers(): readonly MixedServer[] {
    return [...this.ours, ...this.peers].toSorted((a, b) => a.serverId - b.serverId);
  }

  zk(serverId: number): MixedServer {
    return this.servers[serverId - 1]!;
  }

  get leaders(): readonly MixedServer[] {
    return this.servers.filter((server) =>
      server instanceof ApachePeer
        ? server.leader !== null && server.isServing
        : server.role === 'leading' && server.isServing,
    );
  }

  /** All that run serve in one epoch and have the same last txn. */
  get isWhole(): boolean {
    const running = this.servers.filter(({ isRunning }) => isRunning);
    const zxids = running.map((server) =>
      server instanceof ApachePeer ? server.database.lastProcessedZxid : (server.core?.view.lastZxid ?? 0),
    );
    // A 3.8.0 server that has begun to lead reports (epoch, 0), which is no txn.
    const ofTxns = zxids.filter((zxid) => zxid % 2 ** 32 !== 0);
    return (
      this.leaders.length === 1 &&
      running.every(({ isServing, epoch }) => isServing && epoch === this.leaders[0]!.epoch) &&
      new Set(ofTxns).size <= 1
    );
  }

  /** `isWhole`, and no txn is in flight: what is proposed is applied everywhere. */
  get isAtRest(): boolean {
    if (!this.isWhole) return false;
    const leader = this.leaders[0]!;
    const proposed =
      leader instanceof ApachePeer ? leader.leader?.outstandingCount : leader.core?.view.outstandingRequests;
    return proposed === 0;
  }

  /** Starts servers, by default all, and waits until they serve. @returns their leader */
  async start(...servers: MixedServer[]): Promise<MixedServer> {
    for (const server of servers.length === 0 ? this.servers : servers) if (!server.isRunning) server.start();
    return this.whole();
  }

  /** Waits until all that run serve together and have the same. @returns their leader */
  async whole(): Promise<MixedServer> {
    await this.until('all that run serve together, and have the same', () => this.isAtRest);
    return this.leaders[0]!;
  }

  async until(what: string, holds: () => boolean, limitMs = 30_000): Promise<void> {
    if (!(await this.world.until(holds, limitMs, 1))) throw new Error(`not within ${limitMs} ms: ${what}`);
  }

  kill(...servers: MixedServer[]): void {
    for (const server of servers) {
      if (server instanceof ApachePeer) {
        server.kill();
        this.world.network.closeHost(server.host);
      } else server.crash();
    }
  }

  cutPower(...servers: MixedServer[]): void {
    for (const server of servers) {
      if (server instanceof ApachePeer) server.powerOff();
      else server.crash({ losesPower: true });
    }
  }

  /** A client of one of our servers. */
  async at(server: VirtualServer): Promise<Client> {
    let client = this.#clients.get(server);
    if (client === undefined) {
      client = await this.world.connect(`client-of-${server.host}`, {
        servers: `${server.host}:${server.port}`,
        sessionTimeoutMs: 60_000,
        backOff: { minMs: 20, maxMs: 100 },
      });
      this.#clients.set(server, client);
    }
    return client;
  }

  async write(server: VirtualServer, count = 1): Promise<void> {
    const client = await this.at(server);
    // Its connection may be one that the server no longer knows.
    while ((await client.exists('/').catch(() => null)) === null) await this.world.sleep(5);
    for (let i = 0; i < count; i++) await client.create(`/n${this.#nextName++}`, 'data');
  }

  /** All servers are back and have the same data; no Apache server has complaints. */
  async end(): Promise<void> {
    this.world.network.heal();
    await this.start();
    await this.write(this.ours[0]!);
    await this.whole();
    const tree = await treeOf(await this.at(this.ours[0]!));
    const expected = Object.entries(tree).filter(([path]) => isOwn(path));
    for (const server of this.ours.slice(1)) {
      const shown = Object.entries(await treeOf(await this.at(server)));
      expect(shown.filter(([path]) => isOwn(path))).toEqual(expected);
      await this.whole();
    }
    for (const peer of this.peers) {
      const held = [...peer.database.znodes].filter(([path]) => isOwn(path));
      const shown = held.map(([path, { stat }]) => `${path} ${stat.czxid} ${stat.mzxid} ${stat.version} ${stat.pzxid}`);
      const due = expected.map(
        ([path, { stat }]) => `${path} ${stat.czxid} ${stat.mzxid} ${stat.version} ${stat.pzxid}`,
      );
      expect(shown.toSorted()).toEqual(due.toSorted());
      expect(peer.complaintsAbout(...this.ours.map(({ serverId }) => serverId))).toEqual([]);
      expect(peer.exited).toBeNull();
    }
    for (const { failure } of this.ours) expect(failure).toBeNull();
  }
}

/** Znodes that the service maintains itself, and the root, may differ. */
function isOwn(path: string): boolean {
  return path !== '' && path !== '/' && !path.startsWith('/zookeeper');
}
