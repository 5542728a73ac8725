/** Seeds from the first to the last, both included. */
export interface Seeds {
  readonly first: number;
  readonly last: number;
}

/** The unit of work of a worker: some seeds of one simulation. */
export interface Slice extends Seeds {
  /** Its file below `src`, without the common suffix: `locks/mutex`. */
  readonly name: string;
}

/** @returns null when it is neither a number above 0 nor a range such as 1..2000 */
export function parseSeeds(text: string): Seeds | null {
  const match = /^([1-9]\d*)(?:\.\.([1-9]\d*))?$/.exec(text.trim());
  if (match === null) return null;
  const first = Number(match[1]);
  const last = match[2] === undefined ? first : Number(match[2]);
  return first <= last && Number.isSafeInteger(last) ? { first, last } : null;
}

/**
 * Divides the seeds of all simulations into slices. Each simulation has its first slice before any has its second, so
 * that all have made about the same progress when the user stops the campaign early.
 *
 * @param done slices to leave out; they may be of any size, and overlap
 * @param seedsMax of one slice
 */
export function divide(names: readonly string[], seeds: Seeds, done: readonly Slice[], seedsMax: number): Slice[] {
  const columns = names.map((name) =>
    without(
      seeds,
      done.filter((slice) => slice.name === name),
    ).flatMap((rest) => cut(rest, seedsMax).map((part): Slice => ({ name, ...part }))),
  );
  const rows = Math.max(0, ...columns.map((column) => column.length));
  return Array.from({ length: rows }, (_, row) => columns.flatMap((column) => column.slice(row, row + 1))).flat();
}

export function countSeeds(slices: readonly Seeds[]): number {
  return slices.reduce((count, { first, last }) => count + last - first + 1, 0);
}

/** The remaining seeds, in order. */
function without(seeds: Seeds, done: readonly Seeds[]): Seeds[] {
  const left: Seeds[] = [];
  let next = seeds.first;
  for (const { first, last } of done.toSorted((a, b) => a.first - b.first)) {
    if (first > seeds.last) break;
    if (first > next) left.push({ first: next, last: first - 1 });
    next = Math.max(next, last + 1);
  }
  if (next <= seeds.last) left.push({ first: next, last: seeds.last });
  return left;
}

function cut({ first, last }: Seeds, seedsMax: number): Seeds[] {
  const parts: Seeds[] = [];
  for (let from = first; from <= last; from += seedsMax)
    parts.push({ first: from, last: Math.min(last, from + seedsMax - 1) });
  return parts;
}
