import { type Acl, Fifo, OPEN_ACL, type PersistedStat, type Zxid } from '@meerkat/protocol';
import type { DataTree } from '../tree/data-tree.ts';
import {
  type DigestSum,
  digestAfterAversion,
  digestAfterCversion,
  digestAfterPzxid,
  isDigested,
  znodeDigest,
} from '../tree/digest.ts';
import { hashOf } from '../tree/path-index.ts';
import { ZnodeKind } from '../tree/znode-kind.ts';
import { PendingIndex } from './pending-index.ts';

/** A znode as it will be once the proposals in flight are applied (ChangeRecord). */
export class PendingZnode implements PersistedStat {
  readonly path: string;
  /** `hashOf` the path. */
  readonly hash: number;
  /** The txn that makes it so. */
  zxid: Zxid;
  exists = true;
  kind: ZnodeKind = ZnodeKind.persistent;
  acl: readonly Acl[] = OPEN_ACL;
  childCount = 0;
  /** Bytes of data, for quotas. */
  dataLength = 0;
  czxid = 0;
  mzxid = 0;
  ctime = 0;
  mtime = 0;
  version = 0;
  cversion = 0;
  aversion = 0;
  ephemeralOwner = 0n;
  pzxid = 0;
  /** 0 when it does not exist, when digests are off, and below /zookeeper/. */
  digest = 0;
  /** The digest when it was found; what `put` takes off the tree's. */
  digestBefore = 0;
  /** Once put, it is the state that a proposal in flight made, and is changed no more. */
  isPut = false;

  constructor(path: string, hash: number, zxid: Zxid) {
    this.path = path;
    this.hash = hash;
    this.zxid = zxid;
  }

  copy(): PendingZnode {
    const copy = new PendingZnode(this.path, this.hash, this.zxid);
    copy.kind = this.kind;
    copy.acl = this.acl;
    copy.childCount = this.childCount;
    copy.dataLength = this.dataLength;
    copy.czxid = this.czxid;
    copy.mzxid = this.mzxid;
    copy.ctime = this.ctime;
    copy.mtime = this.mtime;
    copy.version = this.version;
    copy.cversion = this.cversion;
    copy.aversion = this.aversion;
    copy.ephemeralOwner = this.ephemeralOwner;
    copy.pzxid = this.pzxid;
    copy.digest = this.digest;
    copy.digestBefore = this.digest;
    return copy;
  }
}

/**
 * The tree as it will be: what *prepare* decides by.
 *
 * An overlay over the applied tree that holds the znodes changed by proposals in flight. It lets a request that is
 * queued behind others see their effects, so that sequence numbers are distinct and versions are right.
 */
export class PendingTree {
  readonly #tree: DataTree;
  readonly #digestEnabled: boolean;
  readonly #changed: PendingIndex = new PendingIndex();
  /** All that were put, in zxid order. */
  readonly #queue: Fifo<PendingZnode> = new Fifo();
  /** Digest of the tree as it will be. */
  #digest: DigestSum;
  /** While a multi is being prepared: its puts, and what stood in their places before. */
  readonly #multiPuts: PendingZnode[] = [];
  readonly #multiBefore: (PendingZnode | null)[] = [];
  #isInMulti = false;
  #digestBefore: DigestSum | null = null;
  #lastDigest = 0;

  constructor(tree: DataTree, digestEnabled: boolean) {
    this.#tree = tree;
    this.#digestEnabled = digestEnabled;
    this.#digest = tree.digestSum().copy();
  }

  /** The znode as it will be, or null when it will not exist. */
  find(path: string): PendingZnode | null {
    const key = path === '' ? '/' : path;
    const hash = hashOf(key);
    const changed = this.#changed.get(hash, key);
    if (changed !== null) return changed.exists ? changed : null;
    const znode = this.#tree.findByHash(hash, key);
    return znode === 0 ? null : this.#fromTree(key, hash, znode);
  }

  /** The znode to change for a txn: a found one that no proposal made is the caller's own, any other is copied. */
  edit(znode: PendingZnode, zxid: Zxid): PendingZnode {
    const edited = znode.isPut ? znode.copy() : znode;
    edited.zxid = zxid;
    return edited;
  }

  setPzxid(znode: PendingZnode, pzxid: Zxid): void {
    if (this.#isDigested(znode)) znode.digest = digestAfterPzxid(znode.digest, znode.pzxid, pzxid);
    znode.pzxid = pzxid;
  }

  setCversion(znode: PendingZnode, cversion: number): void {
    if (this.#isDigested(znode)) znode.digest = digestAfterCversion(znode.digest, znode.cversion, cversion);
    znode.cversion = cversion;
  }

  setAversion(znode: PendingZnode, aversion: number): void {
    if (this.#isDigested(znode)) znode.digest = digestAfterAversion(znode.digest, znode.aversion, aversion);
    znode.aversion = aversion;
  }

  /** Says what its data is, once every other field is as it will be. */
  setData(znode: PendingZnode, data: Uint8Array | null): void {
    znode.dataLength = data === null ? 0 : data.length;
    if (this.#digestEnabled) znode.digest = znodeDigest(znode.path, data, znode);
  }

  setDeleted(znode: PendingZnode): void {
    znode.exists = false;
    znode.digest = 0;
  }

  /** From here on requests see the znode like this. */
  put(znode: PendingZnode): void {
    znode.isPut = true;
    this.#digest.subtract(znode.digestBefore);
    this.#digest.add(znode.digest);
    if (this.#isInMulti) {
      this.#multiPuts.push(znode);
      this.#multiBefore.push(this.#changed.get(znode.hash, znode.path));
    }
    this.#changed.set(znode);
    this.#queue.push(znode);
    this.#lastDigest = znode.digest;
  }

  /** Digest of the znode that was put last. */
  get lastDigest(): number {
    return this.#lastDigest;
  }

  /** Digest of the tree after everything put so far, null when digests are off. */
  treeDigest(): bigint | null {
    return this.#digestEnabled ? this.#digest.toBigInt() : null;
  }

  /** From here on everything put can be taken back: all of a multi or nothing. */
  beginMulti(): void {
    this.#isInMulti = true;
    this.#digestBefore = this.#digest.copy();
  }

  endMulti(isKept: boolean): void {
    const puts = this.#multiPuts;
    if (!isKept) {
      for (let i = puts.length - 1; i >= 0; i--) {
        const before = this.#multiBefore[i]!;
        if (before === null) this.#changed.delete(puts[i]!);
        else this.#changed.set(before);
      }
      this.#queue.dropNewest(puts.length);
      if (this.#digestBefore !== null) this.#digest = this.#digestBefore;
    }
    puts.length = 0;
    this.#multiBefore.length = 0;
    this.#isInMulti = false;
    this.#digestBefore = null;
  }

  /** The tree now holds everything up to `zxid`: what the overlay said about it is no longer needed. */
  onApplied(zxid: Zxid): void {
    for (let oldest = this.#queue.peek(); oldest !== undefined && oldest.zxid <= zxid; oldest = this.#queue.peek()) {
      this.#queue.shift();
      this.#changed.delete(oldest);
    }
  }

  /** Paths of a session's ephemerals as they will be, in no order. */
  ephemeralsOf(sessionId: bigint): readonly string[] {
    const paths = new Set(this.#tree.ephemeralsOf(sessionId));
    for (const znode of this.#changed.values()) {
      if (!znode.exists) paths.delete(znode.path);
      else if (znode.kind === ZnodeKind.ephemeral && znode.ephemeralOwner === sessionId) paths.add(znode.path);
      else paths.delete(znode.path);
    }
    return [...paths];
  }

  #fromTree(path: string, hash: number, z: number): PendingZnode {
    const tree = this.#tree;
    const znode = new PendingZnode(path, hash, tree.lastZxid);
    znode.kind = tree.kindOf(z);
    znode.acl = tree.acls.get(tree.aclOf(z));
    tree.readStat(z, znode);
    if (znode.kind !== ZnodeKind.persistent) znode.ephemeralOwner = tree.persistedOwnerOf(z);
    znode.digest = tree.digestOf(z);
    znode.digestBefore = znode.digest;
    return znode;
  }

  #isDigested(znode: PendingZnode): boolean {
    return this.#digestEnabled && isDigested(znode.path);
  }
}
