import {
  AbortedError,
  type About,
  AuthFailedError,
  type CallOptions,
  type Client,
  ClosedError,
  type Outcome,
  TimeoutError,
  ZooKeeperError,
} from '@meerkat/client';
import { onAbort } from '../abort.ts';
import { Uncertainty } from '../doubt.ts';
import { makeDeferred } from './latest.ts';

/** How long to wait after a failure that passes by itself, milliseconds. */
const PAUSE_MS = 500;

/** The connection or the session is gone; with the next one it makes sense to look again. */
const CONNECTION_CODES: ReadonlySet<string> = new Set([
  'CONNECTIONLOSS',
  'SESSIONLOST',
  'SESSIONEXPIRED',
  'SESSIONMOVED',
  'UNKNOWNSESSION',
]);

/**
 * Does something again and again until it succeeds or cannot: through lost connections, lost sessions and servers that
 * have too much to do.
 *
 * @param attempt harmless when it is repeated although it had an effect
 * @throws whatever does not pass by itself; AbortedError; ClosedError when the client ends
 */
export async function untilDone<T>(client: Client, signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      await afterFailure(client, signal, error);
    }
  }
}

/** Resolves when trying again makes sense; rejects with the failure when it does not. */
export async function afterFailure(client: Client, signal: AbortSignal, error: unknown): Promise<void> {
  if (signal.aborted || !(error instanceof ZooKeeperError)) throw error;
  if (CONNECTION_CODES.has(error.code)) {
    await client.whenConnected({ signal });
    // A server that loses every connection at once would be asked without a break.
    await pause(client, signal, RECONNECTED_PAUSE_MS);
  } else if (error.isRetryable) await pause(client, signal, PAUSE_MS);
  else throw error;
}

const RECONNECTED_PAUSE_MS = 10;

/** Resolves when the time has passed, or the signal is aborted. */
export function pause(client: Client, signal: AbortSignal, delayMs: number): Promise<void> {
  const { promise, resolve } = makeDeferred<void>();
  if (signal.aborted) return Promise.resolve();
  const wake = (): void => resolve();
  const cancel = client.surroundings.clock.schedule(delayMs, wake);
  signal.addEventListener('abort', wake, { once: true });
  return promise.finally(() => {
    cancel();
    signal.removeEventListener('abort', wake);
  });
}

/**
 * Waits for something as long as the caller allows.
 *
 * @param wait begins to wait; the signal aborts when the caller has given up. What may be long in coming is to keep nothing of
 *   this then: a promise keeps whoever has waited for it until it settles
 * @throws AbortedError, TimeoutError; whatever `wait` rejects with
 */
export function withLimits<T>(
  client: Client,
  options: CallOptions,
  about: About & { readonly outcome?: Outcome },
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal, timeoutMs } = options;
  const over = new AbortController();
  const waited = wait(over.signal);
  if (signal === undefined && timeoutMs === undefined) return waited;
  const limit = makeDeferred<T>();
  const giveUp = (error: Error): void => {
    limit.reject(error);
    over.abort(error);
  };
  const release = listen(signal, () => giveUp(new AbortedError({ ...about, cause: signal?.reason })));
  const cancel =
    timeoutMs === undefined
      ? null
      : client.surroundings.clock.schedule(timeoutMs, () => giveUp(new TimeoutError(about)));
  return Promise.race([waited, limit.promise]).finally(() => {
    cancel?.();
    release();
  });
}

/** Calls back when a caller's signal is aborted, at once when it is already. @returns takes the callback off again */
function listen(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {};
  if (!signal.aborted) return onAbort(signal, callback);
  callback();
  return () => {};
}

/**
 * The same as `untilDone`, as long as the caller allows.
 *
 * @param attempt is to be given up when the signal is aborted
 * @throws TimeoutError, AbortedError, ClosedError, whose `outcome` tells of all attempts together
 */
export async function untilDoneWithin<T>(
  client: Client,
  options: CallOptions,
  about: About,
  attempt: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal, stop } = limit(client, options);
  const uncertainty = new Uncertainty();
  try {
    return await untilDone(client, signal, async () => {
      try {
        return await attempt(signal);
      } catch (error) {
        throw uncertainty.noted(error);
      }
    });
  } catch (error) {
    const details = { ...about, outcome: uncertainty.exists ? 'unknown' : 'not-applied' } as const;
    if (signal.reason instanceof TimeoutError) throw new TimeoutError(details);
    if (signal.aborted) throw new AbortedError({ ...details, cause: options.signal?.reason });
    throw uncertainty.told(error, about);
  } finally {
    stop();
  }
}

/**
 * The limits of a caller as one signal, for what consists of several requests.
 *
 * @returns `stop` lets go of timer and signal; the reason of a timeout is a TimeoutError
 */
export function limit(
  client: Client,
  { signal, timeoutMs }: CallOptions,
): { readonly signal: AbortSignal; readonly stop: () => void } {
  const controller = new AbortController();
  const release = listen(signal, () => controller.abort(signal?.reason));
  const onTimeout = (): void => controller.abort(new TimeoutError({ operation: 'limit', path: null }));
  const cancel = timeoutMs === undefined ? null : client.surroundings.clock.schedule(timeoutMs, onTimeout);
  const stop = (): void => {
    cancel?.();
    release();
  };
  return { signal: controller.signal, stop };
}

/** For what goes on until it is done. One of its own each time, as a signal keeps everybody who listens to it. */
export function neverAborted(): AbortSignal {
  return new AbortController().signal;
}

/** The same promise. Should it reject and nobody wait for it any more, that does not end the process. */
export function unheard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** The client may end, and with it the session and what it had. */
export async function unlessClientEnds(done: Promise<void>): Promise<void> {
  await done.catch((error: unknown) => {
    if (!(error instanceof ClosedError || error instanceof AuthFailedError)) throw error;
  });
}

/** Resolves with what is waited for, or as soon as there is no connection to wait with. */
export async function orDisconnected(client: Client, waited: Promise<void>): Promise<void> {
  unheard(waited);
  if (client.state !== 'connected') return;
  let leave = (): void => {};
  const disconnected = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const states = client.onState(({ state }) => {
    if (state !== 'connected') leave();
  });
  await Promise.race([waited, disconnected]);
  states[Symbol.dispose]();
}
