/**
 * Calls back when a signal is aborted. One signal often ends many waits at once, and that of a session everything that is held
 * in it: it gets one listener for all of them, since Node.js takes more than ten for a leak and says so on stderr.
 *
 * @param signal not aborted yet
 * @returns takes the callback off again
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const callbacks = CALLBACKS.get(signal) ?? new Set();
  CALLBACKS.set(signal, callbacks);
  if (callbacks.size === 0) signal.addEventListener('abort', tellAll, { once: true });
  callbacks.add(callback);
  return () => {
    if (callbacks.delete(callback) && callbacks.size === 0) signal.removeEventListener('abort', tellAll);
  };
}

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
  const aborted = signals.find((signal) => signal.aborted);
  if (aborted !== undefined) abort(aborted.reason);
  else for (const signal of signals) releases.push(onAbort(signal, () => abort(signal.reason)));
  return controller.signal;
}

const CALLBACKS: WeakMap<AbortSignal, Set<() => void>> = new WeakMap();

function tellAll(event: Event): void {
  const callbacks = CALLBACKS.get(event.target as AbortSignal) ?? new Set();
  // One may take another off.
  for (const callback of [...callbacks]) if (callbacks.delete(callback)) callback();
}
