import { type Client, isZooKeeperError, NoNodeError } from '@meerkat/client';
import type { Condition, ZnodeState } from './conditions.ts';

/**
 * Waits until a znode meets all conditions at once, across lost connections and sessions.
 *
 * The znode is read after the watch is armed and after each event, so that every lasting state is seen. A state that
 * lasts for less than the time between an event and the read may be missed.
 *
 * @param onState called with each state that was read
 * @returns the state of which they hold
 */
export async function awaitState(
  client: Client,
  path: string,
  conditions: readonly Condition[],
  signal: AbortSignal,
  onState: (state: ZnodeState) => void,
): Promise<ZnodeState> {
  const needsData = conditions.some((condition) => condition.needsData);
  await using stream = client.watch(path, { signal, bufferMax: 1 });
  await stream.ready;
  while (!stream.isOver) {
    // What has been reported before the read is in it.
    while (stream.take() !== null);
    const state = await readState(client, path, needsData, signal);
    if (state === null) {
      await client.whenConnected({ signal });
      continue;
    }
    onState(state);
    if (conditions.every(({ holds }) => holds(state))) return state;
    await stream.arrival();
  }
  // The stream ends by an error, which it throws, or by the signal.
  for await (const _ of stream);
  throw new DOMException('the wait was aborted', 'AbortError');
}

/** @returns null when there is no session to read with */
async function readState(
  client: Client,
  path: string,
  needsData: boolean,
  signal: AbortSignal,
): Promise<ZnodeState | null> {
  try {
    if (!needsData) return { stat: await client.exists(path, { signal }), data: null };
    return await client.get(path, { signal });
  } catch (error) {
    if (error instanceof NoNodeError) return { stat: null, data: null };
    if (isZooKeeperError(error) && PASSING.has(error.code)) return null;
    throw error;
  }
}

const PASSING: ReadonlySet<string> = new Set(['CONNECTIONLOSS', 'SESSIONLOST', 'SESSIONEXPIRED', 'UNKNOWNSESSION']);
