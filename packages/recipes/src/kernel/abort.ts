import { onAbort } from '@meerkat/client';

/**
 * A signal that aborts with the first of several. It then leaves nothing on any of them: `AbortSignal.any` of Node.js
 * 20 leaks some bytes on each, and a caller's signal may live as long as its process.
 */
export function firstAbortOf(signals: readonly AbortSignal[]): AbortSignal {
  const controller = new AbortController();
  const releases: (() => void)[] = [];
  const abort = (reason: unknown): void => {
    for (const release of releases) release();
    controller.abort(reason);
  };
  for (const signal of signals) {
    if (controller.signal.aborted) break;
    releases.push(onAbort(signal, () => abort(signal.reason)));
  }
  return controller.signal;
}

/** Waits until a signal is aborted; `stop` removes the listener. */
export function whenAborted(signal: AbortSignal): { readonly aborted: Promise<void>; readonly stop: () => void } {
  let stop = (): void => {};
  const aborted = new Promise<void>((resolve) => {
    stop = onAbort(signal, resolve);
  });
  return { aborted, stop };
}
