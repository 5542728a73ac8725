import { CREATOR_ALL } from '@meerkat/client';
import { CreateMode, OpCode } from '@meerkat/protocol';
import { children, create, exists, get, multi, remove, set } from '../stories/requests.ts';
import { WireClient } from '../stories/wire-client.ts';
import { CLIENT_PORT, ELECTION_PORT, QUORUM_PORT, type VirtualEnsemble } from '../virtual-ensemble.ts';
import type { VirtualServer } from '../virtual-server.ts';
import type { VirtualWorld } from '../virtual-world.ts';

/** The servers count requests by the first name of a path. */
const PARENT = '/churn';

/** Clients that come and go in every way, beside faults of the servers. Each cycle leaves the service as it was before. */
export class Churn {
  readonly #world: VirtualWorld;
  readonly #ensemble: VirtualEnsemble;
  readonly #leadersChange: boolean;
  /** The server that stops, crashes and loses its disk. In the others, what lasts as long as a process accumulates. */
  #victim: VirtualServer | null = null;
  #cycle = 0;

  /** @param leadersChange if not, all servers but one follower keep their roles */
  constructor(world: VirtualWorld, ensemble: VirtualEnsemble, leadersChange: boolean) {
    this.#world = world;
    this.#ensemble = ensemble;
    this.#leadersChange = leadersChange;
  }

  async run(cycles: number): Promise<void> {
    await this.#untilWhole();
    if (this.#cycle === 0) await this.#begin();
    for (let i = 0; i < cycles; i++) await this.#runCycle(this.#cycle++);
    await this.#untilRest();
    // Sessions that were abandoned, and what the servers do once a second, such as purging.
    await this.#world.sleep(3000);
    await this.#untilRest();
  }

  async #begin(): Promise<void> {
    const { leader, participants } = this.#ensemble;
    this.#victim = participants.findLast((one) => one !== leader) ?? null;
    const client = await this.#world.connect('app', { servers: this.#ensemble.connectString });
    await client.ensurePath(PARENT);
    await client.close();
  }

  async #runCycle(cycle: number): Promise<void> {
    const { servers } = this.#ensemble;
    const server = servers[cycle % servers.length]!;
    await this.#useClient(server);
    await this.#leaveEarly(server);
    await this.#leaveLater(server);
    await this.#sendGarbage(server);
    const victim = this.#victim;
    if (cycle % 4 === 1) this.#breakLinks(this.#leadersChange ? servers[(cycle >> 2) % servers.length]! : victim);
    if (this.#leadersChange && cycle % 5 === 2) await this.#cutLeaderOff();
    if (cycle % 10 === 0) victim?.stop();
    if (cycle % 10 === 4) victim?.wipe();
    if (cycle % 10 === 6) victim?.crash({ losesPower: true });
    if (cycle % 5 === 3) await this.#takeSnapshot(server);
    await this.#untilWhole();
  }

  /** A client that uses everything, and loses its connection in the middle of it. */
  async #useClient(server: VirtualServer): Promise<void> {
    const { servers } = this.#ensemble;
    const order = [server, ...servers.filter((other) => other !== server)];
    const client = await this.#world.connect('app', {
      servers: order.map(({ host, port }) => `${host}:${port}`).join(','),
      sessionTimeoutMs: 3000,
      backOff: { minMs: 20, maxMs: 100 },
    });
    const { path } = await client.create(`${PARENT}/app-`, 'x', { sequential: true });
    await client.addAuth('digest', 'ann:pw');
    using data = await client.get(path, { watch: true });
    using list = await client.children(path, { watch: true });
    // Its watch is still armed when the client closes.
    await client.exists(`${path}/never`, { watch: true });
    await using stream = client.watch(path, { recursive: true });
    await using persistent = client.watch(path);
    await using value = client.observe(path);
    await Promise.all([stream.ready, persistent.ready, value.changed()]);
    await client.create(`${path}/ephemeral`, 'x', { mode: 'ephemeral' });
    await client.create(`${path}/secret`, 'x', { acl: CREATOR_ALL });
    await client.create(`${path}/container`, 'x', { mode: 'container' });
    await client.create(`${path}/container/child`, 'x', { ttlMs: 10 });
    await Promise.all(Array.from({ length: 20 }, (_, i) => client.set(path, `value ${i}`)));
    await client.transaction().set(path, 'in a multi').create(`${path}/multi`).delete(`${path}/multi`).commit();
    await client.transaction().set(path, 'not applied').delete(`${path}/never`).commit().catch(ignore);
    await client.get(`${path}/never`).catch(ignore);
    await client.create(path).catch(ignore);
    await client.get(path, { signal: AbortSignal.abort() }).catch(ignore);
    await Promise.all([data.changed, list.changed]);
    this.#breakConnections(server);
    await Promise.all(Array.from({ length: 5 }, () => client.set(path, 'while it is lost').catch(ignore)));
    await client.sync(path);
    await client.create(`${PARENT}/app-`, 'x', { sequential: true }).then(({ path: other }) => client.delete(other));
    await client.deleteRecursive(path);
    await client.close();
  }

  /** While the connection is opened, while the session is created, and while the reply is on its way. */
  async #leaveEarly(server: VirtualServer): Promise<void> {
    for (let ms = 0; ms < 8; ms++) {
      const client = new WireClient(this.#world, 'wire', server, { timeoutMs: 500 });
      await this.#world.sleep(ms);
      client.destroy();
    }
  }

  /** With a session that is left to expire, and requests without replies. */
  async #leaveLater(server: VirtualServer): Promise<void> {
    const clients = Array.from({ length: 5 }, () => new WireClient(this.#world, 'wire', server, { timeoutMs: 500 }));
    for (const client of clients) await client.whenAnswered();
    for (const client of clients) {
      if (!client.hasSession) continue;
      client.send(1, children(PARENT));
      client.send(2, create(`${PARENT}/abandoned-`, CreateMode.ephemeralSequential));
      client.send(3, exists('/never', true));
      client.send(4, get('/', true));
      client.send(5, multi(set('/', 'x'), remove('/never')));
      client.sendRaw(6, OpCode.create2, (writer) => writer.ustring(PARENT));
      await this.#world.sleep(0.5);
    }
    for (const client of clients) {
      client.destroy();
      await this.#world.sleep(0.3);
    }
  }

  /** Programs that are no clients. */
  async #sendGarbage(server: VirtualServer): Promise<void> {
    const { network } = this.#world;
    for (const port of [CLIENT_PORT, QUORUM_PORT, ELECTION_PORT]) {
      for (const bytes of GARBAGE) {
        const end = network.connect('stranger', server.host, port, {
          onOpen: () => end.write(Uint8Array.from(bytes)),
          onFailed() {},
          onBytes() {},
          onDrain() {},
          onClosed() {},
        });
        await this.#world.sleep(2);
        end.destroy();
      }
    }
  }

  /** Until another leads. */
  async #cutLeaderOff(): Promise<void> {
    const { leader, hosts } = this.#ensemble;
    if (leader === null) return;
    const { network } = this.#world;
    const others = hosts.filter((host) => host !== leader.host);
    network.partition([leader.host], others);
    await this.#until(() => leader.role !== 'leading' && this.#ensemble.leader !== null, 'have another leader');
    network.heal();
  }

  async #takeSnapshot(server: VirtualServer): Promise<void> {
    let isTaken = false;
    server.core?.takeSnapshot(() => {
      isTaken = true;
    });
    await this.#until(() => isTaken, 'take a snapshot');
  }

  #breakConnections(server: VirtualServer): void {
    for (const end of this.#world.network.openEnds) {
      if (end.host === 'app' && end.peerHost === server.host) end.breakStream();
    }
  }

  /** The server's links to the others. */
  #breakLinks(server: VirtualServer | null): void {
    const { hosts } = this.#ensemble;
    for (const end of this.#world.network.openEnds) {
      if (end.host === server?.host && hosts.includes(end.peerHost)) end.breakStream();
    }
  }

  async #untilWhole(): Promise<void> {
    await this.#until(() => {
      for (const server of this.#ensemble.servers) if (!server.isRunning) server.start();
      return this.#ensemble.isWhole;
    }, 'serve together');
  }

  async #untilRest(): Promise<void> {
    const sessions = (): number => this.#ensemble.leader?.core?.view.sessions().length ?? 1;
    await this.#until(() => this.#ensemble.isAtRest && sessions() === 0, 'rest');
  }

  async #until(holds: () => boolean, what: string): Promise<void> {
    if (!(await this.#world.until(holds, 60_000))) throw new Error(`not within a minute: the servers ${what}`);
  }
}

/** Nothing, a part of a length, a part of a frame, a negative length, a four-letter word. */
const GARBAGE: readonly (readonly number[])[] = [
  [],
  [0, 0],
  [0, 0, 0, 44, 0, 0],
  [255, 255, 255, 255],
  [...Buffer.from('ruok')],
];

function ignore(): void {}
