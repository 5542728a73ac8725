import { randomBytes, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from './refusal.ts';

/** The header with the CSRF token: another site cannot set it without a CORS preflight. */
export const CSRF_HEADER = 'x-meerkat-csrf';

export function makeToken(): string {
  return randomBytes(24).toString('base64url');
}

/** Compares in constant time. */
export function isSameSecret(given: string, expected: string): boolean {
  const a = Buffer.from(given);
  const b = Buffer.from(expected);
  return a.length === b.length && timingSafeEqual(a, b);
}

/**
 * The security headers of every response: only our script files, no framing, no external resources.
 *
 * @param nonce for style sheets that the editor creates; null where there is no page
 */
export function securityHeaders(nonce: string | null): Readonly<Record<string, string>> {
  const style = nonce === null ? "'self'" : `'self' 'nonce-${nonce}'`;
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${style}`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  };
}

/**
 * Prevents DNS rebinding: a web page must not reach the console under a name that its author has mapped to this
 * machine. So the console accepts only addresses, `localhost`, the machine's name and the configured names.
 */
export function makeHostCheck(names: readonly string[]): (request: FastifyRequest) => void {
  const known = new Set(['', 'localhost', hostname(), ...names].map((name) => name.toLowerCase()));
  return ({ hostname: host }) => {
    const name = host.toLowerCase();
    if (known.has(name) || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return;
    throw new Refusal(
      421,
      'wrong-host',
      `the console does not answer as "${name.slice(0, 100)}": start it with --host-name ${name.slice(0, 100)}`,
    );
  };
}

/** Refuses requests from other sites: browsers send the origin of a request. */
export function checkOrigin({ headers, method }: FastifyRequest): void {
  if (method === 'GET' || method === 'HEAD') return;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') {
    throw new Refusal(403, 'cross-site', 'the request comes from another site');
  }
}

export function setHeaders(reply: FastifyReply, nonce: string | null): void {
  reply.headers({ ...securityHeaders(nonce) });
}
