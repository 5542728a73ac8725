/** L4: a leader without a quorum, and a learner without its leader, stop serving in time. */
import { PacketType } from '@meerkat/protocol';
import type { Cluster } from './cluster.ts';
import type { ServerGhost } from './server-ghost.ts';
import type { WireEvent } from './wire.ts';

/** Limits of an ensemble's configuration. */
export interface Limits {
  readonly tickTimeMs: number;
  readonly initLimit: number;
  readonly syncLimit: number;
}

/** A learner's connection, as seen by its leader. */
interface Link {
  readonly learner: number;
  readonly leader: number;
  /** UPTODATE has been sent: from then on syncLimit counts, and no longer initLimit. */
  isServing: boolean;
  /** When the leader last received something over it, or sent UPTODATE, by the leader's clock. */
  contactMs: number;
}

/** Ticks after a limit within which a server notices: it checks every half tick, the quorum every other time. */
const SLACK_TICKS = 2;

/**
 * What a server last received lets it serve up to some moment, by its own clock. A process that was paused is given a
 * little longer to notice it.
 */
export class ContactRules {
  readonly #cluster: Cluster;
  readonly #limits: Limits;
  readonly #clockMs: (server: number) => number;
  /** By connection. */
  readonly #links: Map<number, Link> = new Map();
  /** For learners, when they last received something from their leader, by the learner's clock. */
  readonly #leaderContactMs: Map<number, number> = new Map();
  /** Up to this moment of its clock a server need not be checked again. */
  readonly #nextLookMs: Map<number, number> = new Map();
  readonly #resumedMs: Map<number, number> = new Map();

  constructor(cluster: Cluster, limits: Limits, clockMs: (server: number) => number) {
    this.#cluster = cluster;
    this.#limits = limits;
    this.#clockMs = clockMs;
  }

  onRole(server: ServerGhost): void {
    this.#nextLookMs.delete(server.id);
    this.#leaderContactMs.delete(server.id);
  }

  /** A paused process resumes. */
  onResumed(server: number): void {
    this.#resumedMs.set(server, this.#clockMs(server));
  }

  onWire(event: WireEvent): void {
    // A closed connection may count as long as a silent one: it is unknown when the leader notices.
    if (event.kind === 'learner-packet' && event.stage === 'received') {
      const contactMs = this.#clockMs(event.to);
      const link = this.#links.get(event.connection);
      if (link !== undefined) link.contactMs = contactMs;
      else {
        const link = { learner: event.from, leader: event.to, isServing: false, contactMs };
        this.#links.set(event.connection, link);
      }
    } else if (event.kind === 'leader-packet') {
      const link = this.#links.get(event.connection);
      if (event.stage === 'received') this.#leaderContactMs.set(event.to, this.#clockMs(event.to));
      else if (link !== undefined && event.packet.type === PacketType.upToDate) {
        link.isServing = true;
        link.contactMs = this.#clockMs(event.from);
      }
    }
  }

  /** A turn has ended in which the server serves clients. */
  onServing(id: number): void {
    const nowMs = this.#clockMs(id);
    if (nowMs < (this.#nextLookMs.get(id) ?? 0)) return;
    const server = this.#cluster.server(id);
    if (server.established === null) return;
    const graceMs = (this.#resumedMs.get(id) ?? 0) + SLACK_TICKS * this.#limits.tickTimeMs;
    const mayServeMs = Math.max(graceMs, server.role === 'leading' ? this.#leadsUntilMs(id) : this.#followsUntilMs(id));
    this.#nextLookMs.set(id, mayServeMs);
    if (nowMs <= mayServeMs) return;
    const late = `${Math.round(nowMs - mayServeMs)} ms too long`;
    const whom = server.role === 'leading' ? 'a quorum of learners' : 'its leader';
    this.#cluster.report('L4', [id], `server ${id}, ${server.role}, serves ${late} without hearing from ${whom}`);
    this.#nextLookMs.set(id, Number.POSITIVE_INFINITY);
  }

  /** The last moment at which the leader and the followers with recent contact are a quorum. */
  #leadsUntilMs(id: number): number {
    const untilMs = new Map<number, number>();
    const nowMs = this.#clockMs(id);
    for (const [connection, { learner, leader, isServing, contactMs }] of this.#links) {
      if (leader !== id) continue;
      const ticks = (isServing ? this.#limits.syncLimit : this.#limits.initLimit) + SLACK_TICKS;
      const until = contactMs + ticks * this.#limits.tickTimeMs;
      if (until < nowMs) this.#links.delete(connection);
      untilMs.set(learner, Math.max(until, untilMs.get(learner) ?? 0));
    }
    const present = [id];
    if (this.#cluster.isQuorumOfAny(present)) return Number.POSITIVE_INFINITY;
    for (const [learner, until] of [...untilMs].sort(([, a], [, b]) => b - a)) {
      present.push(learner);
      if (this.#cluster.isQuorumOfAny(present)) return until;
    }
    return 0;
  }

  #followsUntilMs(id: number): number {
    const contactMs = this.#leaderContactMs.get(id);
    if (contactMs === undefined) return Number.POSITIVE_INFINITY;
    return contactMs + (this.#limits.syncLimit + SLACK_TICKS) * this.#limits.tickTimeMs;
  }
}
