/** S4: a leader ends no session that was active within its timeout. */
import { OpCode, PacketType } from '@meerkat/protocol';
import type { Cluster } from './cluster.ts';
import type { ServerGhost } from './server-ghost.ts';
import type { WireEvent } from './wire.ts';

export class ExpiryRules {
  readonly #cluster: Cluster;
  /** When a server last saw activity of a session, milliseconds; in this role only. */
  readonly #touches: Map<number, Map<bigint, number>> = new Map();
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
    touches.set(sessionId, this.#clockMs(server));
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
    const touchedMs = this.#touches.get(server.id)?.get(sessionId) ?? 0;
    const sinceMs = Math.max(touchedMs, this.#since.get(server.id) ?? 0);
    const silentMs = this.#clockMs(server.id) - sinceMs;
    if (silentMs >= timeoutMs) return;
    const message = `leader ${server.id} ends session 0x${sessionId.toString(16)} after ${silentMs} ms of silence`;
    this.#cluster.report('S4', [server.id], `${message}; its timeout is ${timeoutMs} ms`);
  }
}
