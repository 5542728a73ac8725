import { findFreePorts, type ProxiedConnection, TcpProxy } from '@meerkat/testing';
import {
  type Cut,
  hostOf,
  numberOfHost,
  PORT_KINDS,
  type PortKind,
  type ServerPlace,
  type TortureNetwork,
} from './network.ts';

/** The path from one host to a port of a server. */
interface Link {
  readonly dialer: string;
  readonly server: string;
  readonly kind: PortKind;
  readonly proxy: TcpProxy;
}

/** All hosts on 127.0.0.1, with a proxy on each link. A cut blocks everything, including ends of streams. */
export class ProxyNetwork implements TortureNetwork {
  readonly name = 'proxies';
  readonly places: readonly ServerPlace[];
  readonly #links: readonly Link[];

  static async start(servers: number, clients: number): Promise<ProxyNetwork> {
    const ports = await findFreePorts(servers * PORT_KINDS.length);
    const places = Array.from({ length: servers }, (_, i): ServerPlace => {
      const [client = 0, quorum = 0, election = 0] = ports.slice(i * PORT_KINDS.length);
      return { id: i + 1, clientHost: '127.0.0.1', peerHost: '127.0.0.1', ports: { client, quorum, election } };
    });
    const links: Link[] = [];
    const add = async (dialer: string, { id, ports }: ServerPlace, kind: PortKind): Promise<void> => {
      links.push({ dialer, server: hostOf(id), kind, proxy: await TcpProxy.start({ target: ports[kind] }) });
    };
    for (const place of places) {
      for (let client = 1; client <= clients; client++) await add(`c${client}`, place, 'client');
      for (const { id } of places) {
        if (id === place.id) continue;
        await add(hostOf(id), place, 'quorum');
        await add(hostOf(id), place, 'election');
      }
    }
    return new ProxyNetwork(places, links);
  }

  private constructor(places: readonly ServerPlace[], links: readonly Link[]) {
    this.places = places;
    this.#links = links;
  }

  commandOf(): readonly string[] {
    return [];
  }

  redirectionsOf(id: number): readonly (readonly [number, number])[] {
    return this.#links
      .filter(({ dialer }) => dialer === hostOf(id))
      .map(({ server, kind, proxy }) => [this.#place(server).ports[kind], proxy.port]);
  }

  connectString(client: number, ids: readonly number[]): string {
    return this.#links
      .filter(({ dialer, server }) => dialer === `c${client}` && ids.includes(numberOfHost(server)))
      .map(({ proxy }) => proxy.connectString)
      .join(',');
  }

  serverAt(_host: string, port: number): number {
    return numberOfHost(this.#links.find(({ proxy }) => proxy.port === port)?.server ?? '0');
  }

  setCuts(cuts: readonly Cut[]): void {
    for (const link of this.#links) {
      const { dialer, server, proxy } = link;
      const of = (from: string, to: string): boolean =>
        cuts.some((cut) => cut.from === from && cut.to === to && isMeant(cut, link));
      if (of(dialer, server)) proxy.freeze('toServer');
      else proxy.thaw('toServer');
      if (of(server, dialer)) proxy.freeze('toClient');
      else proxy.thaw('toClient');
    }
  }

  readonly delay = (hosts: readonly string[], ms: number): void => {
    for (const { proxy } of this.#linksOf(hosts)) proxy.delay(ms);
  };

  readonly breakStreams = (hosts: readonly string[], chance: () => boolean): void => {
    const broken: ProxiedConnection[] = [];
    for (const { proxy } of this.#linksOf(hosts)) broken.push(...proxy.connections.filter(chance));
    for (const connection of broken) void connection.cut();
  };

  async close(): Promise<void> {
    await Promise.all(this.#links.map(({ proxy }) => proxy.stop()));
  }

  #linksOf(hosts: readonly string[]): readonly Link[] {
    return this.#links.filter(({ dialer, server }) => hosts.includes(dialer) || hosts.includes(server));
  }

  #place(host: string): ServerPlace {
    return this.places[numberOfHost(host) - 1]!;
  }
}

function isMeant({ port }: Cut, { server, kind }: Link): boolean {
  return port === null || (port.host === server && port.kind === kind);
}
