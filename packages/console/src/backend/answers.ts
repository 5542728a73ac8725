import type { FastifyReply } from 'fastify';
import { setHeaders } from './security.ts';

/** An answer that no cache keeps. */
export async function sendJson(reply: FastifyReply, value: unknown): Promise<FastifyReply> {
  setHeaders(reply, null);
  return await reply.header('cache-control', 'no-store').send(value);
}
