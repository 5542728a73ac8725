import type { MonitoredServer } from '@meerkat/console/monitoring';
import { CommandFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';

export interface AdminRequest {
  readonly server: MonitoredServer;
  readonly port: number;
  /** As the header of that name. */
  readonly authorization: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Asks the admin port of a server of ours to do something.
 *
 * @param command with its query: `shed?count=10`
 * @throws CommandFailure when the port does not answer, or refuses
 */
export async function askAdmin(command: string, request: AdminRequest): Promise<Readonly<Record<string, unknown>>> {
  const { server, port, authorization, timeoutMs, signal } = request;
  const host = server.host.includes(':') ? `[${server.host}]` : server.host;
  const place = `the admin port of ${server.name}, ${host}:${port}`;
  let response: Response;
  try {
    response = await fetch(`http://${host}:${port}/commands/${command}`, {
      headers: { authorization },
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
  } catch (error) {
    signal.throwIfAborted();
    const advice =
      'it is open on loopback alone unless admin.serverAddress says otherwise; --http-port names another one';
    throw new CommandFailure(CommandExit.unreachable, `${place}, does not answer: ${advice}`, error as Error);
  }
  const body = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  const { error = null } = body;
  if (response.status === 401 || response.status === 403) {
    const advice = 'give credentials with all permissions of the root: --auth digest:user:password';
    throw new CommandFailure(CommandExit.credentials, `${place}, refuses ${command}: ${String(error)}; ${advice}`);
  }
  if (response.status !== 200 || error !== null) {
    throw new CommandFailure(
      CommandExit.unsupported,
      `${place}, does not do ${command}: ${String(error ?? response.status)}`,
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
