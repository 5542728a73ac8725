/**
 * S4: a leader ends no session that was active within its timeout. What arrives at the same moment does not count: it may
 * stand behind the packet that lets the leader end the session.
 */
import { OpCode, PacketType } from '@meerkat/protocol';
import type { Cluster } from './cluster.ts';
import type { ServerGhost } from './server-ghost.ts';
import type { WireEvent } from './wire.ts';

/** Activity of a session, in milliseconds: the last one, and the last one before that moment. */
interface Touch {
  readonly atMs: number;
  readonly beforeMs: number;
}

const NEVER: Touch = { atMs: 0, beforeMs: 0 };

export class ExpiryRules {
  readonly #cluster: Cluster;
  /** Of each server, in this role only. */
  readonly #touches: Map<number, Map<bigint, Touch>> = new Map();
  /** Since when a leader serves: the timeouts of all sessions start again then. */
  readonly #since: Map<number, number> = new Map();
  readonly #clockMs: (server: number) => number;

  /** @param clockMs monotonic milliseconds of a server's own clock: it may run faster than the world's */
  constructor(cluster: Cluster, clockMs: (server: number) => number) {
    this.#cluster = cluster;
    this.#clockMs = clockMs;
  }

  onRole(server: ServerGhost): void {
    this.#touches.set(server.id, new Map());
    this.#since.set(server.id, this.#clockMs(server.id));
  }

  onEstablished(server: ServerGhost): void {
    this.#since.set(server.id, this.#clockMs(server.id));
  }

  onTouched(server: number, sessionId: bigint): void {
    let touches = this.#touches.get(server);
    if (touches === undefined) {
      touches = new Map();
      this.#touches.set(server, touches);
    }
    const atMs = this.#clockMs(server);
    const last = touches.get(sessionId);
    const beforeMs = last?.atMs === atMs ? last.beforeMs : (last?.atMs ?? 0);
    touches.set(sessionId, { atMs, beforeMs });
  }

  onWire(event: WireEvent): void {
    if (event.kind !== 'learner-packet' || event.stage !== 'received') return;
    const { packet } = event;
    if (packet.type === PacketType.ping) {
      for (const { sessionId } of packet.sessions) this.onTouched(event.to, sessionId);
    } else if (
      packet.type === PacketType.revalidate ||
      (packet.type === PacketType.request && packet.op === OpCode.createSession)
    ) {
      this.onTouched(event.to, packet.sessionId);
    }
  }

  onExpired(server: ServerGhost, sessionId: bigint, timeoutMs: number): void {
    if (server.role !== 'leading') return;
    const nowMs = this.#clockMs(server.id);
    const { atMs, beforeMs } = this.#touches.get(server.id)?.get(sessionId) ?? NEVER;
    const touchedMs = atMs === nowMs ? beforeMs : atMs;
    const sinceMs = Math.max(touchedMs, this.#since.get(server.id) ?? 0);
    const silentMs = nowMs - sinceMs;
    if (silentMs >= timeoutMs) return;
    const message = `leader ${server.id} ends session 0x${sessionId.toString(16)} after ${silentMs} ms of silence`;
    this.#cluster.report('S4', [server.id], `${message}; its timeout is ${timeoutMs} ms`);
  }
}
