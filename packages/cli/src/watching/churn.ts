import type { Column } from '../output/column.ts';
import { hex, isoTime, localTime } from '../output/stat-columns.ts';
import type { Change } from './change.ts';

/** How often a znode changed. */
export interface Churn {
  /** null: all those for which there was no room of their own. */
  readonly path: string | null;
  readonly created: number;
  readonly changed: number;
  readonly deleted: number;
  readonly children: number;
  readonly total: number;
  readonly perSecond: number;
  readonly lastMs: number;
  readonly lastZxid: bigint | null;
}

interface Count {
  created: number;
  changed: number;
  deleted: number;
  children: number;
  lastMs: number;
  lastZxid: bigint | null;
}

/** Counts changes by path; of more paths than there is room for, the later ones are counted together. */
export class ChurnTable {
  readonly #pathsMax: number;
  readonly #counts = new Map<string, Count>();
  #others: Count | null = null;
  #gaps = 0;
  #total = 0;

  constructor(pathsMax = 10_000) {
    this.#pathsMax = pathsMax;
  }

  get total(): number {
    return this.#total;
  }

  /** How often changes may be missing. */
  get gaps(): number {
    return this.#gaps;
  }

  get paths(): number {
    return this.#counts.size;
  }

  add({ kind, path, timeMs, zxid }: Change): void {
    if (kind === 'gap') {
      this.#gaps++;
      return;
    }
    this.#total++;
    const count = this.#countOf(path);
    count[kind]++;
    count.lastMs = timeMs;
    count.lastZxid = zxid ?? count.lastZxid;
  }

  /** The busiest first. @param elapsedMs since the counting began */
  rows(elapsedMs: number): readonly Churn[] {
    const rows = [...this.#counts].map(([path, count]) => rowOf(path, count, elapsedMs));
    rows.sort((a, b) => b.total - a.total || ((a.path ?? '') < (b.path ?? '') ? -1 : 1));
    return this.#others === null ? rows : [...rows, rowOf(null, this.#others, elapsedMs)];
  }

  #countOf(path: string): Count {
    const known = this.#counts.get(path);
    if (known !== undefined) return known;
    if (this.#counts.size >= this.#pathsMax) {
      this.#others ??= makeCount();
      return this.#others;
    }
    const made = makeCount();
    this.#counts.set(path, made);
    return made;
  }
}

function makeCount(): Count {
  return { created: 0, changed: 0, deleted: 0, children: 0, lastMs: 0, lastZxid: null };
}

function rowOf(path: string | null, count: Count, elapsedMs: number): Churn {
  const total = count.created + count.changed + count.deleted + count.children;
  return { path, ...count, total, perSecond: (total * 1000) / Math.max(1, elapsedMs) };
}

export const CHURN_COLUMNS: readonly Column<Churn>[] = [
  { name: 'path', value: ({ path }) => path, text: ({ path }) => path ?? '(others)' },
  { name: 'total', value: ({ total }) => total, align: 'right' },
  {
    name: 'perSecond',
    value: ({ perSecond }) => Math.round(perSecond * 1000) / 1000,
    text: ({ perSecond }) => perSecond.toFixed(perSecond < 10 ? 2 : 0),
    align: 'right',
  },
  { name: 'created', value: ({ created }) => created, align: 'right' },
  { name: 'changed', value: ({ changed }) => changed, align: 'right' },
  { name: 'deleted', value: ({ deleted }) => deleted, align: 'right' },
  { name: 'children', value: ({ children }) => children, align: 'right' },
  { name: 'last', value: ({ lastMs }) => isoTime(lastMs), text: ({ lastMs }) => localTime(lastMs).slice(11) },
  { name: 'lastZxid', value: ({ lastZxid }) => (lastZxid === null ? null : hex(lastZxid)) },
];
