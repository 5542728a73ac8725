/**
 * The effects of each txn on the tree.
 *
 * A txn carries absolute state, so that applying it to a tree that has already seen it, or later ones, is harmless:
 * that is what replaying a log over a fuzzy snapshot does. Three rules ensure this (docs/storage.md, "Txns"):
 *
 * 1. A parent's count of created children and its pzxid only increase.
 * 2. A create of an existing znode still raises them, and sets the txn's ACL on the znode: a later txn of the log
 *    created the znode, or changed its ACL, and will be replayed.
 * 3. A delete of a missing znode still raises the parent's pzxid; one of a znode with children, which come from later
 *    txns, deletes them too.
 */
import {
  type Acl,
  type CreateContainerTxn,
  type CreateTtlTxn,
  type CreateTxn,
  ErrorCode,
  type MultiSubTxn,
  type MultiTxn,
  OpCode,
  type PlainCreate,
  type SetDataTxn,
  STAT_BYTES,
  StatOffset,
  type Txn,
  type TxnHeader,
} from '@meerkat/protocol';
import { APPLIED, type ApplyResult, NO_NODE, NODE_EXISTS, type PartResult } from './apply-result.ts';
import { copyBytes } from './byte-arena.ts';
import { isDigestedBytes, UNKNOWN_DIGEST } from './digest.ts';
import type { KnownZnode } from './known-znode.ts';
import { PartStats } from './part-stats.ts';
import { hashOfBytes } from './path-index.ts';
import type { Prepared } from './prepared.ts';
import type { Quotas } from './quota.ts';
import { nextInSubtree } from './subtree.ts';
import type { TreeEvents } from './tree-events.ts';
import type { TreeState } from './tree-state.ts';
import { CloseSessionSteps, MultiSteps, type TxnSteps } from './txn-steps.ts';
import { ownerOfTtl, TTL_MS_MAX, ZnodeKind } from './znode-kind.ts';
import { NO_ZNODE, ROOT, type ZnodeNumber } from './znode-rows.ts';

/** Maximum sequence number; Apache's get stuck at 2**31 − 1. */
const SEQUENCE_MAX = 0xffffffff;

type AnyCreateTxn = CreateTxn | CreateContainerTxn | CreateTtlTxn;

export class TxnApplier {
  readonly #state: TreeState;
  readonly #quotas: Quotas;
  readonly #partStats = new PartStats();

  constructor(state: TreeState, quotas: Quotas) {
    this.#state = state;
    this.#quotas = quotas;
  }

  /** The same as `apply`, in steps; null for a single change, or for a multi of which nothing is applied. */
  steps(header: TxnHeader, txn: Txn, events: TreeEvents, prepared: Prepared): TxnSteps | null {
    if (txn.type === OpCode.multi && !isFailed(txn)) return new MultiSteps(this, header, txn, events, prepared);
    if (txn.type === OpCode.closeSession) return new CloseSessionSteps(this, header, txn, events);
    return null;
  }

  apply(header: TxnHeader, txn: Txn, events: TreeEvents, prepared: Prepared): ApplyResult {
    switch (txn.type) {
      case OpCode.create:
      case OpCode.create2:
      case OpCode.createContainer:
      case OpCode.createTTL:
        return this.#create(header, txn, events, prepared.digest);
      case OpCode.delete:
      case OpCode.deleteContainer:
        return this.delete(header, txn.path, events, prepared.znode);
      case OpCode.setData:
      case OpCode.reconfig:
        return this.#setData(header, txn, events, prepared);
      case OpCode.setACL:
        return this.#setAcl(txn.path, txn.acl, txn.version);
      case OpCode.multi:
        return this.#multi(header, txn, events, prepared);
      case OpCode.closeSession:
        return new CloseSessionSteps(this, header, txn, events).advance(Number.POSITIVE_INFINITY)!;
      case OpCode.error:
        return { error: txn.error as ErrorCode, znode: NO_ZNODE, parts: null };
      case OpCode.check:
      case OpCode.createSession:
        return APPLIED;
    }
  }

  /**
   * Applies a create from its payload, in about half the time that decoding and applying it take; no events are
   * reported.
   *
   * @param known what has already been computed for it
   * @returns false when it takes more than adding a znode below an existing one: then nothing has been done
   */
  replayCreate(create: PlainCreate, known: KnownZnode | null): boolean {
    const state = this.#state;
    const { bytes, pathStart, pathEnd } = create;
    if (this.#quotas.isActive) return false;
    if (known === null && !isDigestedBytes(bytes, pathStart, pathEnd)) return false;
    const parent = state.findParentBytes(bytes, pathStart, pathEnd);
    const hash = known === null ? hashOfBytes(bytes, pathStart, pathEnd) : known.hash;
    if (parent === NO_ZNODE || state.table.findBytesByHash(hash, bytes, pathStart, pathEnd) !== NO_ZNODE) return false;
    this.#raiseSequence(parent, create.parentCversion, create.zxid);
    state.addPlain(create, hash, parent, known === null ? UNKNOWN_DIGEST : known.digest);
    return true;
  }

  #create(header: TxnHeader, txn: AnyCreateTxn, events: TreeEvents, digest: number): ApplyResult {
    const state = this.#state;
    const table = state.table;
    const { path, data } = txn;
    state.announce(path);
    const parent = state.findParent(path);
    if (parent === NO_ZNODE) return table.find(path) === ROOT ? NODE_EXISTS : NO_NODE;
    const aclId = state.acls.intern(txn.acl);
    const existing = table.find(path);
    this.#raiseSequence(parent, txn.parentCversion, header.zxid);
    if (existing !== NO_ZNODE) {
      state.replaceAcl(existing, aclId);
      return NODE_EXISTS;
    }
    const kind = this.#kindOf(txn);
    const z = state.add(path, parent, kind, data, aclId);
    state.setCreatedStat(z, header.zxid, header.time);
    if (kind === ZnodeKind.ephemeral) state.setSession(z, ownerOf(header, txn));
    else if (kind === ZnodeKind.ttl) state.ttls.set(z, (txn as CreateTtlTxn).ttl);
    state.refreshDigest(z, digest);
    this.#quotas.onCreated(path, data === null ? 0 : data.length);
    events.onCreated(path, aclId, state.parentPathOf(parent), table.aclOf(parent), header.zxid);
    return { error: ErrorCode.ok, znode: z, parts: null };
  }

  /**
   * Deletes a znode and all its descendants; only a log's replay deletes one that has any.
   *
   * @param znode its expected number, as in `ZnodeTable.findAt`
   */
  delete(header: TxnHeader, path: string, events: TreeEvents, znode: ZnodeNumber): ApplyResult {
    const state = this.#state;
    const table = state.table;
    state.announce(path);
    const z = table.findAt(znode, path);
    // An existing znode knows its parent, without a lookup by path.
    const parent = z === NO_ZNODE || z === ROOT ? state.findParent(path) : table.parentOf(z);
    if (parent === NO_ZNODE) return NO_NODE;
    state.raisePzxid(parent, header.zxid);
    if (z === NO_ZNODE) return NO_NODE;
    const aclId = table.aclOf(z);
    const parentAclId = table.aclOf(parent);
    // Keeps both ids valid for the events, although the last znode with this list may be about to go.
    state.acls.addReference(aclId);
    this.#quotas.onDeleted(path, Math.max(0, table.dataLengthOf(z)));
    for (let child = z; ; ) {
      child = nextInSubtree(table, child, z);
      if (child === NO_ZNODE) break;
      this.#quotas.onDeleted(table.pathOf(child), Math.max(0, table.dataLengthOf(child)));
    }
    state.remove(z);
    events.onDeleted(path, aclId, state.parentPathOf(parent), parentAclId, header.zxid);
    state.acls.release(aclId);
    return APPLIED;
  }

  #setData(header: TxnHeader, txn: SetDataTxn, events: TreeEvents, { digest, znode }: Prepared): ApplyResult {
    const { path, data, version } = txn;
    const state = this.#state;
    const table = state.table;
    state.announce(path);
    const z = table.findAt(znode, path);
    if (z === NO_ZNODE) return NO_NODE;
    const bytesDelta = state.replaceData(z, data);
    state.setWrittenStat(z, header.zxid, header.time, version);
    state.refreshDigest(z, digest);
    this.#quotas.onDataChanged(path, bytesDelta);
    events.onDataChanged(z === ROOT ? '/' : path, table.aclOf(z), header.zxid);
    return { error: ErrorCode.ok, znode: z, parts: null };
  }

  #setAcl(path: string, acl: readonly Acl[], aversion: number): ApplyResult {
    const state = this.#state;
    state.announce(path);
    const z = state.table.find(path);
    if (z === NO_ZNODE) return NO_NODE;
    state.replaceAcl(z, state.acls.intern(acl));
    state.setAversion(z, aversion);
    return { error: ErrorCode.ok, znode: z, parts: null };
  }

  ownedBy(sessionId: bigint): ReadonlySet<ZnodeNumber> {
    return this.#state.ephemerals.of(sessionId);
  }

  /** Paths of what a session owns, in the same order on every server, as watchers are notified in that order. */
  unlistedOf(sessionId: bigint): readonly string[] {
    const { ephemerals, table } = this.#state;
    return Array.from(ephemerals.of(sessionId), (z) => table.pathOf(z)).sort();
  }

  /**
   * The replay finds no reference to this znode in the txn. If nothing else in the txn raises the pzxid of its parent
   * either, the znode has to be in the snapshot, so that the replay finds and deletes it.
   */
  keepUnlisted(path: string, zxid: number): void {
    const { openSnapshots, table } = this.#state;
    if (openSnapshots.size === 0) return;
    const z = table.find(path);
    if (table.getStatLong(table.parentOf(z), StatOffset.pzxid) >= zxid) return;
    for (const snapshot of openSnapshots) snapshot.keep(z);
  }

  /** All parts or none: if one is an ErrorTxn, the parts before it get ok and those after it runtimeInconsistency. */
  #multi(header: TxnHeader, txn: MultiTxn, events: TreeEvents, prepared: Prepared): ApplyResult {
    const parts: PartResult[] = [];
    let error: ErrorCode = ErrorCode.ok;
    if (isFailed(txn)) {
      for (const part of txn.txns) {
        const own = part.type === OpCode.error ? part.error : error === ErrorCode.ok ? ErrorCode.ok : LATER_PART;
        if (error === ErrorCode.ok) error = own as ErrorCode;
        parts.push({ type: OpCode.error, error: own as ErrorCode, path: pathOf(part), stat: null });
      }
      return { error, znode: NO_ZNODE, parts };
    }
    return new MultiSteps(this, header, txn, events, prepared).advance(Number.POSITIVE_INFINITY)!;
  }

  /** −1, from logs that do not contain it, means one more. */
  #raiseSequence(parent: ZnodeNumber, sequence: number, zxid: number): void {
    const current = this.#state.table.sequenceOf(parent);
    const wanted = sequence === -1 ? Math.min(current + 1, SEQUENCE_MAX) : sequence >>> 0;
    if (wanted < current || (wanted === current && wanted !== SEQUENCE_MAX)) return;
    // A counter at its maximum stays there, and creates continue.
    this.#state.countCreated(parent, wanted, zxid);
  }

  #kindOf(txn: AnyCreateTxn): ZnodeKind {
    if (txn.type === OpCode.createContainer) return ZnodeKind.container;
    if (txn.type !== OpCode.createTTL) return txn.isEphemeral ? ZnodeKind.ephemeral : ZnodeKind.persistent;
    // Without extended types the owner of a TTL znode is read as an unknown session.
    const isLegal = this.#state.extendedTypesEnabled && txn.ttl >= 0 && txn.ttl <= TTL_MS_MAX;
    return isLegal ? ZnodeKind.ttl : ZnodeKind.ephemeral;
  }

  keepStat(z: ZnodeNumber, part: number): Uint8Array {
    const stat = this.#partStats.of(part);
    const start = this.#state.table.statStartOf(z);
    copyBytes(this.#state.table.pageOf(z), start, start + STAT_BYTES, stat, 0);
    return stat;
  }
}

const LATER_PART = ErrorCode.runtimeInconsistency;

/** The session that owns an ephemeral znode. */
function ownerOf(header: TxnHeader, txn: AnyCreateTxn): bigint {
  return txn.type === OpCode.createTTL ? ownerOfTtl(txn.ttl) : header.sessionId;
}

/** Nothing of such a multi is applied. */
function isFailed({ txns }: MultiTxn): boolean {
  return txns.some((part) => part.type === OpCode.error);
}

function pathOf(part: MultiSubTxn): string {
  return part.type === OpCode.error ? '' : part.path;
}
