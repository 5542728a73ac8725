import { type Membership, parseMembership } from '@meerkat/protocol';
import type { PeerAuthentication, TraceEvent } from '../base/ports.ts';
import { ElectionLinks } from '../links/election-links.ts';
import { MemoryNetwork, type MemoryNetworkOptions } from './memory-network.ts';

export const ADDRESS_TIMEOUT_MS = 1000;

/** @param several servers that have a second address, `host<id>b` */
export function makeMembership(
  ids: readonly number[],
  observers: readonly number[] = [],
  several: readonly number[] = [],
): Membership {
  const lines = ids.map((id) => {
    const second = several.includes(id) ? `|host${id}b:2888:3888` : '';
    return `server.${id}=host${id}:2888:3888${second}:${observers.includes(id) ? 'observer' : 'participant'}`;
  });
  const membership = parseMembership([...lines, 'version=0'].join('\n'));
  if ('fault' in membership) throw new Error(membership.fault);
  return membership;
}

/** One server with its links, and what it has received. */
export class LinkedServer {
  readonly id: number;
  readonly links: ElectionLinks;
  readonly events: string[] = [];
  readonly traced: TraceEvent[] = [];
  readonly connected = new Set<number>();
  /** Round of the last notification of each peer. */
  readonly notifiedEpochs = new Map<number, number>();

  constructor(ensemble: LinkedServers, id: number) {
    const { network } = ensemble;
    this.id = id;
    this.links = new ElectionLinks(
      {
        ports: {
          network: network.portOf(`host${id}`),
          clock: network.clock,
          random: network.random,
          peerAuthentication: ensemble.peerAuthentication,
        },
        trace: { emit: (event) => this.traced.push(event) },
      },
      { serverId: id, membership: ensemble.membership, addressTimeoutMs: ADDRESS_TIMEOUT_MS },
      {
        onPeerConnected: (peer) => {
          this.connected.add(peer);
          this.events.push(`connected ${peer}`);
        },
        onPeerUnreachable: (peer) => {
          this.connected.delete(peer);
          this.events.push(`unreachable ${peer}`);
        },
        onNotification: (from, { electionEpoch }) => {
          this.notifiedEpochs.set(from, electionEpoch);
          this.events.push(`${from} says ${electionEpoch}`);
        },
      },
    );
  }

  takeEvents(): readonly string[] {
    return this.events.splice(0);
  }
}

export class LinkedServers {
  readonly network: MemoryNetwork;
  readonly membership: Membership;
  readonly servers = new Map<number, LinkedServer>();
  peerAuthentication: PeerAuthentication | null = null;

  constructor(membership: Membership, seed = 1, options: Partial<MemoryNetworkOptions> = {}) {
    this.network = new MemoryNetwork(seed, options);
    this.membership = membership;
  }

  start(id: number): LinkedServer {
    const server = new LinkedServer(this, id);
    this.servers.set(id, server);
    server.links.start();
    server.links.connectAll();
    return server;
  }

  crash(id: number, isSilent = false): void {
    this.network.crash(`host${id}`, isSilent);
    this.servers.get(id)?.links.stop();
    this.servers.delete(id);
  }

  advance(ms: number): void {
    const untilMs = this.network.nowMs + ms;
    for (;;) {
      let deadlineMs = Number.POSITIVE_INFINITY;
      for (const { links } of this.servers.values()) deadlineMs = Math.min(deadlineMs, links.nextDeadlineMs());
      const eventMs = this.network.nextEventMs;
      if (Math.min(deadlineMs, eventMs) > untilMs) break;
      if (eventMs <= deadlineMs) this.network.step();
      else {
        this.network.nowMs = Math.max(this.network.nowMs, deadlineMs);
        for (const { links } of this.servers.values()) links.onTick();
      }
    }
    this.network.nowMs = untilMs;
  }

  /** Streams at one host whose other end is at the other host. */
  streamsBetween(a: number, b: number): number {
    const isOf = (host: string, id: number): boolean => host === `host${id}` || host === `host${id}b`;
    return [...this.network.streams].filter(({ host, remote }) => isOf(host, a) && isOf(remote.host, b)).length;
  }
}
