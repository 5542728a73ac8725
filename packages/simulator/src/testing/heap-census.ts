import { getHeapSnapshot } from 'node:v8';

/** A kind of objects, by its class where it has one, and the counts of all rounds. */
export interface Growth {
  readonly what: string;
  readonly counts: readonly number[];
}

interface HeapSnapshot {
  readonly snapshot: {
    readonly meta: { readonly node_fields: readonly string[]; readonly node_types: readonly [readonly string[]] };
  };
  readonly nodes: readonly number[];
  readonly strings: readonly string[];
}

/** Counts the objects in the heap of this process, once a round, by kind and class: `object Session`, `closure onClosed`. */
export class HeapCensus {
  readonly #rounds: number;
  /** Arrays and hash tables by their bytes. */
  readonly #counts: Map<string, Float64Array> = new Map();
  #round = 0;

  /** @param rounds how often `take` will be called */
  constructor(rounds: number) {
    this.#rounds = rounds;
  }

  /** Collects garbage, and counts what is left. */
  async take(): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of getHeapSnapshot()) chunks.push(chunk);
    const { snapshot, nodes, strings } = JSON.parse(Buffer.concat(chunks).toString()) as HeapSnapshot;
    const { node_fields: fields, node_types: types } = snapshot.meta;
    const [type, name, size] = [fields.indexOf('type'), fields.indexOf('name'), fields.indexOf('self_size')];
    for (let at = 0; at < nodes.length; at += fields.length) {
      const kind = types[0][nodes[at + type]!]!;
      if (CLASSES.has(kind)) this.#add(`${kind} ${strings[nodes[at + name]!]}`, 1);
      else if (VALUES.has(kind)) this.#add(kind, 1);
      else if (kind === TABLES) this.#add(kind, nodes[at + size]!);
    }
    this.#round++;
  }

  /**
   * What has grown in each round. The first one does not count: the census needs memory, too.
   *
   * @param countMin how many more in a round are no chance; the engine's own objects come and go
   */
  growing(countMin: number): readonly Growth[] {
    const grown = [...this.#counts].filter(([what, counts]) => {
      const later = counts.subarray(1);
      const min = what === TABLES ? countMin * TABLE_ENTRY_BYTES : countMin;
      return later.every((count, i) => i === 0 || count >= later[i - 1]! + min);
    });
    return grown.map(([what, counts]) => ({ what, counts: [...counts] }));
  }

  #add(what: string, count: number): void {
    let counts = this.#counts.get(what);
    if (counts === undefined) {
      counts = new Float64Array(this.#rounds);
      this.#counts.set(what, counts);
    }
    counts[this.#round]! += count;
  }
}

const CLASSES: ReadonlySet<string> = new Set(['object', 'closure', 'native']);
const VALUES: ReadonlySet<string> = new Set(['number', 'bigint']);
const TABLES = 'array';
/** Of one key and value in a hash table, about. */
const TABLE_ENTRY_BYTES = 24;
