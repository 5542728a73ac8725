import { nameOf } from '@meerkat/client';
import { count } from '../output/stat-columns.ts';

/** What is drawn of a znode. */
export interface Drawn {
  readonly path: string;
  /** 0 for a root, which is drawn with its whole path. */
  readonly depth: number;
  /** All of its children, in the order in which they come. */
  readonly children: readonly string[];
}

/** How much of a tree is walked through; Infinity for all. */
export interface TreeLimits {
  readonly depthMax: number;
  /** Of each parent. */
  readonly childrenMax: number;
}

/**
 * Draws a tree as it is walked through, a line for each znode:
 *
 *     /app
 *     ├── jobs
 *     │   ├── job-0000000001
 *     │   └── … 28 more
 *     └── web
 *
 * A last child that goes during the walk leaves its predecessor with the corner of one that has a successor.
 */
export class TreeDrawing<T extends Drawn> {
  readonly #limits: TreeLimits;
  readonly #label: (drawn: T, text: string) => string;
  /** The ancestors of the next znode, the nearest last. */
  readonly #parents: Parent[] = [];

  /**
   * @param limits as in the walk
   * @param label dresses a znode's name, or the path of a root
   */
  constructor(limits: TreeLimits, label: (drawn: T, text: string) => string) {
    this.#limits = limits;
    this.#label = label;
  }

  /** @returns whole lines */
  add(drawn: T): string {
    const { depthMax, childrenMax } = this.#limits;
    const closed = this.#close(drawn.depth);
    const parent = this.#parents.at(-1);
    const name = nameOf(drawn.path);
    const isLast = parent?.leftOut === 0 && parent.lastName === name;
    const line =
      parent === undefined
        ? this.#label(drawn, drawn.path)
        : `${parent.indent}${isLast ? '└── ' : '├── '}${this.#label(drawn, name)}`;
    this.#parents.push({
      depth: drawn.depth,
      indent: parent === undefined ? '' : `${parent.indent}${isLast ? '    ' : '│   '}`,
      lastName: drawn.children.at(-1) ?? null,
      leftOut: drawn.depth < depthMax ? Math.max(0, drawn.children.length - childrenMax) : 0,
    });
    return `${closed}${line}\n`;
  }

  /** @returns what is left to be drawn */
  end(): string {
    return this.#close(0);
  }

  /** Leaves the parents that are no parents of a znode of this depth. */
  #close(depth: number): string {
    let lines = '';
    while ((this.#parents.at(-1)?.depth ?? -1) >= depth) {
      const parent = this.#parents.pop();
      if (parent !== undefined && parent.leftOut > 0) lines += `${parent.indent}└── … ${count(parent.leftOut)} more\n`;
    }
    return lines;
  }
}

interface Parent {
  readonly depth: number;
  /** In front of its children's branches. */
  readonly indent: string;
  readonly lastName: string | null;
  /** Children that are not drawn. */
  readonly leftOut: number;
}
