import { findBrokenMove } from './moves.ts';
import { connectProbe, PROBE_PATH } from './probe.ts';
import type { Checkers } from './run-checkers.ts';
import { CLIENT_PORT, type VirtualEnsemble } from './virtual-ensemble.ts';
import type { VirtualServer } from './virtual-server.ts';
import type { VirtualWorld } from './virtual-world.ts';

/** Invariants of an ensemble without faults whose servers have caught up: A3, A4, A5, S9, S12, S13, W10. */
export class AtRest {
  readonly #world: VirtualWorld;
  readonly #ensemble: VirtualEnsemble;
  readonly #checkers: Checkers;
  readonly #limitMs: number;
  readonly #canMove: boolean;

  /**
   * @param limitMs virtual milliseconds after which an invariant counts as violated
   * @param canMove whether sessions can move between servers; not with a single server
   */
  constructor(world: VirtualWorld, ensemble: VirtualEnsemble, checkers: Checkers, limitMs: number, canMove: boolean) {
    this.#world = world;
    this.#ensemble = ensemble;
    this.#checkers = checkers;
    this.#limitMs = limitMs;
    this.#canMove = canMove;
  }

  /** S9: once all clients have closed, no session is left. */
  async checkSessions(): Promise<void> {
    // The leader decides when sessions end.
    const left = (): number => this.#ensemble.leader?.core?.view.sessions().length ?? 0;
    if (await this.#world.until(() => left() === 0, this.#limitMs)) return;
    this.#checkers.report('S9', `${left()} sessions live ${this.#limitMs} ms after their clients have gone`);
  }

  /** S12: without faults, servers hold no client connections beyond those that are open at the client. */
  async checkConnections(): Promise<void> {
    const { servers, hosts } = this.#ensemble;
    const held = (): number => servers.reduce((sum, { core }) => sum + (core?.view.connectionCount ?? 0), 0);
    const open = (): number =>
      this.#world.network.openEnds.filter((end) => end.servicePort === CLIENT_PORT && !hosts.includes(end.host)).length;
    if (await this.#world.until(() => held() <= open(), this.#limitMs)) return;
    this.#checkers.report('S12', `servers hold ${held()} connections of clients, which have ${open()}`);
  }

  /** A3: a server has its log open, what it notes beside it, and for a while a snapshot. */
  async checkFiles(): Promise<void> {
    const server = await this.#findLasting(({ core, disk }) => core !== null && disk.openPaths.length > FILES_MAX);
    if (server === undefined) return;
    const paths = server.disk.openPaths;
    this.#checkers.report('A3', `${server.host} has ${paths.length} files open: ${paths.slice(0, 5).join(', ')} …`);
  }

  /** A4: what is kept for learners has the limit that the servers were given. */
  async checkMemory(): Promise<void> {
    const remembered = (one: VirtualServer): number => one.core?.view.ensemble?.rememberedTxns ?? 0;
    const limitOf = (one: VirtualServer): number => one.options.ensemble?.commitLogCount ?? 0;
    const server = await this.#findLasting((one) => remembered(one) > limitOf(one));
    if (server === undefined) return;
    const message = `${server.host} keeps ${remembered(server)} txns for learners; its limit is ${limitOf(server)}`;
    this.#checkers.report('A4', message);
  }

  /** A5: every voter knows that all voters have the same lease, as does every observer that connects to the leader. */
  async checkLeases(): Promise<void> {
    const { membershipNow, servers } = this.#ensemble;
    const roles = new Map(membershipNow.members.map(({ serverId, role }) => [serverId, role]));
    for (const server of servers) {
      const role = roles.get(server.serverId);
      const isDirect = role === 'participant' || server.options.ensemble?.observerMasterPort === 0;
      if (role === undefined || !isDirect) continue;
      const untilMs = this.#world.nowMs + this.#limitMs;
      let isLeased = await this.#isLeased(server);
      while (!isLeased && this.#world.nowMs < untilMs) {
        await this.#world.sleep(POLL_MS);
        isLeased = await this.#isLeased(server);
      }
      if (!isLeased) this.#checkers.report('A5', `${server.host} does not know of the lease of all voters`);
    }
  }

  async #isLeased({ host, port }: VirtualServer): Promise<boolean> {
    const client = await connectProbe(this.#world, `${host}:${port}`, this.#limitMs);
    const isLeased = await client.hasLeasedAnswers({ timeoutMs: this.#limitMs });
    await client.close();
    return isLeased;
  }

  /** @returns a server of which it is still true after the limit */
  async #findLasting(isBroken: (server: VirtualServer) => boolean): Promise<VirtualServer | undefined> {
    const find = (): VirtualServer | undefined => this.#ensemble.servers.find(isBroken);
    await this.#world.until(() => find() === undefined, this.#limitMs);
    return find();
  }

  /** W10: once all clients have closed, no server holds a watch. */
  async checkWatches(): Promise<void> {
    const held = (): number =>
      this.#ensemble.servers.reduce((sum, { core }) => sum + (core?.view.watches.count ?? 0), 0);
    if (await this.#world.until(() => held() === 0, this.#limitMs)) return;
    this.#checkers.report('W10', `servers hold ${held()} watches ${this.#limitMs} ms after their clients have gone`);
  }

  /** S13: without faults, a session that moves is answered over its new connection: to followers, the leader, observers, and back. */
  async checkMoves(): Promise<void> {
    const { leader, servers, membershipNow } = this.#ensemble;
    if (leader === null || !this.#canMove) return;
    const members = membershipNow.members.map(({ serverId }) => serverId);
    const others = servers.filter((server) => server !== leader && members.includes(server.serverId));
    const visited = [...others, ...others.flatMap((other) => [leader, other]), leader];
    const client = await connectProbe(this.#world, this.#ensemble.connectString, this.#limitMs);
    const targets = visited.map(({ host, port }) => ({ host, port }));
    const untilCaughtUp = () => this.#world.until(() => this.#ensemble.isWhole, this.#limitMs);
    const broken = await findBrokenMove(client, targets, PROBE_PATH, this.#limitMs, untilCaughtUp);
    if (broken !== null) this.#checkers.report('S13', broken);
    await client.close();
  }
}

const FILES_MAX = 3;
const POLL_MS = 1000;
