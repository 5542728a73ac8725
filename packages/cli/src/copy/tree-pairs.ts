import { compareInTreeOrder, type TreeEntry } from './tree-entry.ts';

/** What two trees have at one path; at least one of them has something. */
export type TreePair =
  | { readonly path: string; readonly left: TreeEntry; readonly right: TreeEntry | null }
  | { readonly path: string; readonly left: null; readonly right: TreeEntry };

export type TreeEntries = AsyncIterable<TreeEntry>;

/** Walks through two trees side by side, each in tree order and read only once: neither has to fit into memory. */
export async function* pairTrees(left: TreeEntries, right: TreeEntries): AsyncGenerator<TreePair, void> {
  const [lefts, rights] = [left[Symbol.asyncIterator](), right[Symbol.asyncIterator]()];
  try {
    let [a, b] = await Promise.all([lefts.next(), rights.next()]);
    while (a.done !== true || b.done !== true) {
      const order = a.done === true ? 1 : b.done === true ? -1 : compareInTreeOrder(a.value.path, b.value.path);
      if (a.done !== true && order < 0) {
        yield { path: a.value.path, left: a.value, right: null };
        a = await lefts.next();
      } else if (b.done !== true && order > 0) {
        yield { path: b.value.path, left: null, right: b.value };
        b = await rights.next();
      } else if (a.done !== true && b.done !== true) {
        yield { path: a.value.path, left: a.value, right: b.value };
        [a, b] = await Promise.all([lefts.next(), rights.next()]);
      }
    }
  } finally {
    await Promise.all([lefts.return?.(), rights.return?.()]);
  }
}

/** A tree that is not there. */
export async function* noEntries(): AsyncGenerator<TreeEntry, void> {}
