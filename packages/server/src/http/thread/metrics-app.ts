import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { LIMITS } from './listen.ts';
import type { ServiceThread } from './service-thread.ts';

/** The port that Prometheus reads, as ZooKeeper's provider opens it. */
export function makeMetricsApp(reader: MetricsReader): FastifyInstance {
  const app = fastify(LIMITS);
  addMetrics(app, reader);
  return app;
}

export function addMetrics(app: FastifyInstance, reader: MetricsReader): void {
  const answer = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const wanted = (request.query as Record<string, string | string[] | undefined>)['name[]'] ?? [];
    return await reply.type(CONTENT_TYPE).send(await reader.read(typeof wanted === 'string' ? [wanted] : wanted));
  };
  app.route({ method: ['GET', 'POST'], url: '/metrics', handler: answer });
}

/** Reads the metrics four times a second at most, for all ports together; requests in between get the last text. */
export class MetricsReader {
  readonly #service: ServiceThread;
  #askedMs = Number.NEGATIVE_INFINITY;
  #text: Promise<string> = Promise.resolve('');

  constructor(service: ServiceThread) {
    this.#service = service;
  }

  async read(names: readonly string[]): Promise<string> {
    const nowMs = performance.now();
    if (nowMs - this.#askedMs > AGE_MS) {
      this.#askedMs = nowMs;
      this.#text = this.#service.askAll({ kind: 'metrics' }).then(({ text }) => text);
      this.#text.catch(() => {
        this.#askedMs = Number.NEGATIVE_INFINITY;
      });
    }
    const text = await this.#text;
    return names.length === 0 ? text : choose(text, new Set(names));
  }
}

/** The samples of these names, with the lines that describe them. */
function choose(text: string, names: ReadonlySet<string>): string {
  const families = text.split(/^(?=# HELP )/m);
  return families
    .filter((family) => [...family.matchAll(/^([a-zA-Z_:][\w:]*)/gm)].some(([, name = '']) => names.has(name)))
    .join('');
}

const AGE_MS = 250;
const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
