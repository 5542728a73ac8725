import { getEventListeners } from 'node:events';

/** The number of dependent signals, as far as Node.js shows it: its sets are of a special kind. */
export function leftAt(signal: AbortSignal): number {
  const kept = Object.getOwnPropertySymbols(signal).map((key): unknown => Reflect.get(signal, key));
  const sizes = kept.map((each) =>
    typeof each === 'object' && each !== null && 'size' in each ? Number(each.size) : 0,
  );
  return sizes.reduce((sum, size) => sum + size, getEventListeners(signal, 'abort').length);
}
