import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ClusterInfo, Hello, Subscription } from '../api/messages.ts';
import { sendJson } from './answers.ts';
import { Assets } from './assets.ts';
import { ClusterSession } from './cluster-session.ts';
import { type ConsoleSession, ConsoleSessions } from './console-session.ts';
import { Fields } from './fields.ts';
import { readLogin } from './login.ts';
import { type ClusterOptions, type ConsoleOptions, INDEX_MAX } from './options.ts';
import { PageStream } from './page-stream.ts';
import { PastShelf } from './past-shelf.ts';
import { Refusal } from './refusal.ts';
import { CSRF_HEADER, isSameSecret, makeHostCheck, securityHeaders, setHeaders } from './security.ts';
import { ServersMonitor } from './servers-monitor.ts';
import { subscribe } from './subscriptions.ts';

/** Resolves a request: its session, its cluster, and its permission to write. */
export class ConsoleDesk {
  readonly options: ConsoleOptions;
  readonly #sessions = new ConsoleSessions();
  readonly #monitors: ReadonlyMap<string, ServersMonitor>;
  readonly #shelves: ReadonlyMap<string, PastShelf>;
  readonly #streams: Map<string, { readonly stream: PageStream; readonly session: ConsoleSession }> = new Map();
  readonly #assets = new Assets();
  readonly checkHost: (request: FastifyRequest) => void;

  constructor(options: ConsoleOptions) {
    this.options = options;
    this.#monitors = new Map(options.clusters.map(({ name, servers }) => [name, new ServersMonitor(servers)]));
    this.#shelves = new Map(options.clusters.flatMap(({ name, past }) => (past ? [[name, new PastShelf(past)]] : [])));
    this.checkHost = makeHostCheck(options.hostNames ?? []);
  }

  async close(): Promise<void> {
    for (const monitor of this.#monitors.values()) monitor.stop();
    for (const { stream } of this.#streams.values()) stream.close();
    await this.#sessions.close();
    await Promise.all([...this.#shelves.values()].map((shelf) => shelf.close()));
  }

  /** The session of a request. @throws Refusal when there is none, or its token is not that of our page */
  sessionOf(request: FastifyRequest): ConsoleSession {
    const session = this.#sessions.find(cookieOf(request));
    if (session === null)
      throw new Refusal(401, 'no-session', 'the session of the console is over: load the page again');
    if (request.method !== 'GET') {
      const given = request.headers[CSRF_HEADER];
      if (typeof given !== 'string' || !isSameSecret(given, session.csrf)) {
        throw new Refusal(403, 'no-csrf', 'the request does not come from the page of this session');
      }
    }
    return session;
  }

  /** @throws Refusal as `sessionOf`, and for a browser without the key */
  admittedSessionOf(request: FastifyRequest): ConsoleSession {
    const session = this.sessionOf(request);
    if (!session.isAdmitted)
      throw new Refusal(401, 'no-key', 'the address of the console has a key, and this browser not');
    return session;
  }

  clusterOf(request: FastifyRequest): ClusterOptions {
    const { cluster: name } = request.params as { readonly cluster: string };
    return this.#clusterNamed(name);
  }

  /** @throws Refusal when the browser is not logged in to the cluster of the request */
  clusterSessionOf(request: FastifyRequest): ClusterSession {
    return this.#loggedIn(this.admittedSessionOf(request), this.clusterOf(request).name);
  }

  /** The past trees of the cluster of a request. @throws Refusal when they are not available */
  shelfOf(request: FastifyRequest): PastShelf {
    const shelf = this.#shelves.get(this.clusterOf(request).name);
    if (shelf !== undefined) return shelf;
    throw new Refusal(501, 'no-history', 'the console was not told where the log is: start it with --dir or --admin');
  }

  /** The same, for a change. */
  writableSessionOf(request: FastifyRequest): ClusterSession {
    this.admittedSessionOf(request);
    if (this.options.isWritable === true) return this.clusterSessionOf(request);
    throw new Refusal(403, 'read-only', 'this console only reads: start it with --write to change znodes');
  }

  addPage(app: FastifyInstance): void {
    const send = async (_request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      const nonce = randomBytes(16).toString('base64');
      const page = (await this.#assets.page()).replace('%NONCE%', nonce);
      setHeaders(reply, nonce);
      return await reply.type('text/html; charset=utf-8').header('cache-control', 'no-store').send(page);
    };
    app.get('/', async (request, reply) => {
      // The page's URLs are relative to its own.
      const { prefix = '' } = this.options;
      const [path, query] = request.url.split('?', 2);
      if (prefix === '' || path !== prefix) return await send(request, reply);
      return await reply.redirect(`${prefix}/${query === undefined ? '' : `?${query}`}`);
    });
    app.get('/assets/:file', async (request, reply) => {
      const { file } = request.params as { readonly file: string };
      const asset = await this.#assets.file(file);
      if (asset === null) throw new Refusal(404, 'not-found', `there is no file ${file.slice(0, 100)} in this version`);
      setHeaders(reply, null);
      // File names change with their contents.
      return await reply
        .type(asset.type)
        .header('cache-control', 'public, max-age=31536000, immutable')
        .send(asset.bytes);
    });
  }

  addSession(app: FastifyInstance): void {
    app.get('/api/hello', async (request, reply) => {
      const known = this.#sessions.find(cookieOf(request));
      const session = known ?? this.#sessions.begin((this.options.key ?? null) === null);
      if (known === null) this.#setCookie(session, request, reply);
      return await sendJson(reply, this.#hello(session));
    });
    app.post('/api/enter', async (request, reply) => {
      const session = this.sessionOf(request);
      const key = this.options.key ?? null;
      const given = new Fields(request.body).text('key');
      if (key !== null && !isSameSecret(given, key))
        throw new Refusal(403, 'wrong-key', 'that is not the key of this console');
      session.isAdmitted = true;
      this.#renew(session, request, reply);
      return await sendJson(reply, this.#hello(session));
    });
    app.post('/api/c/:cluster/login', async (request, reply) => {
      const session = this.admittedSessionOf(request);
      const cluster = this.clusterOf(request);
      const login = readLogin(cluster, new Fields(request.body));
      const opened = await ClusterSession.open(cluster, login, this.options.indexMax ?? INDEX_MAX);
      if (!(await session.put(opened)))
        throw new Refusal(401, 'no-session', 'the session of the console is over: load the page again');
      this.#renew(session, request, reply);
      return await sendJson(reply, this.#hello(session));
    });
    app.post('/api/c/:cluster/logout', async (request, reply) => {
      const session = this.admittedSessionOf(request);
      const { name } = this.clusterOf(request);
      await session.drop(name);
      return await sendJson(reply, this.#hello(session));
    });
  }

  addStreams(app: FastifyInstance): void {
    app.get('/api/stream', (request, reply) => {
      const session = this.admittedSessionOf(request);
      if (session.streams >= STREAMS_MAX)
        throw new Refusal(429, 'too-many', `a browser may have ${STREAMS_MAX} pages open`);
      reply.hijack();
      reply.raw.writeHead(200, {
        ...securityHeaders(null),
        'content-type': 'text/event-stream',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      });
      const stream = new PageStream(reply.raw);
      this.#streams.set(stream.id, { stream, session });
      session.streams++;
      stream.onClose(() => {
        session.streams--;
        this.#streams.delete(stream.id);
      });
      stream.send({ kind: 'open', stream: stream.id });
    });
    app.post('/api/stream/:stream/subscribe', async (request, reply) => {
      const { stream, session } = this.#streamOf(request);
      const fields = new Fields(request.body);
      const wanted = readSubscription(fields);
      const { name } = this.#clusterNamed(wanted.cluster);
      const monitor = this.#monitors.get(name);
      if (monitor === undefined || stream.subscriptionCount >= SUBSCRIPTIONS_MAX) {
        throw new Refusal(429, 'too-many', `a page may follow ${SUBSCRIPTIONS_MAX} things at once`);
      }
      const id = subscribe(stream, wanted, this.#loggedIn(session, name), monitor);
      return await sendJson(reply, { id });
    });
    app.post('/api/stream/:stream/unsubscribe', async (request, reply) => {
      this.#streamOf(request).stream.end(new Fields(request.body).number('id', 1));
      return await sendJson(reply, {});
    });
  }

  #streamOf(request: FastifyRequest): { readonly stream: PageStream; readonly session: ConsoleSession } {
    const session = this.admittedSessionOf(request);
    const { stream: id } = request.params as { readonly stream: string };
    const found = this.#streams.get(id);
    if (found === undefined || found.session !== session) throw new Refusal(404, 'no-stream', 'the stream is over');
    return found;
  }

  #clusterNamed(name: string): ClusterOptions {
    const cluster = this.options.clusters.find((one) => one.name === name);
    if (cluster !== undefined) return cluster;
    const known = this.options.clusters.map((one) => one.name).join(', ');
    throw new Refusal(404, 'no-cluster', `there is no cluster "${name}": this console has ${known}`);
  }

  #loggedIn(session: ConsoleSession, name: string): ClusterSession {
    const found = session.clusters.get(name);
    if (found === undefined) throw new Refusal(401, 'no-login', `not logged in to ${name}`);
    return found;
  }

  #hello(session: ConsoleSession): Hello {
    const { version, clusters, isWritable = false } = this.options;
    return {
      version,
      isAdmitted: session.isAdmitted,
      isWritable,
      csrf: session.csrf,
      clusters: session.isAdmitted ? clusters.map((cluster) => describeCluster(cluster, session)) : [],
    };
  }

  #renew(session: ConsoleSession, request: FastifyRequest, reply: FastifyReply): void {
    this.#sessions.renew(session);
    this.#setCookie(session, request, reply);
  }

  #setCookie({ token }: ConsoleSession, request: FastifyRequest, reply: FastifyReply): void {
    const path = this.options.prefix === undefined || this.options.prefix === '' ? '/' : this.options.prefix;
    const secure = request.protocol === 'https' ? '; Secure' : '';
    reply.header('set-cookie', `${cookieName(request)}=${token}; Path=${path}; HttpOnly; SameSite=Strict${secure}`);
  }
}

function describeCluster(
  { name, servers, connection, hasOwnLogin, history, past }: ClusterOptions,
  session: ConsoleSession,
): ClusterInfo {
  return {
    name,
    servers: servers.map((server) => server.name),
    hasTls: connection.tls !== undefined,
    hasOwnLogin,
    hasHistory: history !== undefined,
    hasPast: past !== undefined,
    login: session.loginOf(name),
  };
}

function readSubscription(fields: Fields): Subscription {
  const cluster = fields.text('cluster');
  const kind = fields.choice('kind', [
    'znode',
    'children',
    'changes',
    'servers',
    'sessions',
    'lines',
    'index',
    'state',
  ]);
  if (kind === 'znode' || kind === 'children' || kind === 'changes') return { kind, cluster, path: fields.path() };
  return { kind, cluster };
}

function cookieOf(request: FastifyRequest): string | null {
  const wanted = cookieName(request);
  for (const part of (request.headers.cookie ?? '').split(';')) {
    const [name, value] = part.trim().split('=', 2);
    if (name === wanted && value !== undefined) return value;
  }
  return null;
}

/** Browsers do not distinguish ports: two consoles on one machine would overwrite each other's cookie. */
function cookieName({ socket }: FastifyRequest): string {
  return `meerkat-console-${socket.localPort ?? 0}`;
}

const STREAMS_MAX = 50;
const SUBSCRIPTIONS_MAX = 200;
