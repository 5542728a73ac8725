import { Fifo, parentOf, type Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { DataTree, ZnodeNumber } from '../tree/data-tree.ts';
import {
  type DigestSum,
  digestAfterAversion,
  digestAfterCversion,
  digestAfterPzxid,
  isDigested,
  znodeDigest,
} from '../tree/digest.ts';
import { hashOf } from '../tree/path-index.ts';
import type { Prepared } from '../tree/prepared.ts';
import { ZnodeKind } from '../tree/znode-kind.ts';
import { NO_ZNODE } from '../tree/znode-rows.ts';
import { PendingIndex } from './pending-index.ts';
import { PendingMulti } from './pending-multi.ts';
import { PendingZnode } from './pending-znode.ts';

/**
 * The tree as it will be once all proposals in flight are applied; *prepare* checks requests against it.
 *
 * An overlay over the applied tree with the znodes that proposals in flight change. It lets a request see the effects
 * of the ones queued before it, so that sequence numbers are unique and versions are right.
 */
export class PendingTree {
  /** The applied tree. */
  readonly tree: DataTree;
  readonly #digestEnabled: boolean;
  readonly #changed: PendingIndex = new PendingIndex();
  /** All put znodes, in zxid order. */
  readonly #queue: Fifo<PendingZnode> = new Fifo();
  /** The ephemerals among them, by session. */
  readonly #ephemerals: Map<bigint, Fifo<PendingZnode>> = new Map();
  /** Zxids of closeSession txns in flight, by session: their ephemerals that are not in the overlay will not exist. */
  readonly #ending: Map<bigint, Zxid> = new Map();
  /** Digest of this tree. */
  #digest: DigestSum;
  readonly #multi: PendingMulti = new PendingMulti();
  #isInMulti = false;
  #digestBefore: DigestSum | null = null;
  #lastDigest = 0;
  #lastZnode: ZnodeNumber = NO_ZNODE;

  constructor(tree: DataTree, digestEnabled: boolean) {
    this.tree = tree;
    this.#digestEnabled = digestEnabled;
    this.#digest = tree.digestSum().copy();
  }

  /** @returns null when the znode will not exist */
  find(path: string): PendingZnode | null {
    const key = path === '' ? '/' : path;
    const hash = hashOf(key);
    const changed = this.#changed.get(hash, key);
    if (changed !== null) return changed.exists ? changed : null;
    const znode = this.tree.znodes.findByHash(hash, key);
    return znode === 0 || this.#isEndingWithSession(znode) ? null : this.#fromTree(key, hash, znode);
  }

  /**
   * Returns the object to change for a txn. A znode that was found in the applied tree, or that this same txn has put,
   * is changed in place: a multi of thousands of creates below one znode does not copy it each time. Others are copied.
   */
  edit(znode: PendingZnode, zxid: Zxid): PendingZnode {
    if (znode.isPut && znode.zxid === zxid) {
      znode.digestBefore = znode.digest;
      return znode;
    }
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

  /** Sets the data; call it after all other fields are set, because it computes the digest. */
  setData(znode: PendingZnode, data: Uint8Array | null): void {
    znode.dataLength = data === null ? 0 : data.length;
    if (this.#digestEnabled) znode.digest = znodeDigest(znode.path, data, znode);
  }

  setDeleted(znode: PendingZnode): void {
    znode.exists = false;
    znode.digest = 0;
  }

  /** Makes the change visible to the requests that follow. */
  put(znode: PendingZnode): void {
    this.#digest.subtract(znode.digestBefore);
    this.#digest.add(znode.digest);
    this.#lastDigest = znode.digest;
    this.#lastZnode = znode.znode;
    // Changed in place: already indexed and queued.
    if (znode.isPut) return;
    znode.isPut = true;
    const before = this.#changed.set(znode);
    if (this.#isInMulti) this.#multi.push(znode, before);
    this.#queue.push(znode);
    if (znode.kind === ZnodeKind.ephemeral) this.#pushEphemeral(znode);
  }

  /** The digest and number of the znode that was put last. */
  lastPrepared(): Prepared {
    return { digest: this.#lastDigest, znode: this.#lastZnode, parts: null };
  }

  /** Digest of the tree after everything put so far; null when digests are disabled. */
  treeDigest(): bigint | null {
    return this.#digestEnabled ? this.#digest.toBigInt() : null;
  }

  /** Starts a multi: `endMulti` can roll back everything that is put from now on. */
  beginMulti(): void {
    this.#isInMulti = true;
    this.#digestBefore = this.#digest.copy();
  }

  endMulti(isKept: boolean): void {
    const multi = this.#multi;
    if (!isKept) {
      for (let i = multi.count - 1; i >= 0; i--) {
        const put = multi.putAt(i);
        const before = multi.beforeAt(i);
        // A change that was applied since the multi began is in the tree and no longer belongs in the overlay.
        if (before === null || before.zxid <= this.tree.lastZxid) this.#changed.delete(put);
        else this.#changed.set(before);
        this.#dropEphemeral(put, 'newest');
      }
      this.#queue.dropNewest(multi.count);
      if (this.#digestBefore !== null) this.#digest = this.#digestBefore;
    }
    multi.clear();
    this.#isInMulti = false;
    this.#digestBefore = null;
  }

  /** The tree now contains everything up to `zxid`: drops it from the overlay. */
  onApplied(zxid: Zxid): void {
    for (let oldest = this.#queue.peek(); oldest !== undefined && oldest.zxid <= zxid; oldest = this.#queue.peek()) {
      this.#queue.shift();
      this.#changed.delete(oldest);
      this.#dropEphemeral(oldest, 'oldest');
    }
    if (this.#ending.size === 0) return;
    for (const [sessionId, end] of this.#ending) if (end <= zxid) this.#ending.delete(sessionId);
  }

  /* ------------------------------------------------------------------------------------ ends of sessions ---- */

  /** Paths of the ephemerals of a session that proposals in flight create, change or delete. */
  changedEphemeralsOf(sessionId: bigint): ReadonlySet<string> {
    const paths = new Set<string>();
    for (const { path } of this.#ephemerals.get(sessionId) ?? []) paths.add(path);
    return paths;
  }

  /** True while a closeSession of the session is in flight that deletes ephemerals of the applied tree. */
  isEnding(sessionId: bigint): boolean {
    return this.#ending.has(sessionId);
  }

  /** @returns false when the znode will not be an ephemeral of the session by then */
  deleteEphemeral(path: string, sessionId: bigint, zxid: Zxid): boolean {
    const znode = this.find(path);
    const parent = this.find(parentOf(path));
    if (znode === null || parent === null) return false;
    if (znode.kind !== ZnodeKind.ephemeral || znode.ephemeralOwner !== sessionId) return false;
    this.putDeleted(znode, parent, zxid);
    return true;
  }

  /** Subtracts the digest of a znode of the tree that will not exist. */
  forgetDigest(z: ZnodeNumber): void {
    this.#digest.subtract(this.tree.znodes.digestOf(z));
  }

  /**
   * Ends the session: ephemerals of the applied tree that no proposal in flight changes are hidden from now on, without
   * putting each one.
   *
   * @param lost the number of those ephemerals by parent
   */
  endSession(sessionId: bigint, zxid: Zxid, lost: ReadonlyMap<ZnodeNumber, number>): void {
    for (const [z, count] of lost) {
      const found = this.find(this.tree.znodes.pathOf(z));
      assert(found !== null, 'a znode with children stays');
      const parent = this.edit(found, zxid);
      parent.childCount -= count;
      this.setPzxid(parent, zxid);
      this.put(parent);
    }
    if (lost.size > 0) this.#ending.set(sessionId, zxid);
  }

  /** Deletes a znode without children. */
  putDeleted(znode: PendingZnode, parent: PendingZnode, zxid: Zxid): void {
    const nextParent = this.edit(parent, zxid);
    nextParent.childCount--;
    this.setPzxid(nextParent, zxid);
    this.put(nextParent);
    const deleted = this.edit(znode, zxid);
    this.setDeleted(deleted);
    this.put(deleted);
  }

  #isEndingWithSession(z: ZnodeNumber): boolean {
    if (this.#ending.size === 0 || this.tree.znodes.kindOf(z) !== ZnodeKind.ephemeral) return false;
    return this.#ending.has(this.tree.state.sessionOf(z));
  }

  #pushEphemeral(znode: PendingZnode): void {
    const ofSession = this.#ephemerals.get(znode.ephemeralOwner);
    if (ofSession !== undefined) {
      ofSession.push(znode);
      return;
    }
    const first = new Fifo<PendingZnode>();
    first.push(znode);
    this.#ephemerals.set(znode.ephemeralOwner, first);
  }

  /** @param end the end of the queue at which the znode is removed */
  #dropEphemeral(znode: PendingZnode, end: 'oldest' | 'newest'): void {
    if (znode.kind !== ZnodeKind.ephemeral) return;
    const ofSession = this.#ephemerals.get(znode.ephemeralOwner)!;
    if (end === 'oldest') ofSession.shift();
    else ofSession.dropNewest(1);
    if (ofSession.length === 0) this.#ephemerals.delete(znode.ephemeralOwner);
  }

  #fromTree(path: string, hash: number, z: number): PendingZnode {
    const tree = this.tree;
    const znode = new PendingZnode(path, hash, tree.lastZxid);
    znode.znode = z;
    znode.kind = tree.znodes.kindOf(z);
    znode.acl = tree.acls.get(tree.znodes.aclOf(z));
    tree.readStat(z, znode);
    if (znode.kind !== ZnodeKind.persistent) znode.ephemeralOwner = tree.persistedOwnerOf(z);
    znode.digest = tree.znodes.digestOf(z);
    znode.digestBefore = znode.digest;
    return znode;
  }

  #isDigested(znode: PendingZnode): boolean {
    return this.#digestEnabled && isDigested(znode.path);
  }
}
