import { type AdminPorts, makeConsoleApp } from '@meerkat/console';
import { NoAnswerError } from '@meerkat/console/monitoring';
import type { FastifyInstance } from 'fastify';
import { readConnectedClients } from '../../archive/connected-clients.ts';
import { MEERKAT_VERSION } from '../../version.ts';
import type { ConsolePlace, Question } from '../messages.ts';
import type { PastFiles } from '../past/messages.ts';
import { PastReadings, type PastSource } from '../past/past-readings.ts';
import type { ServiceThread } from './service-thread.ts';

/** Shows the console at /console/ of the admin port. It asks its service as any client does, over a socket. */
export async function mountConsole(
  app: FastifyInstance,
  { service, isWritable, files }: ConsolePlace,
  thread: ServiceThread,
): Promise<void> {
  const { host, port } = service;
  const name = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  const past = new PastReadings(pastSourceOf(thread, files));
  const inner = makeConsoleApp({
    clusters: [
      {
        name: 'service',
        connection: { servers: name },
        servers: [{ host, port, name, tls: null }],
        hasOwnLogin: false,
        history: (path) => past.states(path),
        past,
        admin: adminPortOf(thread),
      },
    ],
    version: MEERKAT_VERSION,
    isWritable,
    key: null,
    prefix: PREFIX,
    indexMax: INDEX_MAX,
  });
  await inner.ready();
  app.addHook('onClose', async () => {
    await inner.close();
    await past.close();
  });
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

/** Its own log, up to where it is applied. */
function pastSourceOf(thread: ServiceThread, files: PastFiles): PastSource {
  return {
    files,
    lastZxid: async () => Number((await thread.askAll({ kind: 'last-zxid' })).text),
    async addresses() {
      try {
        return readConnectedClients((await thread.askAll(commandOf('GET', 'connections'))).text);
      } catch {
        // A help, not what was asked for.
        return new Map();
      }
    },
  };
}

/** Runs admin commands of this server directly, not over its port: nothing can be intercepted. */
function adminPortOf(thread: ServiceThread): AdminPorts {
  return {
    isSecure: true,
    async ask({ name: server }, { method, command, authorization }) {
      const [name = '', query] = command.split('?');
      try {
        const asked = commandOf(method, name, query, authorization);
        const { head, text } = await thread.askAll(asked);
        return { status: head.status, body: JSON.parse(text) as Record<string, unknown> };
      } catch (error) {
        throw new NoAnswerError('unreachable', `${server}: ${(error as Error).message}`);
      }
    },
  };
}

function commandOf(method: string, name: string, query = '', authorization: string | null = null): Question {
  return {
    kind: 'command',
    method,
    name,
    query: Object.fromEntries(new URLSearchParams(query)),
    authorization,
    // As the service knows the sessions of this console.
    remote: LOOPBACK,
    forwardedFor: null,
    certificate: null,
    hasBody: false,
  };
}

const LOOPBACK = '127.0.0.1';
const PREFIX = '/console';
/** The thread of the HTTP ports has less memory than a process. */
const INDEX_MAX = 200_000;
