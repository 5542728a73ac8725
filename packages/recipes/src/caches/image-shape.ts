import { parentOf } from '@meerkat/client';

export interface ImageLimits {
  /** Number of levels below the root that belong to the image; 0: the root alone. */
  readonly depthMax: number;
  /** Whether a znode, with everything below it, belongs to the image. */
  readonly includes: (path: string) => boolean;
}

/** Which znodes belong to an image. */
export class ImageShape {
  readonly #root: string;
  readonly #limits: ImageLimits;

  constructor(root: string, limits: ImageLimits) {
    this.#root = root;
    this.#limits = limits;
  }

  /** It has more than the root. */
  get isDeep(): boolean {
    return this.#limits.depthMax > 0;
  }

  belongs(path: string): boolean {
    if (path !== this.#root && !path.startsWith(this.#root === '/' ? '/' : `${this.#root}/`)) return false;
    let depth = 0;
    for (let at = path; at !== this.#root; at = parentOf(at)) {
      if (++depth > this.#limits.depthMax || !this.#limits.includes(at)) return false;
    }
    return true;
  }

  /** Whether the children of a znode of the image may belong to it. */
  reachesBelow(path: string): boolean {
    let depth = 0;
    for (let at = path; at !== this.#root; at = parentOf(at)) depth++;
    return depth < this.#limits.depthMax;
  }
}
