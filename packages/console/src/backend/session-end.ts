import type { TlsConnectionOptions } from '@meerkat/client';
import { NoAnswerError } from './four-letter-word.ts';
import type { AdminAnswer, AdminPorts, MonitoredServer } from './options.ts';

/** The identity for requests to admin ports. */
export interface AdminIdentity {
  /** `digest ann:secret`, `x509`, `ip`. */
  readonly authorization: string;
  readonly tls: TlsConnectionOptions | null;
}

/**
 * A session that a server knows, and the ephemeral znodes that are deleted with it: their number, and the first ones.
 */
export interface FoundSession {
  readonly kind: 'found' | 'ended';
  readonly server: MonitoredServer;
  readonly ephemerals: number;
  readonly paths: readonly string[];
}

/** Why a session is not ended, with a text of what was found and what to do. */
export interface NotEnded {
  readonly kind: /** No server that answers knows it. */
    | 'unknown'
    /** The credentials are invalid, or lack a permission. */
    | 'refused'
    /** They would be sent in the clear over the network. */
    | 'plain'
    | 'no-quorum'
    /** An Apache server, or an older one. */
    | 'unsupported'
    | 'unreachable'
    /** The request was sent, and its result is not known. */
    | 'unconfirmed';
  readonly message: string;
}

/**
 * Looks for a session, and asks whether it may be ended. Servers are asked one after the other until one knows the
 * session: a local session is known only to its own server. Credentials are sent to a server only once it has shown
 * that it supports the command.
 */
export async function lookAtSession(
  servers: readonly MonitoredServer[],
  ports: AdminPorts,
  identity: AdminIdentity,
  session: string,
): Promise<FoundSession | NotEnded> {
  const misses: NotEnded[] = [];
  for (const server of servers) {
    const found = await lookAt(server, ports, identity, session);
    if (!('message' in found)) return found;
    misses.push(found);
  }
  const kind = BY_WEIGHT.find((one) => misses.some((miss) => miss.kind === one)) ?? 'unreachable';
  const message = [...new Set(misses.map((miss) => miss.message))].join('; ');
  return { kind, message: message === '' ? 'there is no server to ask' : message };
}

/** Ends a session at a server that knows it. */
export async function endSession(
  { server }: FoundSession,
  ports: AdminPorts,
  { authorization, tls }: AdminIdentity,
  session: string,
): Promise<FoundSession | NotEnded> {
  const question = { method: 'POST', command: commandFor(session), authorization, tls } as const;
  let answer: AdminAnswer;
  try {
    answer = await ports.ask(server, question);
  } catch (error) {
    if (!(error instanceof NoAnswerError)) throw error;
    const message = `session ${session} was to be ended at ${server.name}, and how it went is not known: ${error.message}`;
    return { kind: 'unconfirmed', message };
  }
  return readAnswer(server, answer, session);
}

async function lookAt(
  server: MonitoredServer,
  ports: AdminPorts,
  { authorization, tls }: AdminIdentity,
  session: string,
): Promise<FoundSession | NotEnded> {
  const question = { method: 'GET', command: commandFor(session), tls } as const;
  try {
    const unknown = await ports.ask(server, { ...question, authorization: null });
    if (unknown.status !== 401) return readAnswer(server, unknown, session);
    if (unknown.body['command'] !== COMMAND) return unsupported(server);
    if (!ports.isSecure && authorization === 'x509') {
      const message = `the admin port of ${server.name} takes a certificate with TLS alone: set admin.forceHttps, and use --https`;
      return { kind: 'plain', message };
    }
    if (!ports.isSecure && server.tls !== null && authorization !== 'ip' && !isLoopback(server.host)) {
      const message = `clients reach ${server.name} with TLS, and its admin port would be told the credentials in plain text: set admin.forceHttps, and use --https`;
      return { kind: 'plain', message };
    }
    return readAnswer(server, await ports.ask(server, { ...question, authorization }), session);
  } catch (error) {
    if (error instanceof NoAnswerError) return { kind: 'unreachable', message: error.message };
    throw error;
  }
}

function readAnswer(server: MonitoredServer, { status, body }: AdminAnswer, session: string): FoundSession | NotEnded {
  const { command, error, ephemerals, ephemeral_paths: paths, is_ended: isEnded } = body;
  // Apache's servers name the unknown command, with status 200 or, in later versions, 404.
  if (command !== COMMAND || String(error).startsWith('Unknown command')) return unsupported(server);
  const message = `${server.name}: ${String(error)}`;
  switch (status) {
    case 200:
      return {
        kind: isEnded === true ? 'ended' : 'found',
        server,
        ephemerals: Number(ephemerals),
        paths: Array.isArray(paths) ? paths.map(String) : [],
      };
    case 401:
    case 403:
      return { kind: 'refused', message: `${message}: it takes all permissions of the root` };
    case 404:
      return { kind: 'unknown', message };
    case 503:
      return { kind: 'no-quorum', message };
    default:
      return { kind: 'unconfirmed', message: status === 504 ? message : `${message} (${status}, session ${session})` };
  }
}

function unsupported(server: MonitoredServer): NotEnded {
  const message = `the admin port of ${server.name} does not know ${COMMAND}: Apache's servers, and older ones of ours, end a session when its client closes it or is silent for its timeout`;
  return { kind: 'unsupported', message };
}

function commandFor(session: string): string {
  return `${COMMAND}?session=${encodeURIComponent(session)}`;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}

const COMMAND = 'end_session';

/** The most informative reason first. */
const BY_WEIGHT = ['refused', 'plain', 'no-quorum', 'unknown', 'unsupported', 'unreachable'] as const;
