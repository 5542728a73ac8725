/** S14: a leader ends a session that is silent. */
import { OpCode, PacketType } from '@meerkat/protocol';
import type { Cluster } from './cluster.ts';
import type { Limits } from './contact-rules.ts';
import type { ServerGhost } from './server-ghost.ts';
import type { WireEvent } from './wire.ts';

/** What a leader knows of sessions in its term, by its own clock. */
interface Term {
  /** When it began to serve: all timeouts start then. */
  readonly sinceMs: number;
  /** When any server had a sign of life of a session. */
  readonly signsMs: Map<bigint, number>;
  /** Sessions whose end it has decided. */
  readonly ended: Set<bigint>;
  nextLookMs: number;
}

/**
 * Ticks after the timeout. The sessions of a learner end when it has answered a ping without them, or is gone: that takes
 * syncLimit at most. The rest is for the buckets, for a leader that has just begun, and for txns that wait to be prepared.
 */
const SLACK_TICKS = 10;

/**
 * Every session whose creation is committed is either alive, or its leader ends it in time.
 *
 * The time starts again when a paused leader resumes, because what clients sent meanwhile comes late; and when the
 * connection of the client's server to the leader ends: it may have answered the client until then without reporting it.
 */
export class OverdueRules {
  readonly #cluster: Cluster;
  readonly #limits: Limits;
  readonly #clockMs: (server: number) => number;
  /** Sessions that the committed txns up to `#readCount` leave open, with the longest timeout that each has had. */
  readonly #open: Map<bigint, number> = new Map();
  #readCount = 0;
  /** The server that a client was last connected to; also of local sessions, which may become others. */
  readonly #owners: Map<bigint, number> = new Map();
  readonly #terms: Map<number, Term> = new Map();
  readonly #resumedMs: Map<number, number> = new Map();

  constructor(cluster: Cluster, limits: Limits, clockMs: (server: number) => number) {
    this.#cluster = cluster;
    this.#limits = limits;
    this.#clockMs = clockMs;
  }

  onRole(server: ServerGhost): void {
    this.#terms.delete(server.id);
  }

  onEstablished({ id }: ServerGhost): void {
    this.#terms.set(id, { sinceMs: this.#clockMs(id), signsMs: new Map(), ended: new Set(), nextLookMs: 0 });
  }

  /** A paused process resumes. */
  onResumed(server: number): void {
    this.#resumedMs.set(server, this.#clockMs(server));
  }

  /** A leader has decided to end a session, or its client has. */
  onEnding(leader: number, sessionId: bigint): void {
    this.#terms.get(leader)?.ended.add(sessionId);
  }

  /**
   * A client has sent something, or a server has reported that it has.
   *
   * @param owner the client's server; null: unknown
   */
  onSign(sessionId: bigint, owner: number | null = null): void {
    if (owner !== null) this.#owners.set(sessionId, owner);
    for (const [leader, { signsMs }] of this.#terms) signsMs.set(sessionId, this.#clockMs(leader));
  }

  /** A client begins a session or continues it, perhaps with another timeout. */
  onConnected(sessionId: bigint, owner: number, timeoutMs: number): void {
    this.#readCommitted();
    const before = this.#open.get(sessionId);
    if (before !== undefined) this.#open.set(sessionId, Math.max(before, timeoutMs));
    this.onSign(sessionId, owner);
  }

  /** The connection of a server to its leader, or of an observer to its follower, has ended. */
  onLearnerClosed(learner: number): void {
    for (const sessionId of this.#open.keys()) {
      // A server that ends before it has answered its client has created the session nevertheless.
      const owner = this.#owners.get(sessionId) ?? Number((sessionId >> 56n) & 0xffn);
      // A follower reports the sessions of its observers.
      const isItsOwn = owner === learner || this.#cluster.servers.get(owner)?.role === 'observing';
      if (isItsOwn) this.onSign(sessionId);
    }
  }

  onWire(event: WireEvent): void {
    if (event.kind === 'closed') this.onLearnerClosed(event.from);
    else if (event.kind === 'learner-packet' && event.stage === 'received') {
      const { packet } = event;
      if (packet.type === PacketType.ping) for (const { sessionId } of packet.sessions) this.onSign(sessionId);
      else if (packet.type === PacketType.revalidate || packet.type === PacketType.request)
        this.onSign(packet.sessionId, event.from);
    } else if (event.kind === 'leader-packet' && event.stage === 'sent' && event.packet.type === PacketType.proposal) {
      const { header, txn } = event.packet.entry;
      if (txn.type === OpCode.closeSession) this.onEnding(event.from, header.sessionId);
    }
  }

  /** A turn has ended in which the server serves clients. */
  onServing(id: number): void {
    const term = this.#terms.get(id);
    if (term === undefined || this.#cluster.server(id).role !== 'leading') return;
    const nowMs = this.#clockMs(id);
    if (nowMs < term.nextLookMs) return;
    this.#readCommitted();
    const { tickTimeMs, syncLimit } = this.#limits;
    term.nextLookMs = nowMs + tickTimeMs;
    const sinceMs = Math.max(term.sinceMs, this.#resumedMs.get(id) ?? 0);
    for (const [sessionId, timeoutMs] of this.#open) {
      if (term.ended.has(sessionId)) continue;
      const silentMs = nowMs - Math.max(sinceMs, term.signsMs.get(sessionId) ?? 0);
      if (silentMs <= timeoutMs + (syncLimit + SLACK_TICKS) * tickTimeMs) continue;
      term.ended.add(sessionId);
      const name = `session 0x${sessionId.toString(16)}`;
      const message = `leader ${id} does not end ${name}, silent for ${Math.round(silentMs)} ms`;
      this.#cluster.report('S14', [id], `${message}; its timeout is ${timeoutMs} ms`);
    }
  }

  #readCommitted(): void {
    const { entries } = this.#cluster.committed;
    for (; this.#readCount < entries.length; this.#readCount++) {
      const entry = entries[this.#readCount];
      if (entry?.txn.type === OpCode.createSession) {
        this.#open.set(entry.header.sessionId, entry.txn.timeoutMs);
        this.onSign(entry.header.sessionId);
      } else if (entry?.txn.type === OpCode.closeSession) this.#open.delete(entry.header.sessionId);
    }
  }
}
