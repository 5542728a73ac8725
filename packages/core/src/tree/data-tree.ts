/**
 * The tree of znodes: what clients read, and the state that committed txns change (DataTree).
 *
 * Reads go by number: find the znode once, then query it. Writes go through `apply`, in zxid order; it checks nothing,
 * as the request pipeline has already decided. Replies to reads are written straight from the block that stores a
 * znode, see `znode-table.ts`.
 */
import {
  getInt,
  getLong,
  getLongBig,
  type JuteWriter,
  OpCode,
  type PersistedStat,
  type PlainCreate,
  STAT_BYTES,
  StatOffset,
  type Txn,
  type TxnHeader,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import type { Trace } from '../base/ports.ts';
import type { AclTable } from './acl-table.ts';
import type { ApplyResult } from './apply-result.ts';
import { copyBytes } from './byte-arena.ts';
import type { DigestSum } from './digest.ts';
import type { KnownZnode } from './known-znode.ts';
import { type Prepared, UNPREPARED } from './prepared.ts';
import { Quotas } from './quota.ts';
import type { TreeEvents } from './tree-events.ts';
import { TreeState } from './tree-state.ts';
import { TxnApplier } from './txn-applier.ts';
import type { TxnSteps } from './txn-steps.ts';
import { isContainerOver, isTtlOver, ZnodeKind } from './znode-kind.ts';
import { NO_ZNODE, ROOT, type ZnodeNumber } from './znode-rows.ts';
import type { Znodes } from './znodes.ts';

export type { ApplyResult, PartResult } from './apply-result.ts';
export { SILENT_EVENTS, type TreeEvents } from './tree-events.ts';
export { ZnodeKind } from './znode-kind.ts';
export { NO_ZNODE, ROOT, type ZnodeNumber } from './znode-rows.ts';

export interface DataTreeOptions {
  /** Whether TTL znodes exist; if not, a TTL znode's owner is read as an unknown session. */
  readonly extendedTypesEnabled: boolean;
  /** Whether TTL znodes of 3.5.3 are recognized too. Default false. */
  readonly emulate353TtlZnodes?: boolean;
  /** If false, every digest is 0. */
  readonly digestEnabled: boolean;
}

/** Filled in by `readStat`; `cversion` is the persisted one, the number of children ever created. */
export interface StatTarget {
  czxid: number;
  mzxid: number;
  ctime: number;
  mtime: number;
  version: number;
  cversion: number;
  aversion: number;
  pzxid: number;
  dataLength: number;
  childCount: number;
}

/** The tree's digest right after a txn. */
export interface ZxidDigest {
  readonly zxid: Zxid;
  readonly digest: bigint;
}

/** A digest is kept for every zxid that this divides, and as many of the most recent ones. */
const DIGEST_INTERVAL = 128;
const DIGESTS_MAX = 1024;
const CONFIG_PATH = '/zookeeper/config';
/** Bytes of the length in front of the data. */
const LENGTH_BYTES = 4;

export class DataTree {
  /** Zxid of the last txn applied; set by the code that loads a snapshot. */
  lastZxid: Zxid = ZXID_ZERO;
  /**
   * From this zxid on the tree is exactly that of `lastZxid`. Before it, a fuzzy snapshot may be ahead, as it was
   * written while the tree changed. Infinity while unknown.
   */
  exactFrom: number = 0;
  /** Content of `/zookeeper/config` before its last change by a txn; null for none. */
  replacedMembership: Uint8Array | null = null;
  readonly quotas: Quotas;
  /** Lookup of znodes, their links and their fields in the table, by number. */
  readonly znodes: Znodes;
  readonly acls: AclTable;
  /** The tree's internals, for snapshots only; nothing else modifies it through this field. */
  readonly state: TreeState;
  readonly #applier: TxnApplier;
  readonly #digests: ZxidDigest[] = [];
  /** A txn that has been applied in part. */
  #unfinished: TxnSteps | null = null;

  constructor(options: DataTreeOptions, trace: Trace) {
    this.state = new TreeState(options);
    this.znodes = this.state.table;
    this.acls = this.state.acls;
    this.quotas = new Quotas(this.state, trace);
    this.#applier = new TxnApplier(this.state, this.quotas);
  }

  /**
   * Applies a committed txn, reports the changes to `events`, and sets `lastZxid` once, also for a multi.
   *
   * @param prepared omitted: another server has prepared the txn
   */
  apply(header: TxnHeader, txn: Txn, events: TreeEvents, prepared: Prepared = UNPREPARED): ApplyResult {
    if (txn.type === OpCode.reconfig) this.replacedMembership = this.#copyOf(CONFIG_PATH);
    this.quotas.onTxn(header.time);
    const result = this.#applier.apply(header, txn, events, prepared);
    this.#onApplied(header.zxid);
    return result;
  }

  /**
   * The same for a txn of many changes, over several turns: until it is done the tree shows some of them, with the zxid
   * of the previous txn. null when the txn has only one change.
   */
  applyInSteps(header: TxnHeader, txn: Txn, events: TreeEvents, prepared: Prepared): TxnSteps | null {
    const steps = this.#applier.steps(header, txn, events, prepared);
    if (steps === null) return null;
    this.quotas.onTxn(header.time);
    let result: ApplyResult | null = null;
    const advance = (count: number): ApplyResult | null => {
      if (result !== null) return result;
      result = steps.advance(count);
      if (result === null) return null;
      this.#unfinished = null;
      this.#onApplied(header.zxid);
      return result;
    };
    this.#unfinished = { advance };
    return this.#unfinished;
  }

  /** Completes a partly applied txn, for callers that need the tree of a single zxid. */
  settle(): void {
    this.#unfinished?.advance(Number.POSITIVE_INFINITY);
  }

  /** Applies a plain create from the log, without any events. @returns false when it must be decoded */
  replayCreate(create: PlainCreate, known: KnownZnode | null = null): boolean {
    if (!this.#applier.replayCreate(create, known)) return false;
    this.quotas.onTxn(create.time);
    this.#onApplied(create.zxid);
    return true;
  }

  /**
   * Writes the current membership into `/zookeeper/config`. Each server does so on its own: the znode is not part of
   * the digest, and its mzxid is the version.
   */
  showMembership(data: Uint8Array, version: Zxid, wallMs: number): void {
    const z = this.znodes.find(CONFIG_PATH);
    if (z === NO_ZNODE) return;
    this.state.announce(CONFIG_PATH);
    this.state.replaceData(z, data);
    this.state.setWrittenStat(z, version, wallMs, -1);
  }

  #copyOf(path: string): Uint8Array | null {
    const z = this.znodes.find(path);
    return z === NO_ZNODE ? null : (this.dataOf(z)?.slice() ?? null);
  }

  #onApplied(zxid: Zxid): void {
    if (zxid > this.lastZxid) this.lastZxid = zxid;
    if (zxid % DIGEST_INTERVAL === 0 && zxid >= this.exactFrom && this.state.digestEnabled) this.#keepDigest(zxid);
  }

  /* ------------------------------------------------------------------------------------------- whole tree ---- */

  /** Number of znodes as Apache counts them: the root twice, as it has two names there. */
  get count(): number {
    return this.znodes.count + 1;
  }

  get ephemeralCount(): number {
    return this.state.ephemerals.count;
  }

  /** UTF-16 code units of all paths plus bytes of all data. */
  get approximateDataSize(): number {
    return this.state.dataSize;
  }

  /** A signed long; 0n where digests are off. */
  treeDigest(): bigint {
    return this.state.digestSum.toBigInt();
  }

  /** The sum behind `treeDigest`, to compute future values; copy it before adding to it. */
  digestSum(): DigestSum {
    return this.state.digestSum;
  }

  /** Digests of every 128th zxid from `exactFrom` on, oldest first, at most 1024. */
  digestHistory(): readonly ZxidDigest[] {
    return this.#digests;
  }

  /** Sessions that own ephemerals. */
  sessionsWithEphemerals(): IterableIterator<bigint> {
    return this.state.ephemerals.sessions();
  }

  ephemeralCountOf(sessionId: bigint): number {
    return this.state.ephemerals.of(sessionId).size;
  }

  /** In the order of their creation. */
  ephemeralsOf(sessionId: bigint): readonly string[] {
    return Array.from(this.state.ephemerals.of(sessionId), (z) => this.znodes.pathOf(z));
  }

  /**
   * Visits all containers and TTL znodes, one per step, while the tree may change: yields the path of one that may be
   * deleted now and null for any other. It has no children; a container had some or is older than
   * `containerNeverUsedMs` (0 = never), a TTL znode has not been written for longer than its ttl.
   */
  *collectablePaths(nowWallMs: number, containerNeverUsedMs: number): IterableIterator<string | null> {
    for (const z of this.state.containers) {
      const ageMs = nowWallMs - this.mtimeOf(z);
      const isOver =
        this.znodes.childCountOf(z) === 0 && isContainerOver(this.znodes.sequenceOf(z), ageMs, containerNeverUsedMs);
      yield isOver ? this.znodes.pathOf(z) : null;
    }
    for (const [z, ttlMs] of this.state.ttls) {
      const isOver = this.znodes.childCountOf(z) === 0 && isTtlOver(ttlMs, nowWallMs - this.mtimeOf(z));
      yield isOver ? this.znodes.pathOf(z) : null;
    }
  }

  /* ------------------------------------------------------------------------------------- finding and links ---- */

  /** The parent that a path names, whether or not the path itself exists; NO_ZNODE when the parent is missing. */
  findParent(path: string): ZnodeNumber {
    return this.state.findParent(path);
  }

  /** The last part of the path, '' for the root. */
  nameOf(z: ZnodeNumber): string {
    const path = this.znodes.pathOf(z);
    return path.slice(path.lastIndexOf('/') + 1);
  }

  /** Visits the children in the order of their creation. */
  forEachChild(z: ZnodeNumber, visit: (child: ZnodeNumber) => void): void {
    for (let child = this.znodes.firstChildOf(z); child !== NO_ZNODE; child = this.znodes.nextSiblingOf(child)) {
      visit(child);
    }
  }

  /** Znodes below the root, at any depth. */
  get descendantCount(): number {
    return this.znodes.count - 1;
  }

  /* ----------------------------------------------------------------------------------------------- fields ---- */

  /** Milliseconds; 0 for any other znode. */
  ttlOf(z: ZnodeNumber): number {
    return this.state.ttls.get(z) ?? 0;
  }

  /** The session that owns an ephemeral; 0n for any other. */
  ownerOf(z: ZnodeNumber): bigint {
    return this.znodes.kindOf(z) === ZnodeKind.ephemeral ? this.state.sessionOf(z) : 0n;
  }

  /** The owner as snapshots store it: it also marks containers and TTL znodes. A signed long. */
  persistedOwnerOf(z: ZnodeNumber): bigint {
    this.state.putPersistedOwner(z, OWNER, 0);
    return getLongBig(OWNER, 0);
  }

  czxidOf(z: ZnodeNumber): Zxid {
    return this.znodes.getStatLong(z, StatOffset.czxid) as Zxid;
  }

  mzxidOf(z: ZnodeNumber): Zxid {
    return this.znodes.getStatLong(z, StatOffset.mzxid) as Zxid;
  }

  pzxidOf(z: ZnodeNumber): Zxid {
    return this.znodes.getStatLong(z, StatOffset.pzxid) as Zxid;
  }

  /** Wall-clock milliseconds. */
  ctimeOf(z: ZnodeNumber): number {
    return this.znodes.getStatLong(z, StatOffset.ctime);
  }

  mtimeOf(z: ZnodeNumber): number {
    return this.znodes.getStatLong(z, StatOffset.mtime);
  }

  versionOf(z: ZnodeNumber): number {
    return this.znodes.getStatInt(z, StatOffset.version);
  }

  aversionOf(z: ZnodeNumber): number {
    return this.znodes.getStatInt(z, StatOffset.aversion);
  }

  /** Bytes of the data; 0 for null. */
  dataLengthOf(z: ZnodeNumber): number {
    return Math.max(0, this.znodes.dataLengthOf(z));
  }

  /** A view, valid until the next change. */
  dataOf(z: ZnodeNumber): Uint8Array | null {
    if (this.znodes.dataLengthOf(z) < 0) return null;
    return this.znodes.pageOf(z).subarray(this.znodes.dataStartOf(z), this.znodes.statStartOf(z));
  }

  /** Fills in what `prepare` needs: the numbers of the stat, and those of children and data. */
  readStat(z: ZnodeNumber, target: StatTarget): void {
    const page = this.znodes.pageOf(z);
    const stat = this.znodes.statStartOf(z);
    target.czxid = getLong(page, stat + StatOffset.czxid);
    target.mzxid = getLong(page, stat + StatOffset.mzxid);
    target.ctime = getLong(page, stat + StatOffset.ctime);
    target.mtime = getLong(page, stat + StatOffset.mtime);
    target.version = getInt(page, stat + StatOffset.version);
    target.aversion = getInt(page, stat + StatOffset.aversion);
    target.pzxid = getLong(page, stat + StatOffset.pzxid);
    target.dataLength = getInt(page, stat + StatOffset.dataLength);
    target.childCount = getInt(page, stat + StatOffset.numChildren);
    target.cversion = this.znodes.sequenceOf(z);
  }

  /** The stat as a snapshot stores it. */
  persistedStatOf(z: ZnodeNumber): PersistedStat {
    return this.state.persistedStatOf(z);
  }

  /* ---------------------------------------------------------------------------------------------- replies ---- */

  /** The 68 bytes of the stat: an exists reply. */
  writeStat(z: ZnodeNumber, writer: JuteWriter): void {
    const start = this.znodes.statStartOf(z);
    this.#copy(z, start, start + STAT_BYTES, writer);
  }

  /** A copy of the stat. */
  statOf(z: ZnodeNumber): Uint8Array {
    const start = this.znodes.statStartOf(z);
    return this.znodes.pageOf(z).slice(start, start + STAT_BYTES);
  }

  /**
   * Length, data and stat: a getData reply.
   *
   * @returns bytes of the data; 0 for null
   */
  writeDataAndStat(z: ZnodeNumber, writer: JuteWriter): number {
    const page = this.znodes.pageOf(z);
    const start = this.znodes.replyStartOf(z);
    const dataBytes = Math.max(0, getInt(page, start));
    const bytes = LENGTH_BYTES + dataBytes + STAT_BYTES;
    writer.ensure(bytes);
    copyBytes(page, start, start + bytes, writer.bytes, writer.position);
    writer.position += bytes;
    return dataBytes;
  }

  /** The children's names, a vector<ustring>, in the order of their creation. */
  writeChildren(z: ZnodeNumber, writer: JuteWriter): void {
    const table = this.znodes;
    writer.int(table.childCountOf(z));
    const first = table.firstChildOf(z);
    if (first === NO_ZNODE) return;
    // Offset of the name: after the parent's path and a slash; the root's path is that slash.
    const skipped = z === ROOT ? 1 : table.pathBytesOf(z) + 1;
    for (let child = first; child !== NO_ZNODE; child = table.nextSiblingOf(child)) {
      table.writePath(child, skipped, writer);
    }
  }

  #copy(z: ZnodeNumber, start: number, end: number, writer: JuteWriter): void {
    writer.ensure(end - start);
    copyBytes(this.znodes.pageOf(z), start, end, writer.bytes, writer.position);
    writer.position += end - start;
  }

  #keepDigest(zxid: Zxid): void {
    if (this.#digests.length === DIGESTS_MAX) this.#digests.shift();
    this.#digests.push({ zxid, digest: this.treeDigest() });
  }
}

const OWNER = new Uint8Array(8);
