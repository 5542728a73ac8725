import { getEventListeners } from 'node:events';

/** How many others are reported when a signal aborts, as far as Node.js shows it: its sets are of a kind of their own. */
export function leftAt(signal: AbortSignal): number {
  const kept = Object.getOwnPropertySymbols(signal).map((key): unknown => Reflect.get(signal, key));
  const sizes = kept.map((each) =>
    typeof each === 'object' && each !== null && 'size' in each ? Number(each.size) : 0,
  );
  return sizes.reduce((sum, size) => sum + size, getEventListeners(signal, 'abort').length);
}
