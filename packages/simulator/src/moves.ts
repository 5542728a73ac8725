import { type Client, isZooKeeperError } from '@meerkat/client';
import type { HostPort } from '@meerkat/protocol';

/**
 * A session goes from server to server, and writes at each.
 *
 * @param servers those that it visits, one after the other
 * @param untilCaughtUp waits until every server has what the client has seen; one that is behind refuses it, rightly
 * @returns as text, the first move that ended at another server, or after which the write was not answered over the new
 *   connection; null when all succeeded
 */
export async function findBrokenMove(
  client: Client,
  servers: readonly HostPort[],
  path: string,
  timeoutMs: number,
  untilCaughtUp: () => Promise<unknown>,
): Promise<string | null> {
  for (const server of servers) {
    const from = client.server?.host ?? 'nowhere';
    await untilCaughtUp();
    await client.moveTo(server, { timeoutMs });
    const { host, port } = client.server ?? { host: 'nowhere', port: 0 };
    if (host !== server.host || port !== server.port) {
      return `a session moved from ${from} to ${server.host}, and is at ${host}`;
    }
    const changes: string[] = [];
    using _ = client.onState(({ reason }) => changes.push(reason));
    const failure = await client.set(path, server.host, { timeoutMs }).then(() => null, codeOf);
    if (failure === null && changes.length === 0) continue;
    return `a session moved from ${from} to ${server.host} and wrote there: ${[failure ?? 'answered', ...changes].join(', ')}`;
  }
  return null;
}

function codeOf(error: unknown): string {
  if (!isZooKeeperError(error)) throw error;
  return error.code;
}
