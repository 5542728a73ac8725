import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { HttpFigures } from '../figures.ts';
import type { HttpPort, ListenPlace, ToService } from '../messages.ts';
import { CONNECTIONS_MAX, type HttpTls } from '../options.ts';
import { secureConnections } from './secure-connections.ts';
import type { ServiceThread } from './service-thread.ts';

export interface ListenWhere {
  readonly port: HttpPort;
  readonly at: ListenPlace;
  readonly tls: HttpTls | null;
  /** Milliseconds for which a reader may take nothing. */
  readonly idleTimeoutMs?: number;
}

/** Opens a port. One that cannot be opened is told, and nothing else happens. */
export async function listen(
  app: FastifyInstance,
  { port, at: { host, port: number }, tls, idleTimeoutMs = IDLE_MS }: ListenWhere,
  service: ServiceThread,
  figures: HttpFigures,
): Promise<void> {
  const at: ListenPlace = { host, port: number };
  // Who takes nothing of an answer holds a connection and what makes the answer.
  app.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    response.on('pipe', () => request.socket.setTimeout(idleTimeoutMs));
    response.on('finish', () => {
      if (!request.complete) endLater(request);
    });
  });
  app.server.maxConnections = CONNECTIONS_MAX;
  app.server.headersTimeout = HEADERS_MS;
  try {
    if (tls !== null) {
      const tell = (message: ToService): void => service.tell(message);
      const stop = await secureConnections(app.server, { port, tls, figures, tell });
      app.addHook('preClose', async () => stop());
    }
    await app.listen({ host, port: number });
    const address = app.server.address();
    const isTcp = typeof address === 'object' && address !== null;
    service.tell({
      kind: 'listening',
      port,
      at: isTcp ? { host: address.address, port: address.port } : at,
      scheme: tls === null ? 'http' : tls.isUnified ? 'https and http' : 'https',
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    service.tell({ kind: 'failed', port, at, reason: code ?? message });
  }
}

/** Nobody reads this body. Closing at once would take the answer from a client that still sends. */
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
const UNREAD_MS = 10_000;
