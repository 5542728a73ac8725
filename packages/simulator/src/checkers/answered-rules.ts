/** S8: a leader ends no session whose client was answered within its timeout, once the leader must know of it. */
import { PacketType } from '@meerkat/protocol';
import type { Cluster } from './cluster.ts';
import type { ServerGhost } from './server-ghost.ts';
import type { WireEvent } from './wire.ts';

/** The moment at which a client sent a request to a server. */
export interface Asked {
  readonly server: number;
  readonly term: number;
  /** Of the server's own clock, milliseconds. */
  readonly clockMs: number;
  /** For a learner: its connection to its leader, and how many pings it had answered there; otherwise null. */
  readonly link: Link | null;
  readonly pongs: number;
}

/** A ping reply, where it has arrived. */
interface Pong {
  /** By the clock of the server that received it. */
  readonly atMs: number;
  /** For a follower with observers: its own link to its leader, and how many pings it had answered there. */
  readonly relay: Link | null;
  readonly relayed: number;
}

/**
 * The connection of a learner to its leader, or of an observer to the follower that it follows. In its ping replies the
 * learner reports the sessions with recent pings. A follower passes on what its observers report with its next reply.
 */
interface Link {
  readonly connection: number;
  readonly leader: number;
  sent: number;
  readonly received: Pong[];
  /** Sessions with activity between two ping replies: the first reply that may report it, and the last. */
  waiting: { readonly sessionId: bigint; readonly first: number; readonly last: number }[];
}

/**
 * A server that answers a client knows that its session is alive, at least since the client asked. A leader knows it at
 * once; a learner reports it in its next ping reply, or in an earlier one while the request was in flight.
 */
export class AnsweredRules {
  readonly #cluster: Cluster;
  readonly #clockMs: (server: number) => number;
  readonly #links: Map<number, Link> = new Map();
  /** Of a leader in its term: the last activity of each session that it must know, by its own clock. */
  readonly #touchedMs: Map<number, Map<bigint, number>> = new Map();
  /** The last activity that a server must have seen itself, by its own clock; over all its terms. */
  readonly #here: Map<number, Map<bigint, number>> = new Map();

  constructor(cluster: Cluster, clockMs: (server: number) => number) {
    this.#cluster = cluster;
    this.#clockMs = clockMs;
  }

  /** A client sends a request to a server. */
  onAsked(server: number): Asked {
    const link = this.#links.get(server) ?? null;
    const { term } = this.#cluster.server(server);
    return { server, term, clockMs: this.#clockMs(server), link, pongs: link?.sent ?? 0 };
  }

  /** Its answer has arrived. */
  onAnswered(sessionId: bigint, { server, term, clockMs, link, pongs }: Asked): void {
    const ghost = this.#cluster.server(server);
    if (ghost.term !== term) return;
    mapOf(this.#here, server).set(sessionId, clockMs);
    if (ghost.role === 'leading') this.#touch(server, sessionId, clockMs);
    else if (link !== null && this.#links.get(server) === link) {
      link.waiting.push({ sessionId, first: pongs, last: link.sent });
    }
  }

  onRole(server: ServerGhost): void {
    this.#touchedMs.delete(server.id);
  }

  onWire(event: WireEvent): void {
    if (event.kind === 'closed') {
      if (this.#links.get(event.from)?.connection === event.connection) this.#links.delete(event.from);
    } else if (event.kind === 'learner-packet') {
      if (event.stage === 'sent') this.#onSent(event);
      else if (event.packet.type === PacketType.ping) this.#onPong(event);
    }
  }

  onExpired(server: ServerGhost, sessionId: bigint, timeoutMs: number): void {
    const touchedMs = this.#touchedMs.get(server.id)?.get(sessionId);
    if (server.role !== 'leading' || touchedMs === undefined) return;
    const silentMs = this.#clockMs(server.id) - touchedMs;
    if (silentMs >= timeoutMs) return;
    const message = `leader ${server.id} ends session 0x${sessionId.toString(16)}, whose client was answered`;
    this.#cluster.report('S8', [server.id], `${message}, after ${silentMs} ms; its timeout is ${timeoutMs} ms`);
  }

  /** A local session: only this server decides. */
  onLocalExpired({ id }: ServerGhost, sessionId: bigint, timeoutMs: number): void {
    const silentMs = this.#clockMs(id) - (this.#here.get(id)?.get(sessionId) ?? Number.NEGATIVE_INFINITY);
    if (silentMs >= timeoutMs) return;
    const message = `server ${id} ends its own session 0x${sessionId.toString(16)}, whose client was answered`;
    this.#cluster.report('S8', [id], `${message}, after ${silentMs} ms; its timeout is ${timeoutMs} ms`);
  }

  #onSent(event: WireEvent & { readonly kind: 'learner-packet' }): void {
    let link = this.#links.get(event.from);
    if (link?.connection !== event.connection) {
      link = { connection: event.connection, leader: event.to, sent: 0, received: [], waiting: [] };
      this.#links.set(event.from, link);
    }
    if (event.packet.type === PacketType.ping) link.sent++;
  }

  #onPong(event: WireEvent & { readonly kind: 'learner-packet' }): void {
    const link = this.#links.get(event.from);
    if (link?.connection !== event.connection) return;
    const relay = this.#links.get(event.to) ?? null;
    link.received.push({ atMs: this.#clockMs(event.to), relay, relayed: relay?.sent ?? 0 });
    const isReceived = ({ last }: { readonly last: number }): boolean => last < link.received.length;
    for (const { sessionId, first, last } of link.waiting.filter(isReceived)) {
      const earliest = link.received[first]!;
      const latest = link.received[last]!;
      this.#touch(link.leader, sessionId, earliest.atMs);
      if (relay !== null && earliest.relay === relay && latest.relay === relay) {
        relay.waiting.push({ sessionId, first: earliest.relayed, last: latest.relayed });
      }
    }
    link.waiting = link.waiting.filter((one) => !isReceived(one));
  }

  #touch(leader: number, sessionId: bigint, clockMs: number): void {
    if (this.#cluster.server(leader).role !== 'leading') return;
    const answeredMs = mapOf(this.#touchedMs, leader);
    answeredMs.set(sessionId, Math.max(clockMs, answeredMs.get(sessionId) ?? 0));
  }
}

function mapOf(maps: Map<number, Map<bigint, number>>, server: number): Map<bigint, number> {
  let map = maps.get(server);
  if (map === undefined) {
    map = new Map();
    maps.set(server, map);
  }
  return map;
}
