import { type Client, ZooKeeperError } from '@meerkat/client';

/**
 * Waits after a failed read until reading again makes sense: for a connection after one was lost, for a moment where the
 * service has too much to do.
 *
 * @throws the failure when it does not pass by itself; what `whenConnected` throws when the client, or the signal, ends
 */
export async function afterFailure(client: Client, failure: unknown, signal?: AbortSignal): Promise<void> {
  if (!(failure instanceof ZooKeeperError)) throw failure;
  if (CONNECTION_CODES.has(failure.code)) await client.whenConnected({ signal });
  else if (failure.isRetryable) await pause(client, PAUSE_MS);
  else throw failure;
}

/**
 * Asks the service how far it is, through failures that pass.
 *
 * @returns whether it has come to `zxid`
 * @throws what does not pass; AbortedError when the signal ends it
 */
export async function hasComeTo(client: Client, path: string, zxid: bigint, signal: AbortSignal): Promise<boolean> {
  for (;;) {
    try {
      await client.sync(path, { signal });
      return client.lastZxid >= zxid;
    } catch (error) {
      await afterFailure(client, error, signal);
    }
  }
}

/** Milliseconds of the client's clock. */
export function pause(client: Client, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    client.surroundings.clock.schedule(delayMs, resolve);
  });
}

const CONNECTION_CODES: ReadonlySet<string> = new Set([
  'CONNECTIONLOSS',
  'SESSIONLOST',
  'SESSIONEXPIRED',
  'SESSIONMOVED',
  'UNKNOWNSESSION',
]);

const PAUSE_MS = 500;
