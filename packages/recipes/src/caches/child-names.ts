import { nameOf, parentOf } from '@meerkat/client';
import type { CachedZnode } from './cached-znode.ts';
import type { Difference } from './timeline.ts';

/** Names of children that are published, by path of the parent. */
export class ChildNames {
  readonly #root: string;
  readonly #names: Map<string, Set<string>> = new Map();

  constructor(root: string) {
    this.#root = root;
  }

  /** Sorted. */
  of(path: string): string[] {
    return [...(this.#names.get(path) ?? [])].sort();
  }

  note({ path, before, after }: Difference<CachedZnode>): void {
    if (path === this.#root || (before === null) === (after === null)) return;
    const parent = parentOf(path);
    const name = nameOf(path);
    const names = this.#names.get(parent);
    if (after === null) {
      names?.delete(name);
      if (names?.size === 0) this.#names.delete(parent);
    } else if (names === undefined) this.#names.set(parent, new Set([name]));
    else names.add(name);
  }
}
