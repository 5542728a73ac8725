import { onAbort } from '@meerkat/client';

/**
 * A signal that aborts with the first of several. Nothing of it is left at any of them then: `AbortSignal.any` of Node.js 20
 * leaves some bytes at each for ever, and a caller's signal may live as long as its process.
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

/** Waits until a signal is aborted; `stop` takes the listener off again. */
export function whenAborted(signal: AbortSignal): { readonly aborted: Promise<void>; readonly stop: () => void } {
  let stop = (): void => {};
  const aborted = new Promise<void>((resolve) => {
    stop = onAbort(signal, resolve);
  });
  return { aborted, stop };
}
