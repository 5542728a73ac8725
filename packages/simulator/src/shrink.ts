import type { Fault } from './fault.ts';

/**
 * Makes a list smaller while it still fails: leaves out halves, quarters, and at last single items, again and again
 * until every item that is left is needed (delta debugging; Zeller and Hildebrandt, 2002).
 *
 * @param stillFails looks at a shorter list, whose items keep their order
 * @returns the shortest list found; the given one when nothing can be left out
 */
export async function shrink<T>(
  items: readonly T[],
  stillFails: (items: readonly T[]) => Promise<boolean>,
): Promise<readonly T[]> {
  let kept = items;
  if (kept.length > 0 && (await stillFails([]))) return [];
  let parts = 2;
  while (kept.length > 1) {
    const size = Math.ceil(kept.length / parts);
    let isSmaller = false;
    // From the end: what comes last is the least likely to be needed.
    for (let end = kept.length; end > 0; end = Math.min(end - size, kept.length)) {
      const shorter = [...kept.slice(0, Math.max(0, end - size)), ...kept.slice(end)];
      if (shorter.length === 0 || !(await stillFails(shorter))) continue;
      kept = shorter;
      isSmaller = true;
    }
    if (isSmaller) parts = Math.max(2, Math.min(parts, kept.length));
    else if (size === 1) break;
    else parts = Math.min(parts * 2, kept.length);
  }
  return kept;
}

/** Faults of the same plan that last less long, as far as it still fails. */
export async function shorten(
  faults: readonly Fault[],
  stillFails: (faults: readonly Fault[]) => Promise<boolean>,
): Promise<readonly Fault[]> {
  let kept = faults;
  for (let i = 0; i < kept.length; i++) {
    for (;;) {
      const fault = kept[i]!;
      if (fault.durationMs < 2) break;
      const shorter = kept.with(i, { ...fault, durationMs: fault.durationMs >> 1 });
      if (!(await stillFails(shorter))) break;
      kept = shorter;
    }
  }
  return kept;
}
