/**
 * Calls back when a signal is aborted. One signal often guards many requests at once: it gets one listener for all of
 * them, since Node.js takes more than ten for a leak and says so on stderr.
 *
 * @param signal not aborted yet
 * @returns takes the callback off again
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let callbacks = CALLBACKS.get(signal);
  if (callbacks === undefined) {
    callbacks = new Set();
    CALLBACKS.set(signal, callbacks);
  }
  if (callbacks.size === 0) signal.addEventListener('abort', tellAll, { once: true });
  const registered = callbacks;
  registered.add(callback);
  return () => {
    registered.delete(callback);
    if (registered.size === 0) signal.removeEventListener('abort', tellAll);
  };
}

const CALLBACKS: WeakMap<AbortSignal, Set<() => void>> = new WeakMap();

function tellAll(event: Event): void {
  const callbacks = CALLBACKS.get(event.target as AbortSignal);
  if (callbacks === undefined) return;
  const told = [...callbacks];
  callbacks.clear();
  for (const callback of told) callback();
}
