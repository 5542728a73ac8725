import { AbortedError, type About, type CallOptions, type Client, TimeoutError } from '@meerkat/client';
import { onAbort } from '../abort.ts';

/**
 * Waits for something that goes on anyway, as long as the caller likes.
 *
 * @throws AbortedError, TimeoutError: nothing has been undone then
 */
export function waitFor<T>(
  client: Client,
  work: Promise<T>,
  { signal, timeoutMs }: CallOptions,
  about: About,
): Promise<T> {
  if (signal === undefined && timeoutMs === undefined) return work;
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      stop();
      reject(new AbortedError({ ...about, cause: signal?.reason }));
    };
    const onTime = (): void => {
      stop();
      reject(new TimeoutError({ ...about, detail: `${timeoutMs} ms` }));
    };
    const cancelTimer =
      timeoutMs === undefined ? () => {} : client.surroundings.clock.schedule(Math.max(0, timeoutMs), onTime);
    const stop = (): void => {
      cancelTimer();
      releaseSignal();
    };
    const releaseSignal = signal === undefined ? () => {} : onAbort(signal, giveUp);
    work.then(
      (value) => {
        stop();
        resolve(value);
      },
      (error: unknown) => {
        stop();
        reject(error);
      },
    );
    if (signal?.aborted === true) giveUp();
  });
}

/** Waits until a signal is aborted; `stop` takes the listener off again. */
export function whenAborted(signal: AbortSignal): { readonly aborted: Promise<void>; readonly stop: () => void } {
  let stop = (): void => {};
  const aborted = new Promise<void>((resolve) => {
    stop = onAbort(signal, resolve);
    if (signal.aborted) resolve();
  });
  return { aborted, stop };
}
