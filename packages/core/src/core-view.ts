import { type DatabaseView, viewDatabase } from './database-view.ts';
import type { ClientConnection } from './links/client-connection.ts';
import type { CoreOptions } from './options.ts';
import type { Clock } from './ports.ts';
import type { ServerStats } from './server-stats.ts';
import type {
  ConnectionView,
  EnsembleView,
  ExpiryBucketView,
  ServerView,
  SessionView,
  WatchView,
} from './server-view.ts';
import type { Serving } from './serving.ts';
import type { Watcher, WatchManager } from './watch/watch-manager.ts';

export interface CoreViewParts {
  readonly options: CoreOptions;
  readonly stats: ServerStats;
  readonly watches: WatchManager;
  readonly connections: ReadonlySet<ClientConnection>;
  readonly clock: Clock;
  readonly ensemble: EnsembleView | null;
  serving(): Serving | null;
  isServing(): boolean;
}

/** The administrator's view of a server: read when asked, never kept. */
export class CoreView implements ServerView {
  readonly #parts: CoreViewParts;
  readonly watches: WatchView;

  constructor(parts: CoreViewParts) {
    this.#parts = parts;
    this.watches = new CoreWatchView(parts.watches, parts.connections);
  }

  get isServing(): boolean {
    return this.#parts.isServing();
  }

  get serverId(): number {
    return this.#parts.options.serverId;
  }

  get lastZxid(): number {
    return this.#parts.serving()?.database.lastZxid ?? 0;
  }

  get znodeCount(): number {
    return this.#parts.serving()?.database.tree.count ?? 0;
  }

  get ephemeralCount(): number {
    return this.#parts.serving()?.database.tree.ephemeralCount ?? 0;
  }

  get approximateDataSize(): number {
    return this.#parts.serving()?.database.tree.approximateDataSize ?? 0;
  }

  get outstandingRequests(): number {
    return this.#parts.serving()?.pipeline.inFlightCount ?? 0;
  }

  get sessionCount(): number {
    return this.#parts.serving()?.sessions.count ?? 0;
  }

  get stats(): ServerStats {
    return this.#parts.stats;
  }

  get ensemble(): EnsembleView | null {
    return this.#parts.ensemble;
  }

  connections(): readonly ConnectionView[] {
    return [...this.#parts.connections].map(viewConnection);
  }

  sessions(): readonly SessionView[] {
    const { connections } = this.#parts;
    const living = [...(this.#parts.serving()?.sessions.values() ?? [])].filter((session) => !session.isClosing);
    const open = new Map([...connections].filter(({ isOpen }) => isOpen).map((c) => [c.session?.id ?? 0n, c.remote]));
    return living.map(({ id, timeoutMs }) => ({ id, timeoutMs, remote: open.get(id) ?? null }));
  }

  sessionBuckets(): readonly ExpiryBucketView<bigint>[] {
    const offsetMs = this.#wallOffsetMs();
    return (this.#parts.serving()?.sessions.buckets() ?? []).map(({ expiresAtMs, sessions }) => ({
      expiresAtWallMs: expiresAtMs + offsetMs,
      members: sessions.map((session) => session.id),
    }));
  }

  connectionBuckets(): readonly ExpiryBucketView<ConnectionView>[] {
    const offsetMs = this.#wallOffsetMs();
    const buckets = new Map<number, ConnectionView[]>();
    for (const connection of this.#parts.connections) {
      const { session, openedMs } = connection;
      const { tickTimeMs, sessionlessTimeoutMs } = this.#parts.options;
      const dueMs = session === null ? openedMs + sessionlessTimeoutMs : session.expiresAtMs;
      const bucketMs = Math.ceil(dueMs / tickTimeMs) * tickTimeMs;
      const bucket = buckets.get(bucketMs);
      if (bucket === undefined) buckets.set(bucketMs, [viewConnection(connection)]);
      else bucket.push(viewConnection(connection));
    }
    return [...buckets]
      .sort(([a], [b]) => a - b)
      .map(([expiresAtMs, members]) => ({ expiresAtWallMs: expiresAtMs + offsetMs, members }));
  }

  ephemerals(): ReadonlyMap<bigint, readonly string[]> {
    const tree = this.#parts.serving()?.database.tree;
    const paths = new Map<bigint, readonly string[]>();
    if (tree === undefined) return paths;
    for (const sessionId of tree.sessionsWithEphemerals()) paths.set(sessionId, tree.ephemeralsOf(sessionId));
    return paths;
  }

  digests(): readonly { readonly zxid: number; readonly digest: bigint }[] {
    return this.#parts.serving()?.database.tree.digestHistory() ?? [];
  }

  database(): DatabaseView | null {
    const serving = this.#parts.serving();
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
    sessionId: session?.id ?? 0n,
    sessionTimeoutMs: session?.timeoutMs ?? 0,
    isReading: connection.isReading,
    isWriting: connection.isWriting,
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

  get count(): number {
    return this.#watches.data.count + this.#watches.child.count;
  }

  summary(): { readonly connections: number; readonly paths: number; readonly watches: number } {
    const { watcherCount, pathCount, count } = this.#watches.data;
    return { connections: watcherCount, paths: pathCount, watches: count };
  }

  bySession(): ReadonlyMap<bigint, readonly string[]> {
    const sessionIds = this.#sessionIds();
    const paths = new Map<bigint, readonly string[]>();
    for (const [watcher, watched] of this.#watches.data.watchers()) {
      paths.set(sessionIds.get(watcher) ?? 0n, [...watched]);
    }
    return paths;
  }

  byPath(): ReadonlyMap<string, readonly bigint[]> {
    const sessionIds = this.#sessionIds();
    const watchers = new Map<string, readonly bigint[]>();
    for (const [path, modes] of this.#watches.data.paths()) {
      watchers.set(
        path,
        [...modes.keys()].map((watcher) => sessionIds.get(watcher) ?? 0n),
      );
    }
    return watchers;
  }

  #sessionIds(): ReadonlyMap<Watcher, bigint> {
    const ids = new Map<Watcher, bigint>();
    for (const connection of this.#connections) ids.set(connection, connection.session?.id ?? 0n);
    return ids;
  }
}
