/**
 * Reads the body of a snapshot (see `snapshot-writer.ts` for the grammar) into a fresh database, piece by piece.
 *
 * Apache's snapshots are read too: their ACLs may be in any order, and may include the open list under a number of its
 * own; a znode may refer to an ACL that is not in the map, because it changed while the snapshot was taken, and denies
 * everyone access until the replay of the log names the list. The four system znodes that every tree has take their
 * stat and data from the snapshot.
 */
import {
  getInt,
  getLong,
  getLongBig,
  JuteReader,
  OPEN_ACL,
  RECORD_BYTES_MAX,
  readAclList,
  StatOffset,
} from '@meerkat/protocol';
import { ROW_DIGEST, ROW_END, ROW_HASH, ROW_INTS, ROW_IS_PLAIN, ROW_START } from '../base/file-scans.ts';
import { CLOSED_ACL, OPEN_ACL_ID } from './acl-table.ts';
import { copyBytes } from './byte-arena.ts';
import type { Database } from './database.ts';
import { hashOfBytes, isAscii } from './path-index.ts';
import { PathPrefetch, PREFETCH_MAX } from './path-prefetch.ts';
import { areZxids, PersistedOffset } from './persisted-stat.ts';
import type { Quotas } from './quota.ts';
import { LAST_RECORD_BYTES, SnapshotRecord } from './snapshot-record.ts';
import type { TreeState } from './tree-state.ts';
import { isOwnerOf353, kindOfOwner, ttlOfOwner, ZnodeKind } from './znode-kind.ts';
import { NO_ZNODE, type ZnodeNumber } from './znode-rows.ts';

const SESSION_BYTES = 12;

type Phase = 'session-count' | 'sessions' | 'acl-count' | 'acls' | 'znodes' | 'done' | 'fault';

export class SnapshotReader {
  /** What is wrong with the snapshot and where; reading stops then. */
  fault: string | null = null;
  readonly #database: Database;
  readonly #state: TreeState;
  readonly #quotas: Quotas;
  #phase: Phase = 'session-count';
  /** Sessions or ACLs that have not been read yet. */
  #left = 0;
  #znodes = 0;
  #last: ZnodeNumber = NO_ZNODE;
  /** From the snapshot's ACL numbers to ours. */
  readonly #aclIds = new Map<number, number>();
  /** The ACL number of the previous znode, and ours: most znodes have the same. */
  #aclHigh = -1;
  #aclLow = -1;
  #aclId: number = OPEN_ACL_ID;
  /** Parent of the previous scanned znode, and how many children its count still lacks: siblings come in runs. */
  #parent: ZnodeNumber = NO_ZNODE;
  #uncounted = 0;
  readonly #reader = new JuteReader(undefined, RECORD_BYTES_MAX);
  readonly #record = new SnapshotRecord();
  readonly #coming: PathPrefetch;

  /** `database` must be fresh: it has the system znodes and nothing else. */
  constructor(database: Database) {
    this.#database = database;
    this.#state = database.tree.state;
    this.#quotas = database.tree.quotas;
    this.#coming = new PathPrefetch(this.#state.table);
    this.#aclIds.set(-1, this.#state.acls.intern(OPEN_ACL));
  }

  /** True when the body's end was read; the rest of the file is not the reader's. */
  get isComplete(): boolean {
    return this.#phase === 'done';
  }

  /** Current position, for messages: "after 17 znodes, the last one /a/b". */
  get position(): string {
    switch (this.#phase) {
      case 'session-count':
      case 'sessions':
        return 'in the list of sessions';
      case 'acl-count':
      case 'acls':
        return 'in the list of ACLs';
      default:
        return this.#znodes === 0
          ? 'before the first znode'
          : `after ${this.#znodes} znodes, the last one ${this.#state.table.pathOf(this.#last)}`;
    }
  }

  /**
   * Reads the complete records in bytes[start, end). The rest must be passed again together with the bytes that follow
   * it, unless `isComplete` or `fault` is set. No reference to the bytes is kept.
   *
   * @returns number of bytes read
   */
  read(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    let aheadTo = start;
    for (;;) {
      if (at >= aheadTo && this.#phase === 'znodes') aheadTo = this.#lookAhead(bytes, at, end);
      const next = this.#readOne(bytes, at, end);
      if (next === at) return at - start;
      at = next;
    }
  }

  /**
   * Prefetches what the next znodes need of the tree, as far as they can be recognized.
   *
   * @returns their end, at least `end` for none
   */
  #lookAhead(bytes: Uint8Array, start: number, end: number): number {
    const record = this.#record;
    let at = start;
    for (let i = 0; i < PREFETCH_MAX && record.read(bytes, at, end) === 'whole'; i++) {
      this.#coming.add(bytes, record.pathStart, record.pathEnd);
      at = record.end;
    }
    this.#coming.fetch();
    return at === start ? end : at;
  }

  /** @returns where the next record begins; `at` when this one is incomplete, or reading has ended. */
  #readOne(bytes: Uint8Array, at: number, end: number): number {
    switch (this.#phase) {
      case 'session-count':
        return this.#readCount(bytes, at, end, 'sessions', 'sessions');
      case 'sessions':
        return this.#readSession(bytes, at, end);
      case 'acl-count':
        return this.#readCount(bytes, at, end, 'acls', 'ACLs');
      case 'acls':
        return this.#readAcl(bytes, at, end);
      case 'znodes':
        return this.#readZnode(bytes, at, end);
      case 'done':
      case 'fault':
        return at;
    }
  }

  #readCount(bytes: Uint8Array, at: number, end: number, next: Phase, what: string): number {
    if (end - at < 4) return at;
    const count = getInt(bytes, at);
    if (count < 0) return this.#fail(at, `the number of ${what} is ${count}`);
    this.#left = count;
    this.#phase = next;
    this.#maybeLeaveList();
    return at + 4;
  }

  #readSession(bytes: Uint8Array, at: number, end: number): number {
    if (end - at < SESSION_BYTES) return at;
    this.#reader.reset(bytes, at, end);
    const id = this.#reader.longBig();
    this.#database.sessions.set(id, this.#reader.int());
    this.#left--;
    this.#maybeLeaveList();
    return at + SESSION_BYTES;
  }

  #readAcl(bytes: Uint8Array, at: number, end: number): number {
    const reader = this.#reader;
    reader.reset(bytes, at, end);
    const index = reader.longClamped();
    const list = readAclList(reader);
    if (reader.failed) {
      // Incomplete, or an invalid length: only the latter can need this many bytes.
      return end - at > RECORD_BYTES_MAX ? this.#fail(at, 'an ACL has an impossible length') : at;
    }
    this.#aclIds.set(index, this.#state.acls.intern(list));
    this.#left--;
    this.#maybeLeaveList();
    return reader.position;
  }

  #maybeLeaveList(): void {
    if (this.#left > 0) return;
    if (this.#phase === 'sessions') this.#phase = 'acl-count';
    else if (this.#phase === 'acls') this.#beginZnodes();
  }

  #beginZnodes(): void {
    this.#phase = 'znodes';
    this.#aclId = this.#aclIds.get(-1)!;
  }

  #readZnode(bytes: Uint8Array, at: number, end: number): number {
    const record = this.#record;
    switch (record.read(bytes, at, end)) {
      case 'cut':
        return at;
      case 'broken':
        return this.#fail(at, record.fault);
      case 'last':
        return this.#finish(at + LAST_RECORD_BYTES);
      case 'whole':
        return this.#addZnode(record) ? record.end : at;
    }
  }

  /** True while znodes are read: another thread may scan their records first. */
  get isInZnodes(): boolean {
    return this.#phase === 'znodes';
  }

  /** Reads scanned records, in the order of the file; see `base/file-scans.ts`. */
  readScanned(bytes: Uint8Array, rows: Int32Array, count: number): void {
    const rowsEnd = count * ROW_INTS;
    let aheadTo = 0;
    for (let row = 0; row < rowsEnd && this.#phase === 'znodes'; row += ROW_INTS) {
      if (row === aheadTo) {
        aheadTo = Math.min(row + PREFETCH_MAX * ROW_INTS, rowsEnd);
        this.#coming.fetchScanned(rows, row, aheadTo);
      }
      const start = rows[row + ROW_START]!;
      const end = rows[row + ROW_END]!;
      const isPlain = rows[row + ROW_IS_PLAIN] === 1;
      if (!isPlain || !this.#addPlain(bytes, start, rows[row + ROW_HASH]!, rows[row + ROW_DIGEST]! >>> 0)) {
        this.#readZnode(bytes, start, end);
      }
    }
    this.#countChildren(NO_ZNODE);
  }

  /** @returns false when it takes more than adding a znode below an existing one: then nothing has been done */
  #addPlain(bytes: Uint8Array, start: number, hash: number, digest: number): boolean {
    const state = this.#state;
    const record = this.#record;
    record.readKnown(bytes, start);
    const { pathStart, pathEnd } = record;
    if (state.table.findBytesByHash(hash, bytes, pathStart, pathEnd) !== NO_ZNODE) return false;
    const parent = state.findParentBytes(bytes, pathStart, pathEnd);
    if (parent === NO_ZNODE) return false;
    if (parent !== this.#parent) this.#countChildren(parent);
    this.#uncounted++;
    this.#last = state.addPersisted(record, hash, parent, this.#aclIdOf(record), digest);
    this.#znodes++;
    return true;
  }

  /** @param next parent of the following znodes */
  #countChildren(next: ZnodeNumber): void {
    if (this.#uncounted > 0) this.#state.table.countChildren(this.#parent, this.#uncounted);
    this.#uncounted = 0;
    this.#parent = next;
  }

  /** @returns false after a fault */
  #addZnode(record: SnapshotRecord): boolean {
    const state = this.#state;
    const { bytes, pathStart, pathEnd, persisted } = record;
    const aclId = this.#aclIdOf(record);
    const owner = persisted + PersistedOffset.ephemeralOwner;
    const high = getInt(bytes, owner);
    const low = getInt(bytes, owner + 4);
    const kind = kindOfOwner(high, low, state);
    if (kind === null) return this.#refuse(record, `has the owner 0x${hex(high)}${hex(low)}, which is invalid`);
    if (!areZxids(bytes, persisted)) return this.#refuse(record, 'has a zxid that is out of range');
    const ascii = isAscii(bytes, pathStart, pathEnd);
    // The root is '' here, which has no bytes to hash.
    const hash = ascii ? hashOfBytes(bytes, pathStart, pathEnd) : 0;
    let z =
      ascii && pathEnd - pathStart > 1
        ? state.table.findBytesByHash(hash, bytes, pathStart, pathEnd)
        : state.table.find(pathOf(record));
    if (z === NO_ZNODE) {
      const parent = ascii ? state.findParentBytes(bytes, pathStart, pathEnd) : state.findParent(pathOf(record));
      if (parent === NO_ZNODE) return this.#refuse(record, 'has no parent');
      z = ascii
        ? state.addRecord(record, hash, parent, kind, aclId)
        : state.add(pathOf(record), parent, kind, dataOf(record), aclId);
      if (kind === ZnodeKind.ephemeral) {
        this.#reader.reset(bytes, owner, owner + 8);
        state.setSession(z, this.#reader.longBig());
      } else if (kind === ZnodeKind.ttl) {
        state.ttls.set(z, ttlOfOwner(high, low));
        if (isOwnerOf353(high)) state.owners353.set(z, getLongBig(bytes, owner));
      }
    } else {
      if (!SYSTEM_PATHS.has(state.table.pathOf(z))) return this.#refuse(record, 'is there twice');
      state.replaceData(z, dataOf(record));
      state.replaceAcl(z, aclId);
    }
    this.#fillStat(z, record);
    return true;
  }

  /** Completes a znode: every field of the stat that does not derive from data, children and kind. */
  #fillStat(z: ZnodeNumber, { bytes, persisted }: SnapshotRecord): void {
    const { table } = this.#state;
    const page = table.pageOf(z);
    const stat = table.statStartOf(z);
    copyBytes(bytes, persisted, persisted + StatOffset.cversion, page, stat);
    const aversion = persisted + PersistedOffset.aversion;
    copyBytes(bytes, aversion, aversion + 4, page, stat + StatOffset.aversion);
    const pzxid = persisted + PersistedOffset.pzxid;
    copyBytes(bytes, pzxid, pzxid + 8, page, stat + StatOffset.pzxid);
    table.setSequence(z, getInt(bytes, persisted + PersistedOffset.cversion));
    this.#state.refreshDigest(z);
    this.#znodes++;
    this.#last = z;
  }

  #aclIdOf({ bytes, dataEnd }: SnapshotRecord): number {
    const high = getInt(bytes, dataEnd);
    const low = getInt(bytes, dataEnd + 4);
    if (high === this.#aclHigh && low === this.#aclLow) return this.#aclId;
    const aclId = this.#aclIds.get(getLong(bytes, dataEnd));
    // Not reused for the next znode: a list that the snapshot lacks may be dropped with its last znode.
    if (aclId === undefined) return this.#state.acls.intern(CLOSED_ACL);
    this.#aclId = aclId;
    this.#aclHigh = high;
    this.#aclLow = low;
    return aclId;
  }

  /** Computes what derives from all znodes. */
  #finish(end: number): number {
    this.#phase = 'done';
    this.#quotas.rebuild();
    this.#state.acls.purgeUnused();
    return end;
  }

  #refuse(record: SnapshotRecord, what: string): false {
    this.#fail(0, `the znode ${pathOf(record)} ${what}`);
    return false;
  }

  #fail(at: number, what: string): number {
    this.fault = `${what} (${this.position})`;
    this.#phase = 'fault';
    return at;
  }
}

const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });
const SYSTEM_PATHS: ReadonlySet<string> = new Set(['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config']);

/** The root is '' in a snapshot; the tree accepts that. */
function pathOf({ bytes, pathStart, pathEnd }: SnapshotRecord): string {
  return DECODER.decode(bytes.subarray(pathStart, pathEnd));
}

/** For null as for empty data, start and end are equal; the length distinguishes them. */
function dataOf({ bytes, pathEnd, dataEnd }: SnapshotRecord): Uint8Array | null {
  return getInt(bytes, pathEnd) < 0 ? null : bytes.subarray(pathEnd + 4, dataEnd);
}

function hex(half: number): string {
  return (half >>> 0).toString(16).padStart(8, '0');
}
