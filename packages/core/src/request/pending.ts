import type { Acl, PersistedStat, Zxid } from '@meerkat/protocol';
import type { DataTree } from '../tree/data-tree.ts';
import {
  type DigestSum,
  digestAfterAversion,
  digestAfterCversion,
  digestAfterPzxid,
  isDigested,
  znodeDigest,
} from '../tree/digest.ts';
import { ZnodeKind } from '../tree/znode-kind.ts';

/**
 * A znode as it will be once the proposals in flight are applied (ChangeRecord). Never changed after it was put;
 * a later change puts another one.
 */
export interface PendingZnode extends PersistedStat {
  readonly path: string;
  /** The txn that makes it so. */
  readonly zxid: Zxid;
  readonly exists: boolean;
  readonly kind: ZnodeKind;
  readonly acl: readonly Acl[];
  readonly childCount: number;
  /** Bytes of data, for quotas. */
  readonly dataLength: number;
  /** Filled in by `PendingTree`; 0 when it does not exist, or when digests are off. */
  digest: number;
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
  readonly #changed = new Map<string, PendingZnode>();
  /** All that were put, in zxid order, from `#head` on. */
  #queue: PendingZnode[] = [];
  #head = 0;
  /** Digest of the tree as it will be. */
  #digest: DigestSum;
  /** While a multi is being prepared: what stood in `#changed` before each of its puts. */
  #undo: { readonly path: string; readonly before: PendingZnode | undefined }[] | null = null;
  #digestBefore: DigestSum | null = null;

  constructor(tree: DataTree, digestEnabled: boolean) {
    this.#tree = tree;
    this.#digestEnabled = digestEnabled;
    this.#digest = tree.digestSum().copy();
  }

  /** The znode as it will be, or null when it will not exist. */
  find(path: string): PendingZnode | null {
    const key = path === '' ? '/' : path;
    const changed = this.#changed.get(key);
    if (changed !== undefined) return changed.exists ? changed : null;
    const znode = this.#tree.find(key);
    return znode === 0 ? null : this.#fromTree(key, znode);
  }

  /** The znode is new, or has new data. Takes over the object, which nobody may change afterwards. */
  putWritten(next: PendingZnode, data: Uint8Array | null): void {
    this.#put(next, this.#digestEnabled ? znodeDigest(next.path, data, next) : 0);
  }

  /** Only pzxid, cversion, aversion, ACL or number of children differ from `before`: its data need not be looked at. */
  putTouched(next: PendingZnode, before: PendingZnode): void {
    let { digest } = before;
    if (this.#digestEnabled && isDigested(next.path)) {
      digest = digestAfterPzxid(digest, before.pzxid, next.pzxid);
      digest = digestAfterCversion(digest, before.cversion, next.cversion);
      digest = digestAfterAversion(digest, before.aversion, next.aversion);
    }
    this.#put(next, digest);
  }

  putDeleted(next: PendingZnode): void {
    this.#put(next, 0);
  }

  /** Digest of the tree after everything put so far, or null when digests are off. */
  treeDigest(): bigint | null {
    return this.#digestEnabled ? this.#digest.toBigInt() : null;
  }

  /** From here on everything put can be taken back: all of a multi or nothing. */
  beginMulti(): void {
    this.#undo = [];
    this.#digestBefore = this.#digest.copy();
  }

  endMulti(isKept: boolean): void {
    const undo = this.#undo ?? [];
    if (!isKept) {
      for (const { path, before } of undo.reverse()) {
        if (before === undefined) this.#changed.delete(path);
        else this.#changed.set(path, before);
      }
      this.#queue.length -= undo.length;
      if (this.#digestBefore !== null) this.#digest = this.#digestBefore;
    }
    this.#undo = null;
    this.#digestBefore = null;
  }

  /** The tree now holds everything up to `zxid`: what the overlay said about it is no longer needed. */
  onApplied(zxid: Zxid): void {
    const queue = this.#queue;
    let head = this.#head;
    for (; head < queue.length && queue[head]!.zxid <= zxid; head++) {
      const znode = queue[head]!;
      if (this.#changed.get(znode.path) === znode) this.#changed.delete(znode.path);
    }
    this.#head = head;
    if (head === queue.length) {
      this.#queue = [];
      this.#head = 0;
    } else if (head > 4096) {
      this.#queue = queue.slice(head);
      this.#head = 0;
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

  #put(next: PendingZnode, digest: number): void {
    const before = this.#changed.get(next.path);
    next.digest = digest;
    if (this.#digestEnabled) {
      this.#digest.subtract(before === undefined ? this.#appliedDigest(next.path) : before.digest);
      this.#digest.add(digest);
    }
    if (this.#undo !== null) this.#undo.push({ path: next.path, before });
    this.#changed.set(next.path, next);
    this.#queue.push(next);
  }

  #fromTree(path: string, znode: number): PendingZnode {
    const tree = this.#tree;
    return {
      path,
      zxid: tree.lastZxid,
      exists: true,
      kind: tree.kindOf(znode),
      acl: tree.acls.get(tree.aclOf(znode)),
      childCount: tree.childCountOf(znode),
      dataLength: tree.dataLengthOf(znode),
      czxid: tree.czxidOf(znode),
      mzxid: tree.mzxidOf(znode),
      ctime: tree.ctimeOf(znode),
      mtime: tree.mtimeOf(znode),
      version: tree.versionOf(znode),
      cversion: tree.sequenceOf(znode),
      aversion: tree.aversionOf(znode),
      ephemeralOwner: tree.persistedOwnerOf(znode),
      pzxid: tree.pzxidOf(znode),
      digest: tree.digestOf(znode),
    };
  }

  #appliedDigest(path: string): number {
    const znode = this.#tree.find(path);
    return znode === 0 ? 0 : this.#tree.digestOf(znode);
  }
}
