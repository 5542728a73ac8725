import { CLIENTS, type Namespaces, ruleOf } from './namespaces.ts';
import {
  type Cut,
  hostOf,
  isServer,
  numberOfHost,
  type PortKind,
  type ServerPlace,
  type TortureNetwork,
} from './network.ts';

const PORTS: Readonly<Record<PortKind, number>> = { client: 2181, quorum: 2888, election: 3888 };
const CLIENTS_ADDRESS = '198.18.0.1';

/** Each server runs in its own network namespace, and this process in that of the clients. */
export class NamespaceNetwork implements TortureNetwork {
  readonly name = 'network namespaces';
  readonly places: readonly ServerPlace[];
  readonly delay = null;
  readonly breakStreams = null;
  readonly #namespaces: Namespaces;
  #rules: ReadonlySet<string> = new Set();

  constructor(namespaces: Namespaces, servers: number) {
    this.#namespaces = namespaces;
    this.places = Array.from({ length: servers }, (_, i) => ({
      id: i + 1,
      clientHost: '0.0.0.0',
      peerHost: `198.18.${i + 1}.1`,
      ports: PORTS,
    }));
  }

  commandOf(id: number): readonly string[] {
    return this.#namespaces.commandOf(hostOf(id));
  }

  redirectionsOf(): readonly (readonly [number, number])[] {
    return [];
  }

  connectString(client: number, ids: readonly number[]): string {
    return ids.map((id) => `${addressOf(hostOf(id), `c${client}`)}:${PORTS.client}`).join(',');
  }

  serverAt(host: string): number {
    return Number(host.split('.')[2]);
  }

  setCuts(cuts: readonly Cut[]): void {
    const rules = new Set(cuts.map(ruleOfCut));
    const removed = [...this.#rules].filter((rule) => !rules.has(rule));
    const added = [...rules].filter((rule) => !this.#rules.has(rule));
    this.#rules = rules;
    this.#namespaces.route(removed, added);
  }

  async close(): Promise<void> {
    this.setCuts([]);
  }
}

/** The host whose namespace the torture process runs in. */
export const OWN_NAMESPACE: string = CLIENTS;

function ruleOfCut({ from, to, port }: Cut): string {
  const side = port?.host === to ? 'dport' : 'sport';
  return ruleOf(addressOf(from, to), addressOf(to, from), port === null ? null : `${side} ${PORTS[port.kind]}`);
}

/** Address of a host as seen from `other`. */
function addressOf(host: string, other: string): string {
  if (!isServer(host)) return CLIENTS_ADDRESS;
  const last = isServer(other) ? 1 : 100 + numberOfHost(other);
  return `198.18.${numberOfHost(host)}.${last}`;
}
