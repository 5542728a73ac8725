import { type Acl, type ConnectRequest, OPEN_ACL, type Zxid } from '@meerkat/protocol';
import type { LimitOptions } from './base/limit-options.ts';
import type { CoreOptions } from './base/options.ts';
import type { Authenticator, ByteStream, Ports, SessionPasswords, StreamEvents, Trace } from './base/ports.ts';
import type { ServerStats } from './base/server-stats.ts';
import type { FourLetterWords } from './base/server-view.ts';
import type { Turn } from './base/turn.ts';
import type { ClientConnection } from './links/client-connection.ts';
import type { ClientConnections } from './links/client-connections.ts';
import type { ConnectionHost } from './links/connection-host.ts';
import { OutputPool } from './links/output-pool.ts';
import { LeaderServing } from './request/leader-serving.ts';
import type { Permission } from './request/permission.ts';
import type { Pipeline } from './request/pipeline.ts';
import { LIMIT_REACHED, type ServingLimits } from './request/serving-limits.ts';
import type { WorkMeter } from './request/work-meter.ts';
import type { ServerLife } from './server-life.ts';
import type { Serving } from './serving.ts';
import type { ConnectDecision } from './session/connect-decision.ts';
import { ConnectThrottle } from './session/connect-throttle.ts';
import { APACHE_SESSION_PASSWORDS } from './session/password.ts';
import { decideConnect } from './session/session-door.ts';
import { OPEN_ACL_ID } from './tree/acl-table.ts';
import { NO_ZNODE } from './tree/znode-rows.ts';

export interface ClientHostParts {
  readonly ports: Ports;
  readonly options: CoreOptions;
  readonly turn: Turn;
  readonly life: ServerLife;
  readonly connections: ClientConnections;
  readonly permission: Permission;
  readonly fourLetterWords: FourLetterWords;
  readonly stats: ServerStats;
  readonly work: WorkMeter;
  readonly limits: ServingLimits;
}

/** The server as its client connections see it; accepts or refuses new connections and sessions. */
export class ClientHost implements ConnectionHost<ClientConnection> {
  readonly connections: ClientConnections;
  readonly turn: Turn;
  readonly permission: Permission;
  readonly authenticator: Authenticator;
  readonly passwords: SessionPasswords;
  readonly fourLetterWords: FourLetterWords;
  readonly stats: ServerStats;
  readonly outputPool: OutputPool = new OutputPool();
  readonly trace: Trace;
  readonly work: WorkMeter;
  readonly frameBytesMax: number;
  readonly sessionRequestsMax: number;
  readonly #limits: ServingLimits;
  readonly #throttle: ConnectThrottle;
  /** While true, connect requests are refused; `shed` closes the connections that exist. */
  isDraining = false;
  readonly #life: ServerLife;
  readonly #options: CoreOptions;

  constructor(parts: ClientHostParts) {
    const { ports, options, turn, life, connections, permission, fourLetterWords, stats, work, limits } = parts;
    this.connections = connections;
    this.turn = turn;
    this.permission = permission;
    this.authenticator = ports.authenticator;
    this.passwords = ports.sessionPasswords ?? APACHE_SESSION_PASSWORDS;
    this.fourLetterWords = fourLetterWords;
    this.stats = stats;
    this.trace = ports.trace;
    this.work = work;
    this.frameBytesMax = options.frameBytesMax;
    const { sessionRequestsMax, connecting } = options.limits;
    this.sessionRequestsMax = sessionRequestsMax === 0 ? Number.POSITIVE_INFINITY : sessionRequestsMax;
    this.#limits = limits;
    this.#throttle = new ConnectThrottle(connecting, ports.random, ports.clock.monotonicMs());
    this.#life = life;
    this.#options = options;
  }

  /** A peer has connected to the client port. */
  accept(stream: ByteStream): StreamEvents {
    const { phase } = this.#life;
    const isEnding = phase === 'stopping' || phase === 'failed';
    const reason = isEnding ? 'the server is stopping' : this.#refusalOf(stream);
    if (reason !== null) {
      this.stats.connectionsRefused++;
      this.trace.emit({ kind: 'connection-refused', remote: stream.remote, reason });
      stream.destroy();
      return REFUSED;
    }
    this.trace.emit({ kind: 'connection-opened', remote: stream.remote });
    return this.connections.open(stream, this);
  }

  /** @returns why the connection is refused; null if accepted, in which case an idle one may have been closed for it */
  #refusalOf({ remote, isCrowding = false }: ByteStream): string | null {
    const refusal = this.connections.refusalOf(remote.host);
    if (refusal !== null || !isCrowding || this.connections.shedSilent(CROWDED)) return refusal;
    return `${CROWDED}, and none of the others is without a session`;
  }

  get isServing(): boolean {
    return this.#life.isServing;
  }

  get isStopping(): boolean {
    return this.#life.isStopping;
  }

  get isThrottled(): boolean {
    const { requestsMax } = this.#options.limits;
    return requestsMax > 0 && this.pipeline.outstandingCount >= requestsMax;
  }

  get requestWaits(): LimitOptions {
    return this.#options.limits;
  }

  refuseLateRequest(waitedMs: number): void {
    const { requestWaitMaxMs } = this.#options.limits;
    const reason = `a request has waited for ${Math.round(waitedMs)} ms, and throttled_op_wait_time allows ${requestWaitMaxMs} ms`;
    this.#limits.refuse('late-requests', reason, this.turn.nowMs());
  }

  refuseLargeRequest(reason: string): void {
    this.#limits.refuse('large-requests', reason, this.turn.nowMs());
  }

  get isOverloaded(): boolean {
    return this.pipeline.outstandingCount > this.#options.globalOutstandingLimit;
  }

  mayAwaitServing(openedMs: number): boolean {
    return this.#life.phase === 'waiting' && this.turn.nowMs() < openedMs + this.connections.servingWaitMs;
  }

  decideConnect(request: ConnectRequest): ConnectDecision {
    const { pipeline, table } = this.#serving;
    if (this.isDraining) return { kind: 'close', reason: DRAINED };
    const refusal = this.#refusalOfRole(request);
    if (refusal !== null) return { kind: 'close', reason: refusal };
    const limit = this.#refusalOfLimits(request, table.count);
    if (limit !== null) return { kind: 'close', reason: limit };
    const shownUpTo = laterOf(pipeline.lastApplied, this.#life.decidedZxid);
    return decideConnect(request, table, shownUpTo, this.#options, this.passwords, this.turn.nowMs());
  }

  #refusalOfLimits({ sessionId }: ConnectRequest, sessionCount: number): string | null {
    const nowMs = this.turn.nowMs();
    const isNew = sessionId === 0n;
    const refusal = isNew ? this.#limits.sessionRefusal(sessionCount, nowMs) : null;
    const isLocal = this.#options.ensemble?.localSessionsEnabled ?? false;
    const session = !isNew ? 'renewed' : isLocal ? 'local' : 'new';
    if (refusal !== null) return refusal;
    const isLetIn = this.#throttle.take(session, nowMs);
    const { meters } = this.turn;
    meters.connectDropChance = this.#throttle.dropChance;
    if (isLetIn) {
      meters.tokenDeficit.add(this.#throttle.deficit);
      return null;
    }
    this.#limits.refuse('connects', THROTTLED, nowMs);
    return LIMIT_REACHED + THROTTLED;
  }

  #refusalOfRole({ readOnly }: ConnectRequest): string | null {
    const { serving } = this.#life;
    if (serving instanceof LeaderServing && this.#options.ensemble?.leaderServes === false) {
      return 'this server leads, and takes no clients (leaderServes=no)';
    }
    if (this.isReadOnly && !readOnly)
      return 'this server is read-only, and the client does not accept a read-only server';
    return null;
  }

  get isReadOnly(): boolean {
    return this.#life.isReadOnly;
  }

  get pipeline(): Pipeline {
    return this.#serving.pipeline;
  }

  aclOf(aclId: number): readonly Acl[] {
    return aclId === OPEN_ACL_ID ? OPEN_ACL : this.#serving.database.tree.acls.get(aclId);
  }

  dataOf(path: string): Uint8Array | null {
    const { tree } = this.#serving.database;
    const znode = tree.znodes.find(path);
    return znode === NO_ZNODE ? null : tree.dataOf(znode);
  }

  get #serving(): Serving {
    const { serving } = this.#life;
    if (serving === null) throw new Error('the server is not serving');
    return serving;
  }
}

function laterOf(a: Zxid, b: Zxid): Zxid {
  return a < b ? b : a;
}

/** Why a draining server closes client connections. */
export const DRAINED = 'its clients are sent to other servers';

const THROTTLED = 'more clients connect than connection_throttle_tokens allows';

const CROWDED = 'there are as many connections of clients as the descriptors of this process allow';

/** Ignores the events of a refused stream. */
const REFUSED: StreamEvents = {
  onBytes() {},
  onDrain() {},
  onClosed() {},
};
