import { STAT_BYTES } from '@meerkat/protocol';

/**
 * Room for the stats of a multi's parts, the same for all multis: a view of some bytes costs as much as copying a stat, and what
 * it leaves to the collector.
 *
 * Only that of the first parts is kept; of a longer multi the rest has new room.
 */
export class PartStats {
  readonly #kept: Uint8Array[] = [];
  #slab: ArrayBuffer = new ArrayBuffer(0);
  #used = 0;

  /** Of a multi's part number `part`: what was in it before is still there. */
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
