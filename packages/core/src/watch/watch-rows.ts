/** No row. */
export const NO_ROW = -1;

/**
 * The watches in columns, because a million small objects would be expensive for the garbage collector.
 *
 * A row number is valid as long as its watch exists. The rows of an owner form an unordered doubly linked list, by
 * `next` and `previous`.
 */
export class WatchRows<Owner> {
  /** null for a block without watches. */
  readonly #blocks: (Block<Owner> | null)[] = [];
  /** Blocks that are not full. */
  readonly #roomy: number[] = [];
  /** An empty block that is kept, so that adding and deleting a single watch allocates no block; NO_ROW for none. */
  #spare = NO_ROW;

  add(path: string, owner: Owner, modes: number, next: number): number {
    let index = this.#roomy.at(-1);
    if (index === undefined) {
      index = this.#blocks.length;
      this.#blocks.push(null);
      this.#roomy.push(index);
    }
    let block = this.#blocks[index]!;
    if (block === null) {
      block = new Block();
      this.#blocks[index] = block;
    } else if (index === this.#spare) {
      this.#spare = NO_ROW;
    }
    const at = block.take();
    if (block.isFull) this.#roomy.pop();
    block.paths[at] = path;
    block.owners[at] = owner;
    block.modes[at] = modes;
    block.next[at] = next;
    block.previous[at] = NO_ROW;
    return (index << BLOCK_SHIFT) | at;
  }

  delete(row: number): void {
    const index = row >> BLOCK_SHIFT;
    const block = this.#blockOf(row);
    if (block.isFull) this.#roomy.push(index);
    block.give(row & ROW_MASK);
    if (!block.isEmpty) return;
    if (this.#spare !== NO_ROW) this.#blocks[this.#spare] = null;
    this.#spare = index;
  }

  pathOf(row: number): string {
    return this.#blockOf(row).paths[row & ROW_MASK]!;
  }

  ownerOf(row: number): Owner {
    return this.#blockOf(row).owners[row & ROW_MASK]!;
  }

  modesOf(row: number): number {
    return this.#blockOf(row).modes[row & ROW_MASK]!;
  }

  setModes(row: number, modes: number): void {
    this.#blockOf(row).modes[row & ROW_MASK] = modes;
  }

  nextOf(row: number): number {
    return this.#blockOf(row).next[row & ROW_MASK]!;
  }

  setNext(row: number, next: number): void {
    this.#blockOf(row).next[row & ROW_MASK] = next;
  }

  previousOf(row: number): number {
    return this.#blockOf(row).previous[row & ROW_MASK]!;
  }

  setPrevious(row: number, previous: number): void {
    this.#blockOf(row).previous[row & ROW_MASK] = previous;
  }

  #blockOf(row: number): Block<Owner> {
    return this.#blocks[row >> BLOCK_SHIFT]!;
  }
}

const BLOCK_SHIFT = 12;
const BLOCK_ROWS = 1 << BLOCK_SHIFT;
const ROW_MASK = BLOCK_ROWS - 1;

/** Rows that are allocated and freed together. Free rows form a list, by `next`. */
class Block<Owner> {
  readonly paths: string[] = [];
  readonly owners: (Owner | null)[] = [];
  readonly modes: Uint8Array = new Uint8Array(BLOCK_ROWS);
  readonly next: Int32Array = new Int32Array(BLOCK_ROWS);
  readonly previous: Int32Array = new Int32Array(BLOCK_ROWS);
  #free = NO_ROW;
  /** The first row that was never used. */
  #end = 0;
  #count = 0;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  get isFull(): boolean {
    return this.#count === BLOCK_ROWS;
  }

  take(): number {
    this.#count++;
    const at = this.#free;
    if (at === NO_ROW) return this.#end++;
    this.#free = this.next[at]!;
    return at;
  }

  give(at: number): void {
    this.#count--;
    this.paths[at] = '';
    this.owners[at] = null;
    this.next[at] = this.#free;
    this.#free = at;
  }
}
