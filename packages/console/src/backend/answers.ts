import type { FastifyReply } from 'fastify';
import { setHeaders } from './security.ts';

/** A response that must not be cached. */
export async function sendJson(reply: FastifyReply, value: unknown): Promise<FastifyReply> {
  setHeaders(reply, null);
  return await reply.header('cache-control', 'no-store').send(value);
}
