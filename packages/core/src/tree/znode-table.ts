/**
 * The znodes, as numbers into tables instead of objects: about 270 bytes for a znode of 100 bytes with its path and its
 * index entry, invisible to the garbage collector.
 *
 *     number z ─▶ a row of ints (`ZnodeRows`): block, links, acl, sequence, digest
 *                   │
 *                   └▶ block in the arena (`znode-block.ts`): path, data and stat, as in the replies
 *
 * The end of a block is the body of the getData reply, and its last 68 bytes that of the exists reply: a read is a
 * copy. Two fields differ from what is persisted. The wire's cversion is `sequence * 2 − numChildren`, where
 * `sequence`, the number of children ever created, is stored in the ints; and the owner of containers and TTL znodes is
 * 0 on the wire.
 */
import { getInt, getLong, type JuteWriter, type PlainCreate, putInt, putLong, StatOffset } from '@meerkat/protocol';
import { replaceData } from './block-data.ts';
import { ByteArena, copyBytes } from './byte-arena.ts';
import { isDigested } from './digest.ts';
import { hashOf, hashOfBytes, PathIndex, type PathSource } from './path-index.ts';
import {
  blockBytes,
  fillBlock,
  fillPersisted,
  fillPlain,
  fillPlainWithCrc,
  fillRecord,
  INFO_BYTES,
  IS_ASCII,
  IS_DIGESTED,
  KIND_MASK,
  LENGTH_BYTES,
  PATH_SHIFT,
  type PersistedRecord,
  type ZnodeRecord,
} from './znode-block.ts';
import type { ZnodeKind } from './znode-kind.ts';
import {
  ACL,
  BLOCK,
  DIGEST,
  FIRST_CHILD,
  NEXT,
  NO_ZNODE,
  PARENT,
  ROOT,
  SEQUENCE,
  type ZnodeNumber,
  ZnodeRows,
} from './znode-rows.ts';

export class ZnodeTable implements PathSource {
  readonly arena: ByteArena = new ByteArena();
  readonly #index: PathIndex = new PathIndex(this);
  readonly #rows: ZnodeRows = new ZnodeRows();
  /** The last path that was not found, and its hash: it is looked up before it is added. */
  #path = '';
  #hash: number = hashOf('');
  #last: ZnodeNumber = NO_ZNODE;

  /** One more than the highest number ever used. */
  get end(): number {
    return this.#rows.end;
  }

  /** The znode that `addPlain` added last. */
  get last(): ZnodeNumber {
    return this.#last;
  }

  /** Number of znodes. */
  get count(): number {
    return this.#index.size;
  }

  /** The znode of a path, NO_ZNODE for none; '' and '/' are the root. */
  find(path: string): ZnodeNumber {
    return this.findByHash(hashOf(path), path);
  }

  /** The same for a caller that already has the `hashOf` the path. */
  findByHash(hash: number, path: string): ZnodeNumber {
    if (path.length <= 1) return path === '/' || path === '' ? ROOT : NO_ZNODE;
    const z = this.#index.get(hash, path);
    if (z === NO_ZNODE) {
      this.#path = path;
      this.#hash = hash;
    }
    return z;
  }

  /** The same for a caller that found it at `z` earlier; the number may have been reused since. */
  findAt(z: ZnodeNumber, path: string): ZnodeNumber {
    return z !== NO_ZNODE && this.isUsed(z) && this.hasPath(z, path) ? z : this.find(path);
  }

  /** The same for a path in ASCII of at least two bytes. */
  findBytes(bytes: Uint8Array, start: number, end: number): ZnodeNumber {
    return this.findBytesByHash(hashOfBytes(bytes, start, end), bytes, start, end);
  }

  /** The same for a caller that already has the `hashOfBytes`. */
  findBytesByHash(hash: number, bytes: Uint8Array, start: number, end: number): ZnodeNumber {
    return this.#index.getBytes(hash, bytes, start, end);
  }

  /** See `PathIndex.fetch`. */
  fetch(hashes: Int32Array, count: number): void {
    this.#index.fetch(hashes, count);
  }

  /**
   * Adds a znode with a block for `data` and a stat of zeros except dataLength, without a parent. The path must not
   * exist.
   */
  add(path: string, kind: ZnodeKind, data: Uint8Array | null): ZnodeNumber {
    const hash = path === this.#path ? this.#hash : hashOf(path);
    const length = path.length;
    if (length * 3 > pathScratch.length) pathScratch = new Uint8Array(length * 3);
    const bytes = pathScratch;
    for (let i = 0; i < length; i++) {
      const code = path.charCodeAt(i);
      if (code > 0x7f) {
        const written = ENCODER.encodeInto(path, bytes).written;
        return this.#add(hash, bytes, written, isDigested(path) ? IS_DIGESTED | kind : kind, data);
      }
      bytes[i] = code;
    }
    const flags = IS_ASCII | (isDigested(path) ? IS_DIGESTED : 0);
    return this.#add(hash, bytes, length, flags | kind, data);
  }

  /** The same for a path in ASCII with the hash `hash`, followed by its data as in a block. */
  addRecord(record: ZnodeRecord, hash: number, kind: ZnodeKind): ZnodeNumber {
    const { pathStart, pathEnd, dataEnd } = record;
    const z = this.#rows.allocate();
    const reference = this.arena.allocate(blockBytes(pathEnd - pathStart, dataEnd - pathEnd - LENGTH_BYTES));
    fillRecord(this.arena.page(reference), this.arena.offset(reference), record, kind);
    this.#rows.reset(z, reference);
    this.#index.add(hash, z);
    return z;
  }

  /**
   * Adds a persistent znode from its record in a snapshot, with its stat; `hash` is that of its path, which the digest
   * covers.
   */
  addPersisted(record: PersistedRecord, hash: number, sequence: number): ZnodeNumber {
    const { pathStart, pathEnd, dataEnd } = record;
    const z = this.#rows.allocate();
    const reference = this.arena.allocate(blockBytes(pathEnd - pathStart, dataEnd - pathEnd - LENGTH_BYTES));
    fillPersisted(this.arena.page(reference), this.arena.offset(reference), record);
    this.#rows.reset(z, reference);
    this.#rows.set(z, SEQUENCE, sequence);
    this.#index.add(hash, z);
    return z;
  }

  /**
   * Adds the znode of a create, with the stat that it gives it; `hash` is that of its path.
   *
   * @returns CRC-32 of path and data, for the digest; the znode is `last`
   */
  addPlain(create: PlainCreate, hash: number): number {
    const reference = this.#placePlain(create, hash);
    return fillPlainWithCrc(this.arena.page(reference), this.arena.offset(reference), create);
  }

  /** The same where the CRC is not needed. */
  addScanned(create: PlainCreate, hash: number): void {
    const reference = this.#placePlain(create, hash);
    fillPlain(this.arena.page(reference), this.arena.offset(reference), create);
  }

  #placePlain(create: PlainCreate, hash: number): number {
    const z = this.#rows.allocate();
    const reference = this.arena.allocate(blockBytes(create.pathEnd - create.pathStart, create.dataLength));
    this.#rows.reset(z, reference);
    this.#index.add(hash, z);
    this.#last = z;
    return reference;
  }

  #add(hash: number, path: Uint8Array, pathBytes: number, flags: number, data: Uint8Array | null): ZnodeNumber {
    const z = this.#rows.allocate();
    const reference = this.arena.allocate(blockBytes(pathBytes, data === null ? 0 : data.length));
    fillBlock(this.arena.page(reference), this.arena.offset(reference), path, pathBytes, flags, data);
    this.#rows.reset(z, reference);
    this.#index.add(hash, z);
    return z;
  }

  /** Removes a znode that has been unlinked from its parent. */
  remove(z: ZnodeNumber): void {
    const reference = this.#block(z);
    const page = this.arena.page(reference);
    const start = this.pathStartOf(z);
    const end = start + this.pathBytesOf(z);
    this.#index.delete(this.isAscii(z) ? hashOfBytes(page, start, end) : hashOf(this.pathOf(z)), z);
    this.arena.free(reference, blockBytes(end - start, this.dataLengthOf(z)));
    this.#rows.free(z);
  }

  /** False for a free number. The root is its own parent, so every znode in use has one. */
  isUsed(z: ZnodeNumber): boolean {
    return this.#rows.get(z, PARENT) !== NO_ZNODE;
  }

  /* ------------------------------------------------------------------------------------------ path and kind ---- */

  /** Creates a string, which costs some 200 ns; access to the bytes is free. */
  pathOf(z: ZnodeNumber): string {
    const start = this.pathStartOf(z);
    return DECODER.decode(this.pageOf(z).subarray(start, start + this.pathBytesOf(z)));
  }

  /** Where the bytes of the path begin; there are `pathBytesOf` of them. The root's is "/". */
  pathStartOf(z: ZnodeNumber): number {
    return this.arena.offset(this.#block(z)) + INFO_BYTES;
  }

  pathBytesOf(z: ZnodeNumber): number {
    return this.#info(z) >>> PATH_SHIFT;
  }

  /** UTF-16 code units, in which Apache counts the size of a tree. */
  pathCharsOf(z: ZnodeNumber): number {
    return this.isAscii(z) ? this.pathBytesOf(z) : this.pathOf(z).length;
  }

  isAscii(z: ZnodeNumber): boolean {
    return (this.#info(z) & IS_ASCII) !== 0;
  }

  /** False for the znodes below /zookeeper, which count as 0 in the digest. */
  isDigested(z: ZnodeNumber): boolean {
    return (this.#info(z) & IS_DIGESTED) !== 0;
  }

  hasPath(z: ZnodeNumber, path: string): boolean {
    return this.isPrefix(z, path, path.length);
  }

  /** True when the first `length` characters of `path` are the path of `z`. */
  isPrefix(z: ZnodeNumber, path: string, length: number): boolean {
    const reference = this.#block(z);
    const page = this.arena.page(reference);
    const at = this.arena.offset(reference);
    const info = getInt(page, at);
    if ((info & IS_ASCII) === 0) return this.pathOf(z) === path.slice(0, length);
    if (info >>> PATH_SHIFT !== length) return false;
    // From the end, where paths of one tree differ.
    for (let i = length - 1; i >= 0; i--) if (page[at + INFO_BYTES + i] !== path.charCodeAt(i)) return false;
    return true;
  }

  hasPathBytes(z: ZnodeNumber, bytes: Uint8Array, start: number, end: number): boolean {
    const reference = this.#block(z);
    const page = this.arena.page(reference);
    const at = this.arena.offset(reference);
    const length = end - start;
    if (getInt(page, at) >>> PATH_SHIFT !== length) return false;
    for (let i = length - 1; i >= 0; i--) if (page[at + INFO_BYTES + i] !== bytes[start + i]) return false;
    return true;
  }

  hasPathPrefix(z: ZnodeNumber, prefix: Uint8Array): boolean {
    if (prefix.length > this.pathBytesOf(z)) return false;
    const page = this.pageOf(z);
    const start = this.pathStartOf(z);
    for (let i = 0; i < prefix.length; i++) if (page[start + i] !== prefix[i]) return false;
    return true;
  }

  /** Writes the path without its first `skippedBytes`, as a ustring. */
  writePath(z: ZnodeNumber, skippedBytes: number, writer: JuteWriter): void {
    const reference = this.#block(z);
    const page = this.arena.page(reference);
    const at = this.arena.offset(reference);
    const length = (getInt(page, at) >>> PATH_SHIFT) - skippedBytes;
    const start = at + INFO_BYTES + skippedBytes;
    writer.int(length);
    writer.ensure(length);
    copyBytes(page, start, start + length, writer.bytes, writer.position);
    writer.position += length;
  }

  kindOf(z: ZnodeNumber): ZnodeKind {
    return (this.#info(z) & KIND_MASK) as ZnodeKind;
  }

  /* ------------------------------------------------------------------------------------------------ links ---- */

  /** The root is its own parent. */
  parentOf(z: ZnodeNumber): ZnodeNumber {
    return this.#rows.get(z, PARENT);
  }

  firstChildOf(z: ZnodeNumber): ZnodeNumber {
    return this.#rows.get(z, FIRST_CHILD);
  }

  nextSiblingOf(z: ZnodeNumber): ZnodeNumber {
    return this.#rows.get(z, NEXT);
  }

  /** Makes `z` the last child of `parent` and counts it there. */
  link(parent: ZnodeNumber, z: ZnodeNumber): void {
    this.#rows.link(parent, z);
    if (z === ROOT) return;
    this.#changeNumChildren(parent, 1);
  }

  /** The same without the count: `countChildren` has to follow before it is read. */
  linkUncounted(parent: ZnodeNumber, z: ZnodeNumber): void {
    this.#rows.link(parent, z);
  }

  countChildren(parent: ZnodeNumber, count: number): void {
    this.#changeNumChildren(parent, count);
  }

  /** Removes `z` from its parent's children and decrements their count. */
  unlink(z: ZnodeNumber): void {
    const parent = this.parentOf(z);
    this.#rows.unlink(z);
    this.#changeNumChildren(parent, -1);
  }

  /** Id of the ACL in the table of ACLs. */
  aclOf(z: ZnodeNumber): number {
    return this.#rows.get(z, ACL);
  }

  setAcl(z: ZnodeNumber, aclId: number): void {
    this.#rows.set(z, ACL, aclId);
  }

  /** Unsigned 32 bits; 0 below /zookeeper and where digests are off. */
  digestOf(z: ZnodeNumber): number {
    return this.#rows.get(z, DIGEST) >>> 0;
  }

  setDigest(z: ZnodeNumber, digest: number): void {
    this.#rows.set(z, DIGEST, digest);
  }

  /** The persisted cversion, 0 … 2**32 − 1: the number of children ever created. */
  sequenceOf(z: ZnodeNumber): number {
    return this.#rows.get(z, SEQUENCE) >>> 0;
  }

  setSequence(z: ZnodeNumber, sequence: number): void {
    this.setSequenceAt(z, sequence, this.pageOf(z), this.statStartOf(z));
  }

  /** The same for a caller that already has the page and the start of the stat. */
  setSequenceAt(z: ZnodeNumber, sequence: number, page: Uint8Array, stat: number): void {
    this.#rows.set(z, SEQUENCE, sequence);
    putInt(page, stat + StatOffset.cversion, ((sequence << 1) - getInt(page, stat + StatOffset.numChildren)) | 0);
  }

  /* ------------------------------------------------------------------------------------------------ block ---- */

  /** The page of `z`'s block, valid until the next change; all the starts are offsets into it. */
  pageOf(z: ZnodeNumber): Uint8Array {
    return this.arena.page(this.#block(z));
  }

  /** Where the length of the data begins: the body of a getData reply, up to the stat's end. */
  replyStartOf(z: ZnodeNumber): number {
    const reference = this.#block(z);
    const at = this.arena.offset(reference);
    return at + INFO_BYTES + (getInt(this.arena.page(reference), at) >>> PATH_SHIFT);
  }

  /** Where the data begins; its length is `dataLengthOf`. */
  dataStartOf(z: ZnodeNumber): number {
    return this.replyStartOf(z) + LENGTH_BYTES;
  }

  /** Where the 68 bytes of the stat begin; they end the block. */
  statStartOf(z: ZnodeNumber): number {
    const reference = this.#block(z);
    const page = this.arena.page(reference);
    const at = this.arena.offset(reference);
    const reply = at + INFO_BYTES + (getInt(page, at) >>> PATH_SHIFT);
    return reply + LENGTH_BYTES + Math.max(getInt(page, reply), 0);
  }

  /** −1 when the data is null. */
  dataLengthOf(z: ZnodeNumber): number {
    return getInt(this.pageOf(z), this.replyStartOf(z));
  }

  /** Replaces the data; the rest of the stat is kept. `data` may be a view of what it replaces. */
  setData(z: ZnodeNumber, data: Uint8Array | null): void {
    const block = this.#block(z);
    const replaced = replaceData(this.arena, block, data);
    if (replaced !== block) this.#rows.set(z, BLOCK, replaced);
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
  #changeNumChildren(z: ZnodeNumber, change: number): void {
    const page = this.pageOf(z);
    const stat = this.statStartOf(z);
    const count = getInt(page, stat + StatOffset.numChildren) + change;
    putInt(page, stat + StatOffset.numChildren, count);
    putInt(page, stat + StatOffset.cversion, ((this.#rows.get(z, SEQUENCE) << 1) - count) | 0);
  }

  #block(z: ZnodeNumber): number {
    return this.#rows.get(z, BLOCK) >>> 0;
  }

  #info(z: ZnodeNumber): number {
    const reference = this.#block(z);
    return getInt(this.arena.page(reference), this.arena.offset(reference));
  }
}

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });
let pathScratch = new Uint8Array(3 * 1024);
