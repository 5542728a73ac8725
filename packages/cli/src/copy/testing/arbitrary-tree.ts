import { type Acl, acl, OPEN, READ_ONLY } from '@meerkat/client';
import fc from 'fast-check';
import type { ZnodeKind } from '../../archive/znode-kind.ts';
import { compareInTreeOrder, type TreeEntry } from '../tree-entry.ts';

/** What random trees are made of. */
export interface ArbitraryTreeOptions {
  readonly kinds?: readonly ZnodeKind[];
  /** Characters of names. */
  readonly letters?: string;
  /** Znodes, besides their ancestors. Default 12. */
  readonly znodesMax?: number;
}

/** Names that sort in odd places, that file systems and JSON have to escape, and that look like files of ours. */
export const ODD_LETTERS = 'ab-.%_ 0é日"\\:*~!';

const ACLS: readonly (readonly Acl[])[] = [
  OPEN,
  READ_ONLY,
  [acl.digest('ann', 'secret'), acl.world('r')],
  [acl.world('rwda'), acl.ip('127.0.0.1', 'c')],
  [acl.ip('10.0.0.0/8', 'rw'), acl.world('cda'), acl.world('r')],
];

/** Trees in tree order: random names over few letters, so that one name often begins as another one does. */
export function arbitraryTree(options: ArbitraryTreeOptions = {}): fc.Arbitrary<readonly TreeEntry[]> {
  const { kinds = ['persistent'], letters = 'ab-.', znodesMax = 12 } = options;
  const name = fc
    .array(fc.constantFrom(...letters), { minLength: 1, maxLength: 4 })
    .map((characters) => characters.join(''))
    .filter((text) => text !== '.' && text !== '..');
  const path = fc.array(name, { minLength: 1, maxLength: 4 });
  const text = fc.string().map((value) => new TextEncoder().encode(value));
  const data = fc.option(fc.oneof(fc.uint8Array({ maxLength: 40 }), text), { nil: null, freq: 4 });
  const znode = fc.record({ path, data, acl: fc.constantFrom(...ACLS), kind: fc.constantFrom(...kinds) });
  return fc.array(znode, { maxLength: znodesMax, size: 'max' }).map((znodes) => {
    const entries = new Map<string, TreeEntry>([['/', makeEntry('/', {})]]);
    for (const { path: names, ...fields } of znodes) {
      const paths = names.map((_, i) => `/${names.slice(0, i + 1).join('/')}`);
      // Ephemeral znodes have no children.
      const isPossible = paths.slice(0, -1).every((parent) => entries.get(parent)?.kind !== 'ephemeral');
      if (!isPossible) continue;
      for (const parent of paths) if (!entries.has(parent)) entries.set(parent, makeEntry(parent, {}));
      const last = paths.at(-1) ?? '/';
      const hasChildren = [...entries.keys()].some((other) => other.startsWith(`${last}/`));
      entries.set(last, makeEntry(last, hasChildren ? { ...fields, kind: 'persistent' } : fields));
    }
    return [...entries.values()].toSorted((a, b) => compareInTreeOrder(a.path, b.path));
  });
}

export function makeEntry(path: string, fields: Partial<TreeEntry>): TreeEntry {
  return { data: new Uint8Array(0), acl: OPEN, kind: 'persistent', ttlMs: null, mtime: 0, stat: null, ...fields, path };
}

export async function* streamOf<T>(items: readonly T[]): AsyncGenerator<T, void> {
  yield* items;
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}
