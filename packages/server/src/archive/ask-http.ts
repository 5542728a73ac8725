import { type IncomingHttpHeaders, request as requestPlain } from 'node:http';
import { type RequestOptions, request as requestSecure } from 'node:https';
import type { ConnectionOptions } from 'node:tls';

export interface HttpQuestion {
  readonly method?: 'GET' | 'HEAD' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  /** Whom to trust and what to show at a URL of https; left out: the authorities of this machine. */
  readonly tls?: ConnectionOptions;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * Asks an admin port. What it answers is short, or a bounded part of a file.
 *
 * @throws Error of Node.js with its `code` when there is no whole answer: see `describeHttpFailure`
 */
export function askHttp(
  url: string,
  { method = 'GET', headers = {}, tls = {}, signal }: HttpQuestion,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const options: RequestOptions = { method, headers, signal };
    const asked = url.startsWith('https:') ? requestSecure(url, { ...tls, ...options }) : requestPlain(url, options);
    asked.on('error', reject);
    asked.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
      });
    });
    asked.end();
  });
}

/** The fields of a JSON object; none when it is something else. */
export function jsonOf({ body }: HttpAnswer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body.toString());
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Why there was no answer, in words. */
export function describeHttpFailure(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return FAILURES[code ?? ''] ?? code ?? message;
}

const NOT_TRUSTED = 'its certificate is not trusted; --tls-ca names the authority';
const CLOSED =
  'it closes the connection; a port with TLS alone wants https://, and one that asks for certificates --tls-cert';
const NO_HTTP = 'what listens there does not speak HTTP';
const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the name is not known',
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'it asks for a certificate: --tls-cert',
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE:
    'it refuses the TLS handshake; one that asks for certificates wants --tls-cert',
  EPROTO: 'it does not speak TLS with this client',
  HPE_INVALID_CONSTANT: NO_HTTP,
  HPE_INVALID_VERSION: NO_HTTP,
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name; --tls-server-name says which to expect',
  SELF_SIGNED_CERT_IN_CHAIN: NOT_TRUSTED,
  DEPTH_ZERO_SELF_SIGNED_CERT: NOT_TRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: NOT_TRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: NOT_TRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: NOT_TRUSTED,
};
