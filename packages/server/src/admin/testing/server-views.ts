import { type ConnectionView, FiredWatches, Meters, ServerStats, type ServerView } from '@meerkat/core';
import { CLOCK } from './asked-words.ts';

export function connection(port: number, more: Partial<ConnectionView> = {}): ConnectionView {
  return {
    remote: { ip: Uint8Array.of(127, 0, 0, 1), host: '127.0.0.1', port },
    isSecure: false,
    sessionId: 0n,
    sessionTimeoutMs: 0,
    isReading: true,
    isWriting: false,
    outstandingRequests: 0,
    packetsReceived: 0,
    packetsSent: 0,
    lastOperation: null,
    establishedWallMs: 0,
    lastCxid: 0,
    lastZxid: 0,
    lastResponseMs: 0,
    lastLatencyMs: 0,
    minLatencyMs: 0,
    averageLatencyMs: 0,
    maxLatencyMs: 0,
    ...more,
  };
}

export function view(more: Partial<ServerView> = {}): ServerView {
  return {
    refusals: () => [],
    isServing: true,
    isReadOnly: false,
    serverId: 1,
    lastZxid: 0,
    znodeCount: 5,
    ephemeralCount: 0,
    approximateDataSize: 44,
    outstandingRequests: 0,
    sessionCount: 0,
    localSessionCount: null,
    localSessionBuckets: () => [],
    stats: new ServerStats(),
    meters: new Meters(CLOCK),
    watches: {
      summary: () => ({ connections: 0, paths: 0, watches: 0 }),
      bySession: () => new Map(),
      byPath: () => new Map(),
      fired: new FiredWatches(),
      count: 0,
    },
    connectionCount: 0,
    connections: () => [],
    sessions: () => [],
    sessionIds: () => [],
    timeoutMsOf: () => null,
    sessionBuckets: () => [],
    connectionBuckets: () => [],
    quotas: () => [],
    sessionsWithEphemerals: () => [],
    ephemeralsOf: () => [],
    ephemeralCountOf: () => 0,
    digests: () => [],
    database: () => null,
    resetConnectionStats() {},
    ensemble: null,
    ...more,
  };
}
