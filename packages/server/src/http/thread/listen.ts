import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { HttpFigures } from '../figures.ts';
import type { HttpPort, ListenPlace } from '../messages.ts';
import { CONNECTIONS_MAX, type HttpTls, isSystemFault } from '../options.ts';
import { Connections } from './connections.ts';
import { RefusalLog } from './refusal-log.ts';
import { secureConnections } from './secure-connections.ts';
import type { ServiceThread } from './service-thread.ts';

export interface ListenWhere {
  readonly port: HttpPort;
  readonly at: ListenPlace;
  readonly tls: HttpTls | null;
  /** Milliseconds for which a reader may take nothing. */
  readonly idleTimeoutMs?: number;
  /** Milliseconds until a port that could not be opened is tried again. */
  readonly retryMs?: number;
}

/**
 * Opens a port. One that cannot be opened is told, once for each reason, and tried again while its stores cannot be used. One
 * that is in use is not: servers with one port would take it from each other, and be asked in each other's place.
 *
 * @param make a new app for each attempt
 */
export async function keepOpening(
  make: () => Promise<FastifyInstance> | FastifyInstance,
  where: ListenWhere,
  service: ServiceThread,
  figures: HttpFigures,
): Promise<void> {
  let reported = '';
  for (;;) {
    const fault = await listen(await make(), where, service, figures);
    if (fault === null) return;
    if (fault !== reported) service.send({ kind: 'failed', port: where.port, at: where.at, reason: fault });
    if (isSystemFault(fault)) return;
    reported = fault;
    await new Promise((resolve) => setTimeout(resolve, where.retryMs ?? RETRY_MS));
  }
}

/** @returns why the port could not be opened; null when it is open */
export async function listen(
  app: FastifyInstance,
  { port, at: { host, port: number }, tls, idleTimeoutMs = IDLE_MS }: ListenWhere,
  service: ServiceThread,
  figures: HttpFigures,
): Promise<string | null> {
  const at: ListenPlace = { host, port: number };
  // A client that does not read its answer occupies a connection and the source of the answer.
  app.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    response.on('pipe', () => request.socket.setTimeout(idleTimeoutMs));
    response.on('finish', () => {
      if (!request.complete) endLater(request);
    });
  });
  app.server.headersTimeout = HEADERS_MS;
  const name = port === 'admin' ? 'the admin port' : 'the port for Prometheus';
  const log = (level: 'info' | 'warn', text: string): void =>
    service.send({ kind: 'log', level, text: `${name}: ${text}` });
  const refusals = new RefusalLog((text) => log('warn', text));
  const onRefused = (socket: Socket, reason: string): void => {
    refusals.add(`${socket.remoteAddress ?? 'a client'} is refused: ${reason}`);
  };
  const connections = new Connections(CONNECTIONS_MAX, (socket, reason) => {
    figures.onConnectionExceeded();
    onRefused(socket, reason);
  });
  connections.watch(app.server);
  let stopTls = (): void => {};
  const stop = (): void => {
    refusals.stop();
    stopTls();
  };
  app.addHook('preClose', async () => stop());
  try {
    if (tls !== null) stopTls = await secureConnections(app.server, { port, tls, figures, log, onRefused });
    await app.listen({ host, port: number });
    const address = app.server.address();
    const isTcp = typeof address === 'object' && address !== null;
    service.send({
      kind: 'listening',
      port,
      at: isTcp ? { host: address.address, port: address.port } : at,
      scheme: tls === null ? 'http' : tls.isUnified ? 'https and http' : 'https',
    });
    return null;
  } catch (error) {
    await app.close();
    const { code, message } = error as NodeJS.ErrnoException;
    return code ?? message;
  }
}

/** The body is not read. Closing at once would lose the answer for a client that is still sending. */
function endLater(request: IncomingMessage): void {
  const timer = setTimeout(() => request.socket.destroy(), UNREAD_MS);
  request.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
}

/** What every server of this thread limits. */
export const LIMITS = {
  logger: false,
  // No body is read.
  bodyLimit: 1024,
  requestTimeout: 60_000,
  forceCloseConnections: true,
  exposeHeadRoutes: true,
  http: { maxHeaderSize: 8192 },
} as const;

const HEADERS_MS = 10_000;
const IDLE_MS = 30_000;
const RETRY_MS = 10_000;
const UNREAD_MS = 10_000;
