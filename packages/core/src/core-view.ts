import type { FiredWatches } from './base/meters/fired-watches.ts';
import type { Meters } from './base/meters/meters.ts';
import type { CoreOptions } from './base/options.ts';
import type { Clock } from './base/ports.ts';
import type { ServerStats } from './base/server-stats.ts';
import type {
  ConnectionName,
  ConnectionView,
  DatabaseView,
  EnsembleView,
  ExpiryBucketView,
  QuotaUse,
  ServerView,
  SessionView,
  WatchView,
} from './base/server-view.ts';
import { viewDatabase } from './database-view.ts';
import type { ClientConnection } from './links/client-connection.ts';
import { LIMITS, type ServingLimits } from './request/serving-limits.ts';
import type { ServerLife } from './server-life.ts';
import type { ExpiryBucket } from './session/session-table.ts';
import type { Watcher, WatchManager } from './watch/watch-manager.ts';

export interface CoreViewParts {
  readonly options: CoreOptions;
  readonly stats: ServerStats;
  readonly meters: Meters;
  readonly limits: ServingLimits;
  readonly watches: WatchManager;
  readonly connections: ReadonlySet<ClientConnection>;
  readonly clock: Clock;
  readonly life: Pick<ServerLife, 'ensemble' | 'serving' | 'isServing' | 'isReadOnly'>;
}

/** The administrator's view of a server, computed on each read. */
export class CoreView implements ServerView {
  readonly #parts: CoreViewParts;
  readonly watches: WatchView;

  constructor(parts: CoreViewParts) {
    this.#parts = parts;
    this.watches = new CoreWatchView(parts.watches, parts.connections);
  }

  get isServing(): boolean {
    return this.#parts.life.isServing;
  }

  get isReadOnly(): boolean {
    return this.#parts.life.isReadOnly;
  }

  get serverId(): number {
    return this.#parts.options.serverId;
  }

  get lastZxid(): number {
    return this.#parts.life.serving?.database.lastZxid ?? 0;
  }

  get znodeCount(): number {
    return this.#parts.life.serving?.database.tree.count ?? 0;
  }

  get ephemeralCount(): number {
    return this.#parts.life.serving?.database.tree.ephemeralCount ?? 0;
  }

  get approximateDataSize(): number {
    return this.#parts.life.serving?.database.tree.approximateDataSize ?? 0;
  }

  get outstandingRequests(): number {
    return this.#parts.life.serving?.pipeline.outstandingCount ?? 0;
  }

  get sessionCount(): number {
    return this.#parts.life.serving?.sessions.count ?? 0;
  }

  get stats(): ServerStats {
    return this.#parts.stats;
  }

  *refusals(): Iterable<readonly [limit: string, count: number]> {
    for (const limit of LIMITS) yield [limit, this.#parts.limits.countOf(limit)];
  }

  get meters(): Meters {
    return this.#parts.meters;
  }

  get ensemble(): EnsembleView | null {
    return this.#parts.life.ensemble;
  }

  get connectionCount(): number {
    return this.#parts.connections.size;
  }

  *connections(): Iterable<ConnectionView> {
    for (const connection of [...this.#parts.connections]) yield viewConnection(connection);
  }

  sessions(): readonly SessionView[] {
    const { connections } = this.#parts;
    const living = [...(this.#parts.life.serving?.table.values() ?? [])].filter((session) => !session.isClosing);
    const open = new Map([...connections].filter(({ isOpen }) => isOpen).map((c) => [c.session?.id ?? 0n, c.remote]));
    return living.map(({ id, timeoutMs }) => ({ id, timeoutMs, remote: open.get(id) ?? null }));
  }

  sessionIds(): Iterable<bigint> {
    const sessions = this.#parts.life.serving?.sessions.values() ?? [];
    return BigInt64Array.from(Array.from(sessions, ({ id }) => id)).sort();
  }

  timeoutMsOf(sessionId: bigint): number | null {
    const serving = this.#parts.life.serving;
    const session = serving?.table.get(sessionId);
    if (session?.isClosing) return null;
    // A learner's table has only the sessions of its own clients.
    return session?.timeoutMs ?? serving?.database.sessions.get(sessionId) ?? null;
  }

  sessionBuckets(): readonly ExpiryBucketView<bigint>[] {
    return this.#viewBuckets(this.#parts.life.serving?.sessions.buckets() ?? []);
  }

  get localSessionCount(): number | null {
    return this.#parts.life.serving?.local?.localCount ?? null;
  }

  localSessionBuckets(): readonly ExpiryBucketView<bigint>[] {
    return this.#viewBuckets(this.#parts.life.serving?.local?.localBuckets() ?? []);
  }

  #viewBuckets(buckets: readonly ExpiryBucket[]): readonly ExpiryBucketView<bigint>[] {
    const offsetMs = this.#wallOffsetMs();
    return buckets.map(({ expiresAtMs, sessions }) => ({
      expiresAtWallMs: expiresAtMs + offsetMs,
      members: sessions.map((session) => session.id),
    }));
  }

  connectionBuckets(): readonly ExpiryBucketView<ConnectionName>[] {
    const offsetMs = this.#wallOffsetMs();
    const buckets = new Map<number, ConnectionName[]>();
    for (const connection of this.#parts.connections) {
      const { session, openedMs } = connection;
      const { tickTimeMs, sessionlessTimeoutMs } = this.#parts.options;
      const dueMs = session === null ? openedMs + sessionlessTimeoutMs : session.expiresAtMs;
      const bucketMs = Math.ceil(dueMs / tickTimeMs) * tickTimeMs;
      const name = { remote: connection.remote, sessionId: session?.id ?? 0n };
      const bucket = buckets.get(bucketMs);
      if (bucket === undefined) buckets.set(bucketMs, [name]);
      else bucket.push(name);
    }
    return [...buckets]
      .sort(([a], [b]) => a - b)
      .map(([expiresAtMs, members]) => ({ expiresAtWallMs: expiresAtMs + offsetMs, members }));
  }

  sessionsWithEphemerals(): readonly bigint[] {
    return [...(this.#parts.life.serving?.database.tree.sessionsWithEphemerals() ?? [])];
  }

  quotas(): Iterable<QuotaUse> {
    return this.#parts.life.serving?.database.tree.quotas.uses() ?? [];
  }

  ephemeralCountOf(sessionId: bigint): number {
    return this.#parts.life.serving?.database.tree.ephemeralCountOf(sessionId) ?? 0;
  }

  *ephemeralsOf(sessionId: bigint): Iterable<string> {
    const tree = this.#parts.life.serving?.database.tree;
    if (tree === undefined) return;
    // Deleted ephemerals are skipped; the bound keeps ones created meanwhile from making this endless.
    let left = tree.ephemeralCountOf(sessionId);
    for (const z of tree.state.ephemerals.of(sessionId)) {
      if (left-- === 0) return;
      yield tree.znodes.pathOf(z);
    }
  }

  digests(): readonly { readonly zxid: number; readonly digest: bigint }[] {
    return this.#parts.life.serving?.database.tree.digestHistory() ?? [];
  }

  database(): DatabaseView | null {
    const serving = this.#parts.life.serving;
    return serving === null ? null : viewDatabase(serving.database);
  }

  resetConnectionStats(): void {
    for (const connection of this.#parts.connections) connection.stats.reset();
  }

  #wallOffsetMs(): number {
    return this.#parts.clock.wallMs() - this.#parts.clock.monotonicMs();
  }
}

function viewConnection(connection: ClientConnection): ConnectionView {
  const { stats, session } = connection;
  return {
    remote: connection.remote,
    isSecure: connection.isSecure,
    sessionId: session?.id ?? 0n,
    sessionTimeoutMs: session?.timeoutMs ?? 0,
    isReading: connection.isReading,
    isWriting: connection.output.isBackedUp,
    outstandingRequests: connection.waiting.length,
    packetsReceived: stats.packetsReceived,
    packetsSent: stats.packetsSent,
    lastOperation: stats.lastOperation,
    establishedWallMs: stats.establishedWallMs,
    lastCxid: stats.lastCxid,
    lastZxid: stats.lastZxid,
    lastResponseMs: stats.lastResponseMs,
    lastLatencyMs: stats.lastLatencyMs,
    minLatencyMs: stats.minLatencyMs,
    averageLatencyMs: stats.averageLatencyMs,
    maxLatencyMs: stats.maxLatencyMs,
  };
}

class CoreWatchView implements WatchView {
  readonly #watches: WatchManager;
  readonly #connections: ReadonlySet<ClientConnection>;

  constructor(watches: WatchManager, connections: ReadonlySet<ClientConnection>) {
    this.#watches = watches;
    this.#connections = connections;
  }

  get fired(): FiredWatches {
    return this.#watches.fired;
  }

  get count(): number {
    return this.#watches.data.count + this.#watches.child.count;
  }

  summary(): { readonly connections: number; readonly paths: number; readonly watches: number } {
    const { watcherCount, pathCount, count } = this.#watches.data;
    return { connections: watcherCount, paths: pathCount, watches: count };
  }

  *bySession(): Iterable<readonly [sessionId: bigint, paths: Iterable<string>]> {
    const sessionIds = this.#sessionIds();
    let left = this.#watches.data.watcherCount;
    for (const [watcher, paths] of this.#watches.data.watchers()) {
      if (left-- === 0) return;
      yield [sessionIds.get(watcher) ?? 0n, paths];
    }
  }

  *byPath(): Iterable<readonly [path: string, sessionIds: Iterable<bigint>]> {
    const sessionIds = this.#sessionIds();
    let left = this.#watches.data.pathCount;
    for (const [path, watchers] of this.#watches.data.paths()) {
      // Watches that are set meanwhile must not make this endless.
      if (left-- === 0) return;
      yield [path, Array.from(watchers, (watcher) => sessionIds.get(watcher) ?? 0n)];
    }
  }

  #sessionIds(): ReadonlyMap<Watcher, bigint> {
    const ids = new Map<Watcher, bigint>();
    for (const connection of this.#connections) ids.set(connection, connection.session?.id ?? 0n);
    return ids;
  }
}
