import { Fifo, type Zxid } from '@meerkat/protocol';
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
import { PendingZnode } from './pending-znode.ts';

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
  /** Those of them that are ephemerals, by their session. */
  readonly #ephemerals: Map<bigint, Fifo<PendingZnode>> = new Map();
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
    const znode = this.#tree.znodes.findByHash(hash, key);
    return znode === 0 ? null : this.#fromTree(key, hash, znode);
  }

  /**
   * The znode to change for a txn. A found one is the caller's own when no proposal made it, or when this very txn did: a
   * multi of thousands of creates below one znode changes that one in place. Any other is copied.
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
    this.#digest.subtract(znode.digestBefore);
    this.#digest.add(znode.digest);
    this.#lastDigest = znode.digest;
    // Changed in place, it stands where it stood.
    if (znode.isPut) return;
    znode.isPut = true;
    if (this.#isInMulti) {
      this.#multiPuts.push(znode);
      this.#multiBefore.push(this.#changed.get(znode.hash, znode.path));
    }
    this.#changed.set(znode);
    this.#queue.push(znode);
    if (znode.kind === ZnodeKind.ephemeral) this.#pushEphemeral(znode);
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
        // What has been applied since the multi began is in the tree, and nowhere else.
        if (before === null || before.zxid <= this.#tree.lastZxid) this.#changed.delete(puts[i]!);
        else this.#changed.set(before);
        this.#dropEphemeral(puts[i]!, 'newest');
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
      this.#dropEphemeral(oldest, 'oldest');
    }
  }

  /** Paths of a session's ephemerals as they will be, in no order. */
  ephemeralsOf(sessionId: bigint): readonly string[] {
    const paths = new Set(this.#tree.ephemeralsOf(sessionId));
    for (const znode of this.#ephemerals.get(sessionId) ?? []) {
      if (znode.exists) paths.add(znode.path);
      else paths.delete(znode.path);
    }
    return [...paths];
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

  /** It leaves the queue at this end. */
  #dropEphemeral(znode: PendingZnode, end: 'oldest' | 'newest'): void {
    if (znode.kind !== ZnodeKind.ephemeral) return;
    const ofSession = this.#ephemerals.get(znode.ephemeralOwner)!;
    if (end === 'oldest') ofSession.shift();
    else ofSession.dropNewest(1);
    if (ofSession.length === 0) this.#ephemerals.delete(znode.ephemeralOwner);
  }

  #fromTree(path: string, hash: number, z: number): PendingZnode {
    const tree = this.#tree;
    const znode = new PendingZnode(path, hash, tree.lastZxid);
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
