/**
 * The rows of the znode table: eight ints per number, in chunks, and the links between znodes.
 *
 *     number z ─▶ ints[z >> 16][(z & 0xffff) * 8 + field]
 *
 * Siblings are a ring that is open in one direction: the first child's `previous` is the last child, the last child's
 * `next` is 0. A new child is added at the end. Numbers start at 1 (0 = none); a freed one is reused, and until then
 * its `next` links the free list.
 */

/** A znode's number in the table; 0 = none, 1 = the root. Valid until the znode is deleted. */
export type ZnodeNumber = number;

export const NO_ZNODE: ZnodeNumber = 0;
export const ROOT: ZnodeNumber = 1;

const CHUNK_SHIFT = 16;
const CHUNK_ZNODES = 1 << CHUNK_SHIFT;
const CHUNK_MASK = CHUNK_ZNODES - 1;
/** Capacity of an empty tree; a power of two. */
const ROOM_MIN = 256;

export const BLOCK = 0;
export const PARENT = 1;
export const FIRST_CHILD = 2;
export const NEXT = 3;
const PREVIOUS = 4;
export const ACL = 5;
export const SEQUENCE = 6;
export const DIGEST = 7;
const FIELDS_SHIFT = 3;

export class ZnodeRows {
  readonly #ints: Int32Array[] = [new Int32Array(ROOM_MIN << FIELDS_SHIFT)];
  /** Numbers for which the ints have room. */
  #room = ROOM_MIN;
  #freeHead: ZnodeNumber = NO_ZNODE;
  #end = 1;

  /** One more than the highest number ever used. */
  get end(): number {
    return this.#end;
  }

  /** @returns an unused number, whose row has to be set */
  allocate(): ZnodeNumber {
    const z = this.#freeHead;
    if (z === NO_ZNODE) {
      if (this.#end === this.#room) this.#grow();
      return this.#end++;
    }
    this.#freeHead = this.get(z, NEXT);
    return z;
  }

  /** The first chunk grows as it fills: a small tree need not cost 2 MB. */
  #grow(): void {
    const isFirst = this.#room < CHUNK_ZNODES;
    const chunk = new Int32Array((isFirst ? 2 * this.#room : CHUNK_ZNODES) << FIELDS_SHIFT);
    if (isFirst) {
      chunk.set(this.#ints[0]!);
      this.#ints[0] = chunk;
    } else this.#ints.push(chunk);
    this.#room += isFirst ? this.#room : CHUNK_ZNODES;
  }

  /** Sets the block; clears the other fields. */
  reset(z: ZnodeNumber, block: number): void {
    const ints = this.#ints[z >> CHUNK_SHIFT]!;
    const row = (z & CHUNK_MASK) << FIELDS_SHIFT;
    ints[row + BLOCK] = block;
    for (let field = row + PARENT; field <= row + DIGEST; field++) ints[field] = 0;
  }

  free(z: ZnodeNumber): void {
    this.set(z, PARENT, NO_ZNODE);
    this.set(z, NEXT, this.#freeHead);
    this.#freeHead = z;
  }

  get(z: ZnodeNumber, field: number): number {
    return this.#ints[z >> CHUNK_SHIFT]![((z & CHUNK_MASK) << FIELDS_SHIFT) | field]!;
  }

  set(z: ZnodeNumber, field: number, value: number): void {
    this.#ints[z >> CHUNK_SHIFT]![((z & CHUNK_MASK) << FIELDS_SHIFT) | field] = value;
  }

  /** Makes `z` the last child of `parent`; the root becomes its own parent. */
  link(parent: ZnodeNumber, z: ZnodeNumber): void {
    this.set(z, PARENT, parent);
    if (z === ROOT) return;
    const first = this.get(parent, FIRST_CHILD);
    if (first === NO_ZNODE) {
      this.set(parent, FIRST_CHILD, z);
      this.set(z, PREVIOUS, z);
    } else {
      const last = this.get(first, PREVIOUS);
      this.set(last, NEXT, z);
      this.set(z, PREVIOUS, last);
      this.set(first, PREVIOUS, z);
    }
  }

  /** Takes `z` out of its parent's children. */
  unlink(z: ZnodeNumber): void {
    const parent = this.get(z, PARENT);
    const first = this.get(parent, FIRST_CHILD);
    const next = this.get(z, NEXT);
    const previous = this.get(z, PREVIOUS);
    if (z === first) this.set(parent, FIRST_CHILD, next);
    else this.set(previous, NEXT, next);
    if (next !== NO_ZNODE) this.set(next, PREVIOUS, previous);
    else if (z !== first) this.set(first, PREVIOUS, previous);
  }
}
