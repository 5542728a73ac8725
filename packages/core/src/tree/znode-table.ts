/**
 * The znodes, as numbers into tables instead of objects: about 260 bytes for a znode of 100 bytes, data, path and index
 * included, hardly any of them seen by the garbage collector.
 *
 *     number z ─┬─▶ ints[z >> 16][(z & 0xffff) * 8 + field]       block, links, acl, sequence, digest
 *               ├─▶ kinds[z >> 16][z & 0xffff]                    ZnodeKind
 *               ├─▶ paths[z >> 16][z & 0xffff]
 *               └─▶ block in the arena:   int length (−1 = null) │ data │ Stat as clients see it, 68 bytes
 *
 * A block is the body of the getData reply, and its last 68 bytes that of the exists reply: reading is copying.
 * Two fields differ from what is persisted. The wire's cversion is `sequence * 2 − numChildren`, where `sequence`, the
 * number of children ever created, is kept in the ints; and the owner of containers and TTL znodes is 0 on the wire.
 *
 * Siblings are a ring that is open in one direction: the first child's `previous` is the last child, the last child's
 * `next` is 0. A new child comes last. Numbers start at 1 (0 = none); a freed one is used again, and until then its
 * `next` links the list of free numbers.
 */
import { getInt, getLong, putInt, putLong, STAT_BYTES, StatOffset } from '@meerkat/protocol';
import { ByteArena, copyBytes } from './byte-arena.ts';
import { PathIndex, type PathSource } from './path-index.ts';
import type { ZnodeKind } from './znode-kind.ts';

/** A znode's number in the table; 0 = none, 1 = the root. Valid until the znode is deleted. */
export type ZnodeNumber = number;

export const NO_ZNODE: ZnodeNumber = 0;
export const ROOT: ZnodeNumber = 1;

const CHUNK_SHIFT = 16;
const CHUNK_ZNODES = 1 << CHUNK_SHIFT;
const CHUNK_MASK = CHUNK_ZNODES - 1;

const BLOCK = 0;
const PARENT = 1;
const FIRST_CHILD = 2;
const NEXT = 3;
const PREVIOUS = 4;
const ACL = 5;
const SEQUENCE = 6;
const DIGEST = 7;
const FIELDS_SHIFT = 3;

/** Bytes of a block around its data. */
const LENGTH_BYTES = 4;

export class ZnodeTable implements PathSource {
  readonly arena: ByteArena = new ByteArena();
  readonly index: PathIndex = new PathIndex(this);
  readonly #ints: Int32Array[] = [];
  readonly #kinds: Uint8Array[] = [];
  readonly #paths: string[][] = [];
  #freeHead: ZnodeNumber = NO_ZNODE;
  #end = 1;

  /** One more than the highest number ever used. */
  get end(): number {
    return this.#end;
  }

  /** Number of znodes. */
  get count(): number {
    return this.index.size;
  }

  find(path: string): ZnodeNumber {
    return path.length <= 1 ? (path === '/' || path === '' ? ROOT : NO_ZNODE) : this.index.get(path);
  }

  /**
   * Makes a znode that has a block for `data` and a stat of zero bytes except dataLength, and is nobody's child yet.
   * The path must not be there.
   */
  add(path: string, kind: ZnodeKind, data: Uint8Array | null): ZnodeNumber {
    let z = this.#freeHead;
    if (z !== NO_ZNODE) {
      this.#freeHead = this.nextSiblingOf(z);
    } else {
      z = this.#end++;
      if (z >> CHUNK_SHIFT >= this.#ints.length) this.#addChunk();
    }
    const chunk = z >> CHUNK_SHIFT;
    const slot = z & CHUNK_MASK;
    this.#kinds[chunk]![slot] = kind;
    this.#paths[chunk]![slot] = path;
    const ints = this.#ints[chunk]!;
    const at = slot << FIELDS_SHIFT;
    ints.fill(0, at, at + (1 << FIELDS_SHIFT));
    ints[at + BLOCK] = this.#makeBlock(data);
    this.index.add(path, z);
    return z;
  }

  /** Forgets a znode that has been unlinked from its parent. */
  remove(z: ZnodeNumber): void {
    const chunk = z >> CHUNK_SHIFT;
    const slot = z & CHUNK_MASK;
    this.index.delete(this.#paths[chunk]![slot]!);
    this.#paths[chunk]![slot] = '';
    const reference = this.#block(z);
    this.arena.free(reference, this.#blockBytes(reference));
    this.#setInt(z, PARENT, 0);
    this.#setInt(z, NEXT, this.#freeHead);
    this.#freeHead = z;
  }

  /** False for a free number. The root is its own parent, so that no znode in use has none. */
  isUsed(z: ZnodeNumber): boolean {
    return this.#int(z, PARENT) !== NO_ZNODE;
  }

  /* ------------------------------------------------------------------------------------------------ links ---- */

  pathOf(z: ZnodeNumber): string {
    return this.#paths[z >> CHUNK_SHIFT]![z & CHUNK_MASK]!;
  }

  kindOf(z: ZnodeNumber): ZnodeKind {
    return this.#kinds[z >> CHUNK_SHIFT]![z & CHUNK_MASK]! as ZnodeKind;
  }

  setKind(z: ZnodeNumber, kind: ZnodeKind): void {
    this.#kinds[z >> CHUNK_SHIFT]![z & CHUNK_MASK] = kind;
  }

  parentOf(z: ZnodeNumber): ZnodeNumber {
    return this.#int(z, PARENT);
  }

  firstChildOf(z: ZnodeNumber): ZnodeNumber {
    return this.#int(z, FIRST_CHILD);
  }

  nextSiblingOf(z: ZnodeNumber): ZnodeNumber {
    return this.#int(z, NEXT);
  }

  /**
   * Walks a subtree, every znode before its children: `top` itself, then what this gives, until NO_ZNODE.
   * The tree must not change on the way.
   */
  nextInSubtree(z: ZnodeNumber, top: ZnodeNumber): ZnodeNumber {
    const child = this.firstChildOf(z);
    if (child !== NO_ZNODE) return child;
    for (let at = z; at !== top; at = this.parentOf(at)) {
      const next = this.nextSiblingOf(at);
      if (next !== NO_ZNODE) return next;
    }
    return NO_ZNODE;
  }

  /** Makes `z` the last child of `parent` and counts it there. */
  link(parent: ZnodeNumber, z: ZnodeNumber): void {
    this.#setInt(z, PARENT, parent);
    if (z === ROOT) return;
    const first = this.firstChildOf(parent);
    if (first === NO_ZNODE) {
      this.#setInt(parent, FIRST_CHILD, z);
      this.#setInt(z, PREVIOUS, z);
    } else {
      const last = this.#int(first, PREVIOUS);
      this.#setInt(last, NEXT, z);
      this.#setInt(z, PREVIOUS, last);
      this.#setInt(first, PREVIOUS, z);
    }
    this.#setNumChildren(parent, this.childCountOf(parent) + 1);
  }

  /** Takes `z` out of its parent's children and counts it no more. */
  unlink(z: ZnodeNumber): void {
    const parent = this.parentOf(z);
    const first = this.firstChildOf(parent);
    const next = this.nextSiblingOf(z);
    const previous = this.#int(z, PREVIOUS);
    if (z === first) this.#setInt(parent, FIRST_CHILD, next);
    else this.#setInt(previous, NEXT, next);
    if (next !== NO_ZNODE) this.#setInt(next, PREVIOUS, previous);
    else if (z !== first) this.#setInt(first, PREVIOUS, previous);
    this.#setNumChildren(parent, this.childCountOf(parent) - 1);
  }

  aclOf(z: ZnodeNumber): number {
    return this.#int(z, ACL);
  }

  setAcl(z: ZnodeNumber, aclId: number): void {
    this.#setInt(z, ACL, aclId);
  }

  /** Unsigned 32 bits. */
  digestOf(z: ZnodeNumber): number {
    return this.#int(z, DIGEST) >>> 0;
  }

  setDigest(z: ZnodeNumber, digest: number): void {
    this.#setInt(z, DIGEST, digest);
  }

  /** The persisted cversion, 0 … 2**32 − 1: the number of children ever created. */
  sequenceOf(z: ZnodeNumber): number {
    return this.#int(z, SEQUENCE) >>> 0;
  }

  setSequence(z: ZnodeNumber, sequence: number): void {
    this.#setInt(z, SEQUENCE, sequence);
    this.#setNumChildren(z, this.childCountOf(z));
  }

  /* ------------------------------------------------------------------------------------------------ block ---- */

  /** The page in which the block of `z` lies, valid until the next change; the offsets below are into it. */
  pageOf(z: ZnodeNumber): Uint8Array {
    return this.arena.page(this.#block(z));
  }

  blockStartOf(z: ZnodeNumber): number {
    return this.arena.offset(this.#block(z));
  }

  /** Where the data begins; its length is `dataLengthOf`. */
  dataStartOf(z: ZnodeNumber): number {
    return this.blockStartOf(z) + LENGTH_BYTES;
  }

  /** Where the 68 bytes of the stat begin; they end the block. */
  statStartOf(z: ZnodeNumber): number {
    const reference = this.#block(z);
    const start = this.arena.offset(reference);
    const length = getInt(this.arena.page(reference), start);
    return length > 0 ? start + LENGTH_BYTES + length : start + LENGTH_BYTES;
  }

  /** −1 when the data is null. */
  dataLengthOf(z: ZnodeNumber): number {
    const reference = this.#block(z);
    return getInt(this.arena.page(reference), this.arena.offset(reference));
  }

  /** Replaces the data; the rest of the stat stays. */
  setData(z: ZnodeNumber, data: Uint8Array | null): void {
    const old = this.#block(z);
    if (data !== null && data.length === getInt(this.arena.page(old), this.arena.offset(old))) {
      // As long as before, the usual case: everything behind the data stays where it is.
      copyBytes(data, 0, data.length, this.arena.page(old), this.arena.offset(old) + LENGTH_BYTES);
      return;
    }
    const oldBytes = this.#blockBytes(old);
    const bytes = LENGTH_BYTES + (data === null ? 0 : data.length) + STAT_BYTES;
    const oldPage = this.arena.page(old);
    const oldStat = this.arena.offset(old) + oldBytes - STAT_BYTES;
    // Taken out first: the new data may lie over it.
    for (let i = 0; i < STAT_BYTES; i++) STAT[i] = oldPage[oldStat + i]!;
    let reference = old;
    if (!this.arena.isSameRoom(oldBytes, bytes)) {
      reference = this.arena.allocate(bytes);
      this.#setInt(z, BLOCK, reference);
    }
    this.#fillBlock(reference, data, STAT);
    // Freed only now: `data` may be a view of the old block.
    if (reference !== old) this.arena.free(old, oldBytes);
  }

  getStatInt(z: ZnodeNumber, offset: number): number {
    return getInt(this.pageOf(z), this.statStartOf(z) + offset);
  }

  setStatInt(z: ZnodeNumber, offset: number, value: number): void {
    putInt(this.pageOf(z), this.statStartOf(z) + offset, value);
  }

  getStatLong(z: ZnodeNumber, offset: number): number {
    return getLong(this.pageOf(z), this.statStartOf(z) + offset);
  }

  setStatLong(z: ZnodeNumber, offset: number, value: number): void {
    putLong(this.pageOf(z), this.statStartOf(z) + offset, value);
  }

  childCountOf(z: ZnodeNumber): number {
    return this.getStatInt(z, StatOffset.numChildren);
  }

  /** numChildren, and cversion as clients see it, which wraps like a Java int. */
  #setNumChildren(z: ZnodeNumber, count: number): void {
    const page = this.pageOf(z);
    const stat = this.statStartOf(z);
    putInt(page, stat + StatOffset.numChildren, count);
    putInt(page, stat + StatOffset.cversion, ((this.#int(z, SEQUENCE) << 1) - count) | 0);
  }

  #makeBlock(data: Uint8Array | null): number {
    const reference = this.arena.allocate(LENGTH_BYTES + (data === null ? 0 : data.length) + STAT_BYTES);
    this.#fillBlock(reference, data, ZERO_STAT);
    return reference;
  }

  #fillBlock(reference: number, data: Uint8Array | null, stat: Uint8Array): void {
    const page = this.arena.page(reference);
    let at = this.arena.offset(reference);
    const length = data === null ? -1 : data.length;
    if (data !== null) copyBytes(data, 0, length, page, at + LENGTH_BYTES);
    putInt(page, at, length);
    at += LENGTH_BYTES + Math.max(length, 0);
    for (let i = 0; i < STAT_BYTES; i++) page[at + i] = stat[i]!;
    putInt(page, at + StatOffset.dataLength, Math.max(length, 0));
  }

  #block(z: ZnodeNumber): number {
    return this.#int(z, BLOCK) >>> 0;
  }

  #blockBytes(reference: number): number {
    const length = getInt(this.arena.page(reference), this.arena.offset(reference));
    return LENGTH_BYTES + Math.max(length, 0) + STAT_BYTES;
  }

  #int(z: ZnodeNumber, field: number): number {
    return this.#ints[z >> CHUNK_SHIFT]![((z & CHUNK_MASK) << FIELDS_SHIFT) | field]!;
  }

  #setInt(z: ZnodeNumber, field: number, value: number): void {
    this.#ints[z >> CHUNK_SHIFT]![((z & CHUNK_MASK) << FIELDS_SHIFT) | field] = value;
  }

  #addChunk(): void {
    this.#ints.push(new Int32Array(CHUNK_ZNODES << FIELDS_SHIFT));
    this.#kinds.push(new Uint8Array(CHUNK_ZNODES));
    this.#paths.push(new Array<string>(CHUNK_ZNODES).fill(''));
  }
}

const STAT = new Uint8Array(STAT_BYTES);
const ZERO_STAT = new Uint8Array(STAT_BYTES);
