import fastify, { type FastifyInstance } from 'fastify';
import { ConsoleDesk } from './console-desk.ts';
import { addDataRoutes } from './data-routes.ts';
import type { ConsoleOptions } from './options.ts';
import { describeError } from './refusal.ts';
import { checkOrigin, setHeaders } from './security.ts';

/** The console as an HTTP server. Closing it ends all sessions. */
export function makeConsoleApp(options: ConsoleOptions): FastifyInstance {
  const app = fastify({
    logger: false,
    bodyLimit: BODY_MAX,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 200 },
  });
  const desk = new ConsoleDesk(options);
  app.addHook('onClose', () => desk.close());
  app.addHook('onRequest', async (request) => {
    desk.checkHost(request);
    checkOrigin(request);
  });
  app.setErrorHandler((error, _request, reply) => {
    const { status, failure } = describeError(error);
    setHeaders(reply, null);
    return reply.code(status).send(failure);
  });
  app.setNotFoundHandler((_request, reply) => {
    setHeaders(reply, null);
    return reply.code(404).send({ code: 'not-found', message: 'nothing is here', path: null });
  });
  app.register(
    async (scope) => {
      desk.addPage(scope);
      desk.addSession(scope);
      desk.addStreams(scope);
      addDataRoutes(scope, desk);
    },
    { prefix: options.prefix ?? '' },
  );
  return app;
}

/** Enough for a login with a certificate and its chain. Writes have a larger limit. */
const BODY_MAX = 256 << 10;
