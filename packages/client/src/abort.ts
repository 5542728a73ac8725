/**
 * Calls back when a signal is aborted. One signal often guards many requests at once: it gets one listener for all of
 * them, since Node.js warns of a leak on stderr when there are more than ten.
 *
 * @param signal if already aborted, it calls back at once; undefined: never
 * @returns removes the callback
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    callback();
    return () => {};
  }
  const callbacks = CALLBACKS.get(signal) ?? new Set();
  CALLBACKS.set(signal, callbacks);
  if (callbacks.size === 0) signal.addEventListener('abort', notifyAll, { once: true });
  callbacks.add(callback);
  return () => {
    if (callbacks.delete(callback) && callbacks.size === 0) signal.removeEventListener('abort', notifyAll);
  };
}

const CALLBACKS: WeakMap<AbortSignal, Set<() => void>> = new WeakMap();

function notifyAll(event: Event): void {
  const callbacks = CALLBACKS.get(event.target as AbortSignal) ?? new Set();
  // A callback may remove another one.
  for (const callback of [...callbacks]) if (callbacks.delete(callback)) callback();
}
