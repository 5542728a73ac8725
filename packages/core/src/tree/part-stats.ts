import { STAT_BYTES } from '@meerkat/protocol';

/**
 * Buffers for the stats of a multi's parts, shared by all multis: a view of a few bytes costs as much as copying a
 * stat, and leaves garbage.
 *
 * Only those of the first parts are kept; a longer multi allocates the rest.
 */
export class PartStats {
  readonly #kept: Uint8Array[] = [];
  #slab: ArrayBuffer = new ArrayBuffer(0);
  #used = 0;

  /** The buffer of part number `part`; it is not cleared. */
  of(part: number): Uint8Array {
    if (part >= KEPT_MAX) return this.#cut();
    while (this.#kept.length <= part) this.#kept.push(this.#cut());
    return this.#kept[part]!;
  }

  #cut(): Uint8Array {
    if (this.#used === this.#slab.byteLength) {
      this.#slab = new ArrayBuffer(SLAB_STATS * STAT_BYTES);
      this.#used = 0;
    }
    const stat = new Uint8Array(this.#slab, this.#used, STAT_BYTES);
    this.#used += STAT_BYTES;
    return stat;
  }
}

const KEPT_MAX = 1024;
const SLAB_STATS = 64;
