import { createReadStream } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { Readable } from 'node:stream';
import { TLSSocket } from 'node:tls';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { AdminPlace, Question } from '../messages.ts';
import { sendPart } from './file-part.ts';
import { formatChecks, HealthReader } from './health.ts';
import { LIMITS } from './listen.ts';
import { addMetrics, type MetricsReader } from './metrics-app.ts';
import { certificateOf } from './secure-connections.ts';
import { BusyError, type Reply, type ServiceThread } from './service-thread.ts';
import { receiveSnapshot } from './upload.ts';

/** The admin port: ZooKeeper's commands, health, metrics, and a description of all of it. */
export function makeAdminApp(place: AdminPlace, service: ServiceThread, metrics: MetricsReader): FastifyInstance {
  const app = fastify({
    ...LIMITS,
    // A snapshot may be long; an upload that stalls is cut off earlier.
    requestTimeout: UPLOAD_MS,
    keepAliveTimeout: place.idleTimeoutMs,
    routerOptions: { ignoreTrailingSlash: true },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  if (place.tls !== null) app.addHook('onRequest', keepSecure);
  if (isLoopback(place.host)) app.addHook('onRequest', refuseOtherNames);
  app.setNotFoundHandler((request, reply) => {
    reply.code(request.method === 'TRACE' ? 403 : 404);
    return reply
      .type(TEXT)
      .send(`nothing is here: ${place.commandUrl} lists the commands, /openapi.json describes all\n`);
  });
  app.setErrorHandler((error, _request, reply) => {
    const isBusy = error instanceof BusyError;
    const code = isBusy ? 503 : ((error as { statusCode?: number }).statusCode ?? 500);
    return reply
      .code(code)
      .type(TEXT)
      .send(`${(error as Error).message}\n`);
  });
  addCommands(app, place, service);
  addHealth(app, service);
  addMetrics(app, metrics);
  app.get('/openapi.json', async (_request, reply) => {
    const { text } = await service.askAll({ kind: 'openapi' });
    return await reply.type(JSON_TYPE).send(text);
  });
  return app;
}

function addCommands(app: FastifyInstance, place: AdminPlace, service: ServiceThread): void {
  const { commandUrl } = place;
  app.get(commandUrl, async (_request, reply) => {
    const { text } = await service.askAll({ kind: 'index' });
    return reply.type('text/html; charset=utf-8').send(text);
  });
  const answer = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { name } = request.params as { readonly name: string };
    const asked = await service.ask(questionOf(request, name));
    if (asked.upload === undefined) return await send(reply, asked);
    const { socket } = request.raw;
    socket.setTimeout(place.idleTimeoutMs);
    const uploaded = await receiveSnapshot(request.raw, asked.upload);
    socket.setTimeout(0);
    return await send(reply, await service.ask({ kind: 'uploaded', uploaded }));
  };
  app.route({ method: ['GET', 'POST'], url: `${commandUrl}/:name`, handler: answer });
  app.route({
    method: ['PUT', 'DELETE', 'PATCH'],
    url: `${commandUrl}/:name`,
    handler: (_request, reply) =>
      reply.code(405).header('allow', 'GET, HEAD, POST').type(TEXT).send('method not allowed\n'),
  });
  app.route({
    method: 'OPTIONS',
    url: `${commandUrl}/:name`,
    handler: (_request, reply) => reply.header('allow', 'GET, HEAD, POST, OPTIONS').send(),
  });
}

type Command = Extract<Question, { readonly kind: 'command' }>;

function questionOf(request: FastifyRequest, name: string): Command {
  const { method, headers, ip } = request;
  const query: Record<string, string> = {};
  for (const [key, value] of Object.entries(request.query as Record<string, string | string[]>)) {
    query[key] = Array.isArray(value) ? (value[0] ?? '') : value;
  }
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  return {
    kind: 'command',
    method,
    name,
    query,
    authorization: headers.authorization ?? null,
    remote: ip,
    forwardedFor: headers['x-forwarded-for']?.toString() ?? null,
    certificate: certificateOf(request.raw.socket),
    hasBody,
  };
}

/** A short answer with its length, a long one in chunks as it comes. */
async function send(reply: FastifyReply, answer: Reply): Promise<FastifyReply> {
  const { status, contentType, headers, file, filePart, body } = answer;
  reply.code(status).headers({ ...headers });
  if (contentType !== null) reply.header('content-type', contentType);
  if (file !== null && filePart !== undefined) return await sendPart(reply, file, filePart);
  if (file !== null) return await reply.send(createReadStream(file));
  const first = await body.next();
  if (first.done === true) return await reply.send('');
  const second = await Promise.race([body.next(), undefined]);
  if (second?.done === true) return await reply.send(Buffer.from(first.value));
  return await reply.send(Readable.from(joined(first.value, second?.value, body), { objectMode: false }));
}

async function* joined(
  first: string,
  second: string | undefined,
  rest: AsyncGenerator<string, void, undefined>,
): AsyncGenerator<Buffer> {
  yield Buffer.from(first);
  if (second !== undefined) yield Buffer.from(second);
  for await (const part of rest) yield Buffer.from(part);
}

function addHealth(app: FastifyInstance, service: ServiceThread): void {
  const reader = new HealthReader(service);
  for (const [url, what] of [
    ['/livez', 'live'],
    ['/readyz', 'ready'],
  ] as const) {
    app.get(url, async (request, reply) => {
      const checks = (await reader.read())[what];
      const isVerbose = Object.hasOwn(request.query as object, 'verbose');
      reply.code(checks.every(({ isOk }) => isOk) ? 200 : 503);
      return await reply.type(TEXT).send(formatChecks(checks, isVerbose, url.slice(1)));
    });
  }
}

/** HSTS for a day, as sent by Apache's port. */
function keepSecure(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  if (request.raw.socket instanceof TLSSocket) {
    reply.header('strict-transport-security', 'max-age=86400; includeSubDomains');
  }
  done();
}

/**
 * A page in a browser must not reach a port of its own machine under a name that its author has given to 127.0.0.1. So a
 * port that only this machine can reach answers to addresses, `localhost` and the machine's name alone.
 */
async function refuseOtherNames(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
  const name = request.hostname.toLowerCase();
  const isAddress = isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0;
  if (name === '' || isAddress || name === 'localhost' || name === hostname().toLowerCase()) return undefined;
  return await reply
    .code(421)
    .type(TEXT)
    .send(`this port is for this machine: it does not answer as "${name.slice(0, 100)}"\n`);
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}

const UPLOAD_MS = 3_600_000;
const TEXT = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json';
