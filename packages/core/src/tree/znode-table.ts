/**
 * The znodes, as numbers into tables instead of objects: about 270 bytes for a znode of 100 bytes with its path and its
 * place in the index, none of them seen by the garbage collector.
 *
 *     number z ─▶ ints[z >> 16][(z & 0xffff) * 8 + field]       block, links, acl, sequence, digest
 *                   │
 *                   └▶ block in the arena:  int info │ path │ int length (−1 = null) │ data │ Stat, 68 bytes
 *                                                           └─────────── body of a getData reply ──────────┘
 *     info := pathBytes << 4 | isDigested << 3 | isAscii << 2 | ZnodeKind
 *
 * The end of a block is the body of the getData reply, and its last 68 bytes that of the exists reply: reading is
 * copying. Two fields differ from what is persisted. The wire's cversion is `sequence * 2 − numChildren`, where
 * `sequence`, the number of children ever created, is kept in the ints; and the owner of containers and TTL znodes is 0
 * on the wire.
 *
 * Siblings are a ring that is open in one direction: the first child's `previous` is the last child, the last child's
 * `next` is 0. A new child comes last. Numbers start at 1 (0 = none); a freed one is used again, and until then its
 * `next` links the list of free numbers.
 */
import {
  getInt,
  getLong,
  type JuteWriter,
  type PlainCreate,
  putInt,
  putLong,
  STAT_BYTES,
  StatOffset,
} from '@meerkat/protocol';
import { ByteArena, copyBytes } from './byte-arena.ts';
import { crc32OfCopy } from './crc32.ts';
import { isDigested, isDigestedBytes } from './digest.ts';
import { hashOf, hashOfBytes, PathIndex, type PathSource } from './path-index.ts';
import { ZnodeKind } from './znode-kind.ts';

/** A znode's number in the table; 0 = none, 1 = the root. Valid until the znode is deleted. */
export type ZnodeNumber = number;

export const NO_ZNODE: ZnodeNumber = 0;
export const ROOT: ZnodeNumber = 1;

const CHUNK_SHIFT = 16;
const CHUNK_ZNODES = 1 << CHUNK_SHIFT;
const CHUNK_MASK = CHUNK_ZNODES - 1;
/** What an empty tree has room for; a power of two. */
const ROOM_MIN = 256;

const BLOCK = 0;
const PARENT = 1;
const FIRST_CHILD = 2;
const NEXT = 3;
const PREVIOUS = 4;
const ACL = 5;
const SEQUENCE = 6;
const DIGEST = 7;
const FIELDS_SHIFT = 3;

/** Bytes of the info and of the length in a block. */
const INFO_BYTES = 4;
const LENGTH_BYTES = 4;

const KIND_MASK = 3;
const IS_ASCII = 4;
const IS_DIGESTED = 8;
const PATH_SHIFT = 4;

/** What may be read of the table by all who have a tree. */
export type Znodes = Pick<
  ZnodeTable,
  | 'aclOf'
  | 'childCountOf'
  | 'count'
  | 'dataLengthOf'
  | 'dataStartOf'
  | 'digestOf'
  | 'find'
  | 'findByHash'
  | 'firstChildOf'
  | 'getStatInt'
  | 'getStatLong'
  | 'kindOf'
  | 'nextInSubtree'
  | 'nextSiblingOf'
  | 'pageOf'
  | 'parentOf'
  | 'pathBytesOf'
  | 'pathOf'
  | 'replyStartOf'
  | 'sequenceOf'
  | 'statStartOf'
  | 'writePath'
>;

export class ZnodeTable implements PathSource {
  readonly arena: ByteArena = new ByteArena();
  readonly #index: PathIndex = new PathIndex(this);
  readonly #ints: Int32Array[] = [new Int32Array(ROOM_MIN << FIELDS_SHIFT)];
  /** Numbers for which there is room in the ints. */
  #room = ROOM_MIN;
  /** The path looked for last and its hash: it is looked for before it is added. */
  #path = '';
  #hash: number = hashOf('');
  #freeHead: ZnodeNumber = NO_ZNODE;
  #end = 1;
  #last: ZnodeNumber = NO_ZNODE;

  /** One more than the highest number ever used. */
  get end(): number {
    return this.#end;
  }

  /** The znode that `addPlain` made last. */
  get last(): ZnodeNumber {
    return this.#last;
  }

  /** Number of znodes. */
  get count(): number {
    return this.#index.size;
  }

  /** The znode of a path, NO_ZNODE when there is none; '' and '/' are the root. */
  find(path: string): ZnodeNumber {
    return this.findByHash(hashOf(path), path);
  }

  /** The same for who has the `hashOf` the path already. */
  findByHash(hash: number, path: string): ZnodeNumber {
    if (path.length <= 1) return path === '/' || path === '' ? ROOT : NO_ZNODE;
    this.#path = path;
    this.#hash = hash;
    return this.#index.get(hash, path);
  }

  /** The same for a path in ASCII of at least two bytes. */
  findBytes(bytes: Uint8Array, start: number, end: number): ZnodeNumber {
    return this.findBytesByHash(hashOfBytes(bytes, start, end), bytes, start, end);
  }

  /** The same for who has the `hashOfBytes` already. */
  findBytesByHash(hash: number, bytes: Uint8Array, start: number, end: number): ZnodeNumber {
    return this.#index.getBytes(hash, bytes, start, end);
  }

  /**
   * Makes a znode that has a block for `data` and a stat of zero bytes except dataLength, and is nobody's child yet.
   * The path must not be there.
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
        return this.#add(hash, bytes, 0, written, isDigested(path) ? IS_DIGESTED | kind : kind, data);
      }
      bytes[i] = code;
    }
    const flags = IS_ASCII | (isDigested(path) ? IS_DIGESTED : 0);
    return this.#add(hash, bytes, 0, length, flags | kind, data);
  }

  /** The same for a path in ASCII, bytes[start, end). */
  addBytes(bytes: Uint8Array, start: number, end: number, kind: ZnodeKind, data: Uint8Array | null): ZnodeNumber {
    const flags = IS_ASCII | (isDigestedBytes(bytes, start, end) ? IS_DIGESTED : 0);
    return this.#add(hashOfBytes(bytes, start, end), bytes, start, end, flags | kind, data);
  }

  /**
   * Makes the znode of a create whose path has the hash `hash`, with the stat that the create gives it.
   *
   * Path, length and data stand in a row in its payload as they do in a block.
   *
   * @returns CRC-32 of path and data, for the digest; the znode is `last`
   */
  addPlain(create: PlainCreate, hash: number): number {
    const { bytes, pathStart, pathEnd, dataEnd, zxidAt, timeAt } = create;
    const pathBytes = pathEnd - pathStart;
    const dataLength = Math.max(create.dataLength, 0);
    const z = this.#newNumber();
    const reference = this.arena.allocate(blockBytes(pathBytes, dataLength));
    const page = this.arena.page(reference);
    const at = this.arena.offset(reference);
    const path = at + INFO_BYTES;
    const length = path + pathBytes;
    const stat = length + LENGTH_BYTES + dataLength;
    putInt(page, at, (pathBytes << PATH_SHIFT) | IS_ASCII | IS_DIGESTED | ZnodeKind.persistent);
    putInt(page, length, create.dataLength);
    const pathCrc = crc32OfCopy(0, bytes, pathStart, pathEnd, page, path);
    const crc = crc32OfCopy(pathCrc, bytes, pathEnd + LENGTH_BYTES, dataEnd, page, length + LENGTH_BYTES);
    for (let i = 0; i < 8; i++) {
      const byte = bytes[zxidAt + i]!;
      page[stat + StatOffset.czxid + i] = byte;
      page[stat + StatOffset.mzxid + i] = byte;
      page[stat + StatOffset.pzxid + i] = byte;
    }
    for (let i = 0; i < 8; i++) {
      const byte = bytes[timeAt + i]!;
      page[stat + StatOffset.ctime + i] = byte;
      page[stat + StatOffset.mtime + i] = byte;
    }
    for (let i = StatOffset.version; i < StatOffset.dataLength; i++) page[stat + i] = 0;
    putInt(page, stat + StatOffset.dataLength, dataLength);
    putInt(page, stat + StatOffset.numChildren, 0);
    this.#setRow(z, reference);
    this.#index.add(hash, z);
    this.#last = z;
    return crc;
  }

  #add(
    hash: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    flags: number,
    data: Uint8Array | null,
  ): ZnodeNumber {
    const z = this.#newNumber();
    const pathBytes = end - start;
    const reference = this.arena.allocate(blockBytes(pathBytes, data === null ? 0 : data.length));
    const page = this.arena.page(reference);
    const at = this.arena.offset(reference);
    putInt(page, at, (pathBytes << PATH_SHIFT) | flags);
    copyBytes(bytes, start, end, page, at + INFO_BYTES);
    fillReply(page, at + INFO_BYTES + pathBytes, data, ZERO_STAT);
    this.#setRow(z, reference);
    this.#index.add(hash, z);
    return z;
  }

  #newNumber(): ZnodeNumber {
    const z = this.#freeHead;
    if (z === NO_ZNODE) {
      if (this.#end === this.#room) this.#grow();
      return this.#end++;
    }
    this.#freeHead = this.nextSiblingOf(z);
    return z;
  }

  /** The first chunk grows as it fills: a tree of some znodes need not cost 2 MB. */
  #grow(): void {
    const isFirst = this.#room < CHUNK_ZNODES;
    const chunk = new Int32Array((isFirst ? 2 * this.#room : CHUNK_ZNODES) << FIELDS_SHIFT);
    if (isFirst) {
      chunk.set(this.#ints[0]!);
      this.#ints[0] = chunk;
    } else this.#ints.push(chunk);
    this.#room += isFirst ? this.#room : CHUNK_ZNODES;
  }

  #setRow(z: ZnodeNumber, reference: number): void {
    const ints = this.#ints[z >> CHUNK_SHIFT]!;
    const row = (z & CHUNK_MASK) << FIELDS_SHIFT;
    ints[row + BLOCK] = reference;
    for (let field = row + PARENT; field <= row + DIGEST; field++) ints[field] = 0;
  }

  /** Forgets a znode that has been unlinked from its parent. */
  remove(z: ZnodeNumber): void {
    const reference = this.#block(z);
    const page = this.arena.page(reference);
    const start = this.pathStartOf(z);
    const end = start + this.pathBytesOf(z);
    this.#index.delete(this.isAscii(z) ? hashOfBytes(page, start, end) : hashOf(this.pathOf(z)), z);
    this.arena.free(reference, blockBytes(end - start, this.dataLengthOf(z)));
    this.#setInt(z, PARENT, 0);
    this.#setInt(z, NEXT, this.#freeHead);
    this.#freeHead = z;
  }

  /** False for a free number. The root is its own parent, so that no znode in use has none. */
  isUsed(z: ZnodeNumber): boolean {
    return this.#int(z, PARENT) !== NO_ZNODE;
  }

  /* ------------------------------------------------------------------------------------------ path and kind ---- */

  /** Makes a string, which costs some 200 ns; the bytes are there for nothing. */
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

  /** UTF-16 code units, of which Apache counts the size of a tree. */
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
    // From the end: paths of one tree differ there.
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
    return child === NO_ZNODE ? this.nextBehindSubtree(z, top) : child;
  }

  /** The same, without what lies below `z`. */
  nextBehindSubtree(z: ZnodeNumber, top: ZnodeNumber): ZnodeNumber {
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
    this.#changeNumChildren(parent, 1);
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
    this.#changeNumChildren(parent, -1);
  }

  /** Id of the ACL in the table of ACLs. */
  aclOf(z: ZnodeNumber): number {
    return this.#int(z, ACL);
  }

  setAcl(z: ZnodeNumber, aclId: number): void {
    this.#setInt(z, ACL, aclId);
  }

  /** Unsigned 32 bits; 0 below /zookeeper and where digests are off. */
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
    this.#changeNumChildren(z, 0);
  }

  /* ------------------------------------------------------------------------------------------------ block ---- */

  /** The page in which the block of `z` lies, valid until the next change; all the starts are offsets into it. */
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

  /** Replaces the data; the rest of the stat stays. `data` may be a view of what it replaces. */
  setData(z: ZnodeNumber, data: Uint8Array | null): void {
    const old = this.#block(z);
    const oldPage = this.arena.page(old);
    const oldStart = this.arena.offset(old);
    const pathBytes = this.pathBytesOf(z);
    const replyAt = oldStart + INFO_BYTES + pathBytes;
    const oldLength = getInt(oldPage, replyAt);
    if (data !== null && data.length === oldLength) {
      // As most often: what stands before and behind stays.
      copyBytes(data, 0, oldLength, oldPage, replyAt + LENGTH_BYTES);
      return;
    }
    const oldBytes = blockBytes(pathBytes, oldLength);
    const bytes = blockBytes(pathBytes, data === null ? 0 : data.length);
    // Taken out first: the new data may lie over it.
    const oldStat = oldStart + oldBytes - STAT_BYTES;
    copyBytes(oldPage, oldStat, oldStat + STAT_BYTES, STAT, 0);
    if (this.arena.isSameRoom(oldBytes, bytes)) {
      fillReply(oldPage, replyAt, data, STAT);
      return;
    }
    const reference = this.arena.allocate(bytes);
    const page = this.arena.page(reference);
    const start = this.arena.offset(reference);
    copyBytes(oldPage, oldStart, oldStart + INFO_BYTES + pathBytes, page, start);
    fillReply(page, start + INFO_BYTES + pathBytes, data, STAT);
    this.#setInt(z, BLOCK, reference);
    this.arena.free(old, oldBytes);
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
    putInt(page, stat + StatOffset.cversion, ((this.#int(z, SEQUENCE) << 1) - count) | 0);
  }

  #block(z: ZnodeNumber): number {
    return this.#int(z, BLOCK) >>> 0;
  }

  #info(z: ZnodeNumber): number {
    const reference = this.#block(z);
    return getInt(this.arena.page(reference), this.arena.offset(reference));
  }

  #int(z: ZnodeNumber, field: number): number {
    return this.#ints[z >> CHUNK_SHIFT]![((z & CHUNK_MASK) << FIELDS_SHIFT) | field]!;
  }

  #setInt(z: ZnodeNumber, field: number, value: number): void {
    this.#ints[z >> CHUNK_SHIFT]![((z & CHUNK_MASK) << FIELDS_SHIFT) | field] = value;
  }
}

const STAT = new Uint8Array(STAT_BYTES);
const ZERO_STAT = new Uint8Array(STAT_BYTES);
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });
let pathScratch = new Uint8Array(3 * 1024);

/** Size of a block; `dataLength` −1 of null counts as 0. */
function blockBytes(pathBytes: number, dataLength: number): number {
  return INFO_BYTES + pathBytes + LENGTH_BYTES + Math.max(dataLength, 0) + STAT_BYTES;
}

function fillReply(page: Uint8Array, at: number, data: Uint8Array | null, stat: Uint8Array): void {
  const length = data === null ? -1 : data.length;
  if (data !== null) copyBytes(data, 0, length, page, at + LENGTH_BYTES);
  putInt(page, at, length);
  const start = at + LENGTH_BYTES + Math.max(length, 0);
  page.set(stat, start);
  putInt(page, start + StatOffset.dataLength, Math.max(length, 0));
}
