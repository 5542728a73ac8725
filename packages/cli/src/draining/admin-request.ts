import type { ConnectionOptions } from 'node:tls';
import type { MonitoredServer } from '@meerkat/console/monitoring';
import { askHttp, describeHttpFailure, type HttpAnswer, jsonOf } from '@meerkat/server/archive';
import { withoutCredentials } from '../archive/source.ts';
import { CommandFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';
import { ADVICE } from './admin-ports.ts';

export interface AdminRequest {
  readonly server: MonitoredServer;
  readonly port: number;
  /** Null: plain HTTP. */
  readonly tls: ConnectionOptions | null;
  /** As the header of that name; null: none were given. */
  readonly credentials: string | null;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Asks the admin port of a server of ours to do something: by POST. An older server, which knows GET alone, refuses that,
 * and is asked by GET.
 *
 * @param command with its query: `shed?count=10`
 * @throws CommandFailure when the port does not answer, or refuses
 */
export async function askAdmin(command: string, request: AdminRequest): Promise<Readonly<Record<string, unknown>>> {
  const { server, port, tls, credentials, timeoutMs, signal } = request;
  const host = server.host.includes(':') ? `[${server.host}]` : server.host;
  const place = `the admin port of ${server.name}, ${host}:${port}`;
  const url = `${tls === null ? 'http' : 'https'}://${host}:${port}/commands/${command}`;
  let answer: HttpAnswer;
  try {
    const question = {
      headers: { authorization: credentials ?? withoutCredentials(url, tls ?? {}) },
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      tls: tls ?? {},
    };
    answer = await askHttp(url, { ...question, method: 'POST' });
    if (answer.status === 405) answer = await askHttp(url, question);
  } catch (error) {
    signal.throwIfAborted();
    const found = describeHttpFailure(error);
    throw new CommandFailure(CommandExit.unreachable, `${place}, does not answer: ${found}; ${ADVICE}`, error as Error);
  }
  const body = jsonOf(answer);
  const { error = null } = body;
  if (answer.status === 401 || answer.status === 403) {
    const advice = 'give credentials with all permissions of the root: --auth digest:user:password';
    throw new CommandFailure(CommandExit.credentials, `${place}, refuses ${command}: ${String(error)}; ${advice}`);
  }
  if (answer.status !== 200 || error !== null) {
    throw new CommandFailure(
      CommandExit.unsupported,
      `${place}, does not do ${command}: ${String(error ?? answer.status)}`,
    );
  }
  return body;
}

/** How many connections each server has too many, for all to have the same; 0 for those with fewer. Pure. */
export function excessOf(connections: readonly number[]): number[] {
  const total = connections.reduce((sum, count) => sum + count, 0);
  const fair = Math.ceil(total / Math.max(1, connections.length));
  return connections.map((count) => Math.max(0, count - fair));
}
