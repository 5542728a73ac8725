import type { ConnectionView, ServerView } from '@meerkat/core';
import { type Fields, JsonFields, JsonList, mapped } from './java-json.ts';
import { formatRemote } from './java-text.ts';

function* briefly(connection: ConnectionView): Fields {
  yield ['remote_socket_address', formatRemote(connection.remote).slice(1)];
  yield ['interest_ops', (connection.isReading ? 1 : 0) + (connection.isWriting ? 4 : 0)];
  yield ['outstanding_requests', connection.outstandingRequests];
  yield ['packets_received', connection.packetsReceived];
  yield ['packets_sent', connection.packetsSent];
}

/** Plain and TLS connections, distinguished by port as in Apache's server. */
export function* showConnections(view: ServerView, show: (connection: ConnectionView) => JsonFields): Fields {
  for (const [name, isSecure] of [
    ['connections', false],
    ['secure_connections', true],
  ] as const) {
    yield [name, new JsonList(mapped(ofPort(view.connections(), isSecure), show))];
  }
}

function* ofPort(connections: Iterable<ConnectionView>, isSecure: boolean): Iterable<ConnectionView> {
  for (const connection of connections) if (connection.isSecure === isSecure) yield connection;
}

export function showConnectionBriefly(connection: ConnectionView): JsonFields {
  return new JsonFields(briefly(connection));
}

export function showConnection(connection: ConnectionView): JsonFields {
  return new JsonFields(atLength(connection));
}

function* atLength(connection: ConnectionView): Fields {
  yield* briefly(connection);
  if (connection.sessionId === 0n) return;
  yield ['session_id', connection.sessionId];
  yield ['last_operation', connection.lastOperation ?? 'NA'];
  yield ['established', connection.establishedWallMs];
  yield ['session_timeout', connection.sessionTimeoutMs];
  yield ['last_cxid', connection.lastCxid];
  yield ['last_zxid', connection.lastZxid];
  yield ['last_response_time', Math.trunc(connection.lastResponseMs)];
  yield ['last_latency', Math.trunc(connection.lastLatencyMs)];
  yield ['min_latency', Math.trunc(Math.min(connection.minLatencyMs, connection.maxLatencyMs))];
  yield ['avg_latency', Math.trunc(connection.averageLatencyMs)];
  yield ['max_latency', Math.trunc(connection.maxLatencyMs)];
}
