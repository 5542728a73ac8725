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

const CALLBACKS: WeakMap<AbortSignal, Set<() => void>> = new WeakMap();

function tellAll(event: Event): void {
  const callbacks = CALLBACKS.get(event.target as AbortSignal) ?? new Set();
  // One may take another off.
  for (const callback of [...callbacks]) if (callbacks.delete(callback)) callback();
}
