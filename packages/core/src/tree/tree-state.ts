/**
 * A tree's znodes together with everything derived from them: digests, references to ACLs, ephemerals of sessions,
 * containers, TTLs, sizes. Each method keeps all of it consistent; the meaning of a txn is implemented elsewhere.
 */
import {
  getInt,
  getLong,
  getLongBig,
  PERSISTED_STAT_BYTES,
  type PersistedStat,
  type PlainCreate,
  putInt,
  putLong,
  putLongBig,
  READ_ACL,
  StatOffset,
} from '@meerkat/protocol';
import { AclTable, OPEN_ACL_ID } from './acl-table.ts';
import { crc32 } from './crc32.ts';
import {
  DIGESTED_STAT_BYTES,
  DigestSum,
  digestAfterAversion,
  digestAfterCversion,
  digestAfterPzxid,
  digestOfCreated,
  UNKNOWN_DIGEST,
} from './digest.ts';
import { Ephemerals } from './ephemerals.ts';
import { PersistedOffset } from './persisted-stat.ts';
import type { TreeObserver } from './tree-observer.ts';
import { LENGTH_BYTES, type PersistedRecord, type ZnodeRecord } from './znode-block.ts';
import { CONTAINER_OWNER_HIGH, TTL_OWNER_HIGH, ZnodeKind } from './znode-kind.ts';
import { NO_ZNODE, ROOT, type ZnodeNumber } from './znode-rows.ts';
import { ZnodeTable } from './znode-table.ts';

const EMPTY = new Uint8Array(0);
const SLASH = 0x2f;

/** A snapshot that is being written. */
export interface OpenSnapshot {
  /** The znode is about to be deleted by a txn that does not list it. */
  keep(z: ZnodeNumber): void;
}

export class TreeState {
  readonly table: ZnodeTable = new ZnodeTable();
  readonly acls: AclTable = new AclTable();
  readonly ephemerals: Ephemerals = new Ephemerals();
  readonly containers: Set<ZnodeNumber> = new Set();
  /** Time to live in milliseconds of each TTL znode. */
  readonly ttls: Map<ZnodeNumber, number> = new Map();
  /** Persisted owners of TTL znodes that only version 3.5.3 writes. */
  readonly owners353: Map<ZnodeNumber, bigint> = new Map();
  /** Reads that span several turns. */
  readonly observers: Set<TreeObserver> = new Set();
  readonly digestSum: DigestSum = new DigestSum();
  readonly openSnapshots: Set<OpenSnapshot> = new Set();
  readonly digestEnabled: boolean;
  readonly extendedTypesEnabled: boolean;
  readonly emulate353TtlZnodes: boolean;
  /** UTF-16 code units of all paths plus bytes of all data. */
  #dataSize = 0;
  /** Parent of the last path looked up, the root for none; creates come in runs with the same parent. */
  #parent: ZnodeNumber = ROOT;
  /** The znode whose path was last asked for as a parent's. */
  #named: ZnodeNumber = ROOT;
  #namedPath = '/';

  constructor(options: {
    readonly digestEnabled: boolean;
    readonly extendedTypesEnabled: boolean;
    readonly emulate353TtlZnodes?: boolean;
  }) {
    this.digestEnabled = options.digestEnabled;
    this.extendedTypesEnabled = options.extendedTypesEnabled;
    this.emulate353TtlZnodes = options.emulate353TtlZnodes ?? false;
    this.addSystemZnodes();
  }

  get dataSize(): number {
    return this.#dataSize;
  }

  /** Creates those of the four system znodes that are missing (docs/protocol/client.md, "Znodes"). */
  addSystemZnodes(): void {
    for (const path of ['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config']) {
      // The table assumes that the root exists; only the first call creates it.
      if (path === '/' ? this.table.count > 0 : this.table.find(path) !== NO_ZNODE) continue;
      const isConfig = path === '/zookeeper/config';
      const parent = path === '/' ? ROOT : this.findParent(path);
      const aclId = isConfig ? this.acls.intern(READ_ACL) : OPEN_ACL_ID;
      const z = this.add(path, parent, ZnodeKind.persistent, EMPTY, aclId);
      if (isConfig) this.table.setStatInt(z, StatOffset.aversion, -1);
      this.refreshDigest(z);
    }
  }

  /** The parent that a path names, whether or not it exists; NO_ZNODE also for the root and for an invalid path. */
  findParent(path: string): ZnodeNumber {
    const slash = path.lastIndexOf('/');
    if (slash <= 0) return slash === 0 && path.length > 1 ? ROOT : NO_ZNODE;
    if (this.#parent !== ROOT && this.table.isPrefix(this.#parent, path, slash)) return this.#parent;
    const parent = this.table.find(path.slice(0, slash));
    if (parent === NO_ZNODE || parent === ROOT) return NO_ZNODE;
    this.#parent = parent;
    return parent;
  }

  /** The same for a path in ASCII. */
  findParentBytes(bytes: Uint8Array, start: number, end: number): ZnodeNumber {
    let slash = end - 1;
    while (slash > start && bytes[slash] !== SLASH) slash--;
    if (bytes[slash] !== SLASH) return NO_ZNODE;
    if (slash === start) return end - start > 1 ? ROOT : NO_ZNODE;
    if (slash - start === 1) return NO_ZNODE;
    if (this.table.hasPathBytes(this.#parent, bytes, start, slash)) return this.#parent;
    const parent = this.table.findBytes(bytes, start, slash);
    if (parent !== NO_ZNODE) this.#parent = parent;
    return parent;
  }

  /** The path of a znode that is asked for repeatedly: the last string is cached. */
  parentPathOf(parent: ZnodeNumber): string {
    if (parent !== this.#named) {
      this.#named = parent;
      this.#namedPath = this.table.pathOf(parent);
    }
    return this.#namedPath;
  }

  /**
   * Adds a znode, whose path must not exist, as the last child of its parent. Its stat is zero except for dataLength:
   * the caller fills in the rest, sets the owner, and then calls `refreshDigest`.
   */
  add(path: string, parent: ZnodeNumber, kind: ZnodeKind, data: Uint8Array | null, aclId: number): ZnodeNumber {
    return this.#place(this.table.add(path, kind, data), parent, aclId);
  }

  /** The same for a path in ASCII, whose hash is `hash`. */
  addRecord(record: ZnodeRecord, hash: number, parent: ZnodeNumber, kind: ZnodeKind, aclId: number): ZnodeNumber {
    return this.#place(this.table.addRecord(record, hash, kind), parent, aclId);
  }

  /**
   * Adds the znode of a create outside /zookeeper; `hash` is that of its path, which must not exist.
   *
   * @param known its digest, when it has already been computed
   */
  addPlain(create: PlainCreate, hash: number, parent: ZnodeNumber, known: number = UNKNOWN_DIGEST): void {
    const table = this.table;
    let digest = known;
    if (digest !== UNKNOWN_DIGEST) table.addScanned(create, hash);
    else digest = digestOfCreated(table.addPlain(create, hash), create.zxid, create.time);
    const z = table.last;
    table.link(parent, z);
    table.setAcl(z, OPEN_ACL_ID);
    this.#dataSize += create.pathEnd - create.pathStart + Math.max(create.dataLength, 0);
    if (!this.digestEnabled) return;
    this.digestSum.add(digest);
    table.setDigest(z, digest);
  }

  /**
   * Adds a persistent znode from its record in a snapshot; `hash` is that of its path, which must not exist, `digest`
   * its own. The parent's child count is not updated: `table.countChildren` has to follow.
   */
  addPersisted(record: PersistedRecord, hash: number, parent: ZnodeNumber, aclId: number, digest: number): ZnodeNumber {
    const table = this.table;
    const { bytes, pathStart, dataEnd, end } = record;
    const sequence = getInt(bytes, end - PERSISTED_STAT_BYTES + PersistedOffset.cversion);
    const z = table.addPersisted(record, hash, sequence);
    table.linkUncounted(parent, z);
    table.setAcl(z, aclId);
    this.acls.addReference(aclId);
    // For null as for empty data nothing follows the length.
    this.#dataSize += dataEnd - pathStart - LENGTH_BYTES;
    if (this.digestEnabled) {
      this.digestSum.add(digest);
      table.setDigest(z, digest);
    }
    return z;
  }

  #place(z: ZnodeNumber, parent: ZnodeNumber, aclId: number): ZnodeNumber {
    const table = this.table;
    table.link(parent, z);
    table.setAcl(z, aclId);
    this.acls.addReference(aclId);
    if (table.kindOf(z) === ZnodeKind.container) this.containers.add(z);
    this.#dataSize += table.pathCharsOf(z) + Math.max(0, table.dataLengthOf(z));
    return z;
  }

  /** A txn is about to change or create the znode at a path. */
  announce(path: string): void {
    if (this.observers.size > 0) for (const observer of this.observers) observer.onChanging(path);
  }

  /** The stat of a znode that was just created by a txn. */
  setCreatedStat(z: ZnodeNumber, zxid: number, time: number): void {
    const page = this.table.pageOf(z);
    const stat = this.table.statStartOf(z);
    putLong(page, stat + StatOffset.czxid, zxid);
    putLong(page, stat + StatOffset.mzxid, zxid);
    putLong(page, stat + StatOffset.ctime, time);
    putLong(page, stat + StatOffset.mtime, time);
    putLong(page, stat + StatOffset.pzxid, zxid);
  }

  /** Makes a session the owner of a znode of kind ephemeral. */
  setSession(z: ZnodeNumber, sessionId: bigint): void {
    putLongBig(this.table.pageOf(z), this.table.statStartOf(z) + StatOffset.ephemeralOwner, sessionId);
    this.ephemerals.add(sessionId, z);
  }

  /** Owner of an ephemeral; 0n of any other. */
  sessionOf(z: ZnodeNumber): bigint {
    return getLongBig(this.table.pageOf(z), this.table.statStartOf(z) + StatOffset.ephemeralOwner);
  }

  /** Removes a znode and all its descendants; only a log's replay removes one that has any. */
  remove(z: ZnodeNumber): void {
    const table = this.table;
    for (let leaf = z; ; ) {
      const child = table.firstChildOf(leaf);
      if (child !== NO_ZNODE) {
        leaf = child;
        continue;
      }
      const parent = table.parentOf(leaf);
      this.#removeLeaf(leaf);
      if (leaf === z) return;
      leaf = parent;
    }
  }

  /** @returns by how many bytes the data has grown; null counts as 0 */
  replaceData(z: ZnodeNumber, data: Uint8Array | null): number {
    const table = this.table;
    const bytesDelta = (data === null ? 0 : data.length) - Math.max(0, table.dataLengthOf(z));
    this.#dataSize += bytesDelta;
    table.setData(z, data);
    return bytesDelta;
  }

  /** The stat of a znode whose data was just changed by a txn. */
  setWrittenStat(z: ZnodeNumber, zxid: number, time: number, version: number): void {
    const page = this.table.pageOf(z);
    const stat = this.table.statStartOf(z);
    putLong(page, stat + StatOffset.mzxid, zxid);
    putLong(page, stat + StatOffset.mtime, time);
    putInt(page, stat + StatOffset.version, version);
  }

  replaceAcl(z: ZnodeNumber, aclId: number): void {
    this.acls.addReference(aclId);
    this.acls.release(this.table.aclOf(z));
    this.table.setAcl(z, aclId);
  }

  setAversion(z: ZnodeNumber, aversion: number): void {
    if (this.#isDigested(z)) {
      const old = this.table.getStatInt(z, StatOffset.aversion);
      this.#setDigest(z, digestAfterAversion(this.table.digestOf(z), old, aversion));
    }
    this.table.setStatInt(z, StatOffset.aversion, aversion);
  }

  /** Raises the pzxid; a lower one is ignored. */
  raisePzxid(z: ZnodeNumber, zxid: number): void {
    const old = this.table.getStatLong(z, StatOffset.pzxid);
    if (zxid <= old) return;
    if (this.#isDigested(z)) this.#setDigest(z, digestAfterPzxid(this.table.digestOf(z), old, zxid));
    this.table.setStatLong(z, StatOffset.pzxid, zxid);
  }

  /** The effect of a create on its parent: the number of children ever created, and the pzxid unless that is higher. */
  countCreated(z: ZnodeNumber, sequence: number, zxid: number): void {
    const table = this.table;
    const page = table.pageOf(z);
    const stat = table.statStartOf(z);
    const pzxidAt = stat + StatOffset.pzxid;
    const oldPzxid = getLong(page, pzxidAt);
    const pzxid = Math.max(oldPzxid, zxid);
    if (this.#isDigested(z)) {
      const digest = digestAfterCversion(table.digestOf(z), table.sequenceOf(z), sequence);
      this.#setDigest(z, digestAfterPzxid(digest, oldPzxid, pzxid));
    }
    putLong(page, pzxidAt, pzxid);
    table.setSequenceAt(z, sequence, page, stat);
  }

  /**
   * Updates a znode's digest after something that it covers has changed.
   *
   * @param known the digest, when it was already computed from the same state; otherwise it is computed here
   */
  refreshDigest(z: ZnodeNumber, known: number = UNKNOWN_DIGEST): void {
    if (this.#isDigested(z)) this.#setDigest(z, known === UNKNOWN_DIGEST ? this.#computeDigest(z) : known);
  }

  persistedStatOf(z: ZnodeNumber): PersistedStat {
    const table = this.table;
    this.putPersistedOwner(z, SCRATCH, 0);
    return {
      czxid: table.getStatLong(z, StatOffset.czxid),
      mzxid: table.getStatLong(z, StatOffset.mzxid),
      ctime: table.getStatLong(z, StatOffset.ctime),
      mtime: table.getStatLong(z, StatOffset.mtime),
      version: table.getStatInt(z, StatOffset.version),
      cversion: table.sequenceOf(z) | 0,
      aversion: table.getStatInt(z, StatOffset.aversion),
      ephemeralOwner: getLongBig(SCRATCH, 0),
      pzxid: table.getStatLong(z, StatOffset.pzxid),
    };
  }

  /** Writes the eight bytes of the persisted owner, which also encodes the kind. */
  putPersistedOwner(z: ZnodeNumber, bytes: Uint8Array, at: number): void {
    let high = 0;
    let low = 0;
    switch (this.table.kindOf(z)) {
      case ZnodeKind.persistent:
        break;
      case ZnodeKind.container:
        high = CONTAINER_OWNER_HIGH;
        break;
      case ZnodeKind.ttl: {
        const owner353 = this.owners353.get(z);
        if (owner353 !== undefined) {
          putLongBig(bytes, at, owner353);
          return;
        }
        const ttl = this.ttls.get(z)!;
        high = TTL_OWNER_HIGH | Math.floor(ttl / 0x100000000);
        low = ttl >>> 0;
        break;
      }
      case ZnodeKind.ephemeral: {
        const page = this.table.pageOf(z);
        const owner = this.table.statStartOf(z) + StatOffset.ephemeralOwner;
        high = getInt(page, owner);
        low = getInt(page, owner + 4);
        break;
      }
    }
    putInt(bytes, at, high);
    putInt(bytes, at + 4, low);
  }

  #removeLeaf(z: ZnodeNumber): void {
    const table = this.table;
    if (this.observers.size > 0) for (const observer of this.observers) observer.onRemoving(z);
    if (this.digestEnabled) this.digestSum.subtract(table.digestOf(z));
    switch (table.kindOf(z)) {
      case ZnodeKind.persistent:
        break;
      case ZnodeKind.ephemeral:
        this.ephemerals.delete(this.sessionOf(z), z);
        break;
      case ZnodeKind.container:
        this.containers.delete(z);
        break;
      case ZnodeKind.ttl:
        this.ttls.delete(z);
        this.owners353.delete(z);
        break;
    }
    if (z === this.#parent) this.#parent = ROOT;
    if (z === this.#named) {
      this.#named = ROOT;
      this.#namedPath = '/';
    }
    this.acls.release(table.aclOf(z));
    this.#dataSize -= table.pathCharsOf(z) + Math.max(0, table.dataLengthOf(z));
    table.unlink(z);
    table.remove(z);
  }

  #isDigested(z: ZnodeNumber): boolean {
    return this.digestEnabled && this.table.isDigested(z);
  }

  #setDigest(z: ZnodeNumber, digest: number): void {
    this.digestSum.subtract(this.table.digestOf(z));
    this.digestSum.add(digest);
    this.table.setDigest(z, digest);
  }

  #computeDigest(z: ZnodeNumber): number {
    const table = this.table;
    const page = table.pageOf(z);
    const data = table.dataStartOf(z);
    const stat = table.statStartOf(z);
    const bytes = SCRATCH;
    // czxid, mzxid; pzxid; ctime, mtime, version; the persisted cversion; aversion; the persisted owner.
    for (let i = 0; i < 16; i++) bytes[i] = page[stat + i]!;
    for (let i = 0; i < 8; i++) bytes[16 + i] = page[stat + StatOffset.pzxid + i]!;
    for (let i = 16; i < 36; i++) bytes[8 + i] = page[stat + i]!;
    putInt(bytes, 44, table.sequenceOf(z));
    for (let i = 40; i < 52; i++) bytes[8 + i] = page[stat + i]!;
    if (table.kindOf(z) > ZnodeKind.ephemeral) this.putPersistedOwner(z, bytes, 52);
    const pathStart = table.pathStartOf(z);
    const path = z === ROOT ? 0 : crc32(0, page, pathStart, pathStart + table.pathBytesOf(z));
    return crc32(crc32(path, page, data, stat), bytes, 0, DIGESTED_STAT_BYTES);
  }
}

const SCRATCH = new Uint8Array(DIGESTED_STAT_BYTES);
