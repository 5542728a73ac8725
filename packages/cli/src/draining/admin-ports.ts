import type { ConnectionOptions } from 'node:tls';
import { type AdminAnswer, type AdminPorts, type MonitoredServer, NoAnswerError } from '@meerkat/console/monitoring';
import { askHttp, describeHttpFailure, jsonOf } from '@meerkat/server/archive';
import { InvocationFailure } from '../run/command-failure.ts';

export interface AdminPortsOptions {
  /** Whose admin ports these are. */
  readonly servers: readonly MonitoredServer[];
  /** One for all, or one each in their order. */
  readonly ports: readonly number[];
  /** null: plain HTTP. */
  readonly tls: ConnectionOptions | null;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** The admin ports of the servers of a service, by HTTP. */
export function adminPorts({ servers, ports, tls, timeoutMs, signal }: AdminPortsOptions): AdminPorts {
  return {
    isSecure: tls !== null,
    async ask(server, question): Promise<AdminAnswer> {
      const i = servers.findIndex(({ name }) => name === server.name);
      const port = ports[i] ?? ports.at(-1) ?? ADMIN_PORT;
      const host = server.host.includes(':') ? `[${server.host}]` : server.host;
      const url = `${tls === null ? 'http' : 'https'}://${host}:${port}/commands/${question.command}`;
      try {
        const answer = await askHttp(url, {
          method: question.method,
          headers: question.authorization === null ? {} : { authorization: question.authorization },
          signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
          tls: { ...tls, ...question.tls },
        });
        return { status: answer.status, body: jsonOf(answer) };
      } catch (error) {
        signal.throwIfAborted();
        throw new NoAnswerError(
          'unreachable',
          `the admin port of ${server.name}, ${host}:${port}, does not answer: ${describeHttpFailure(error)}; ${ADVICE}`,
        );
      }
    },
  };
}

/** @throws InvocationFailure */
export function parsePorts(text: string): readonly number[] {
  return text.split(',').map(parsePort);
}

export function parsePort(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw new InvocationFailure(`--http-port: expected a port, found "${text}"`);
}

export const ADMIN_PORT = 8080;
export const ADVICE =
  'it is open on loopback alone unless admin.serverAddress says otherwise; --http-port names another one, --https one with TLS';
