import { makeConsoleApp } from '@meerkat/console';
import type { FastifyInstance } from 'fastify';
import { MEERKAT_VERSION } from '../../version.ts';
import type { ConsolePlace } from '../messages.ts';

/** Shows the console at /console/ of the admin port. It asks its service as any client does, over a socket. */
export async function mountConsole(app: FastifyInstance, { service, isWritable }: ConsolePlace): Promise<void> {
  const { host, port } = service;
  const name = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  const inner = makeConsoleApp({
    clusters: [
      {
        name: 'service',
        connection: { servers: name },
        servers: [{ host, port, name, tls: null }],
        hasOwnLogin: false,
      },
    ],
    version: MEERKAT_VERSION,
    isWritable,
    key: null,
    prefix: PREFIX,
    indexMax: INDEX_MAX,
  });
  await inner.ready();
  app.addHook('onClose', () => inner.close());
  for (const url of [PREFIX, `${PREFIX}/*`]) {
    app.route({
      method: ['GET', 'POST'],
      url,
      // Before a body is looked at: the console has limits of its own.
      onRequest: (request, reply, done) => {
        // Its addresses are relative to where it is.
        if (request.raw.url === PREFIX) {
          done();
          return;
        }
        reply.hijack();
        inner.routing(request.raw, reply.raw);
      },
      handler: (_request, reply) => reply.redirect(`${PREFIX}/`),
    });
  }
}

const PREFIX = '/console';
/** The thread of the HTTP ports has less memory than a process. */
const INDEX_MAX = 200_000;
