import { compareInTreeOrder } from '../copy/tree-entry.ts';

/**
 * Holds the znodes of a file to tree order, in which every parent stands before its children.
 *
 * Properties of what has passed, by induction: (1) paths grow, so that none comes twice; (2) the parent of a path is the
 * one before it or one of that one's ancestors; (3) the first one is "/".
 */
export class TreeOrder {
  #last: string | null = null;

  /** @returns what is wrong with the next path; null when nothing is */
  check(path: string): string | null {
    const last = this.#last;
    this.#last = path;
    if (last === null) return path === '/' ? null : `the first znode is the root of the tree, "/", not "${path}"`;
    const order = compareInTreeOrder(last, path);
    if (order === 0) return `"${path}" comes twice`;
    if (order > 0) {
      return `"${path}" belongs before "${last}": parents come first, siblings in the order of their names`;
    }
    const parent = path.slice(0, path.lastIndexOf('/'));
    const isKnown = parent === '' || parent === last || last.startsWith(`${parent}/`);
    return isKnown ? null : `"${path}" has no parent: "${parent}" is missing before it`;
  }
}
