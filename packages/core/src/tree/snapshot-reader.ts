/**
 * Reads the body of a snapshot (see `snapshot-writer.ts` for the grammar) into a fresh database, fed with the file's
 * bytes piece by piece.
 *
 * Snapshots of Apache's servers read as well: the ACLs may come in any order, also the open list under a number of its
 * own; a znode may name an ACL that is not in the map, because it changed while the snapshot was taken, and is closed
 * to everybody until the replay of the log names the list. The four system znodes that every tree has take the stat
 * and data that the snapshot says.
 */
import {
  getInt,
  getLong,
  JuteReader,
  OPEN_ACL,
  PERSISTED_STAT_BYTES,
  RECORD_BYTES_MAX,
  readAclList,
  StatOffset,
} from '@meerkat/protocol';
import { CLOSED_ACL } from './acl-table.ts';
import { copyBytes } from './byte-arena.ts';
import type { Database } from './database.ts';
import type { Quotas } from './quota.ts';
import type { TreeState } from './tree-state.ts';
import { kindOfOwner, ttlOfOwner, ZnodeKind } from './znode-kind.ts';
import { NO_ZNODE, type ZnodeNumber } from './znode-rows.ts';

const SESSION_BYTES = 12;
/** Largest high half of a zxid that is an exact number. */
const ZXID_HIGH_MAX = 2 ** 21 - 1;

/** Offsets inside a StatPersisted; up to version it is laid out as the stat of the wire. */
const PersistedOffset = { mzxid: 8, cversion: 36, aversion: 40, ephemeralOwner: 44, pzxid: 52 } as const;

type Phase = 'session-count' | 'sessions' | 'acl-count' | 'acls' | 'znodes' | 'done' | 'fault';

export class SnapshotReader {
  /** What is wrong with the snapshot and where; nothing more is read then. */
  fault: string | null = null;
  readonly #database: Database;
  readonly #state: TreeState;
  readonly #quotas: Quotas;
  #phase: Phase = 'session-count';
  /** Sessions or ACLs that are still to come. */
  #left = 0;
  #znodes = 0;
  #last: ZnodeNumber = NO_ZNODE;
  /** The snapshot's numbers of ACLs, and ours. */
  readonly #aclIds = new Map<number, number>();
  readonly #reader = new JuteReader(undefined, RECORD_BYTES_MAX);

  /** `database` is fresh: it has the system znodes and nothing else. */
  constructor(database: Database) {
    this.#database = database;
    this.#state = database.tree.state;
    this.#quotas = database.tree.quotas;
    this.#aclIds.set(-1, this.#state.acls.intern(OPEN_ACL));
  }

  /** True when the body's end was read; whatever follows in the file is somebody else's. */
  get isComplete(): boolean {
    return this.#phase === 'done';
  }

  /** Where reading stands, for messages: "after 17 znodes, the last one /a/b". */
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
   * Reads the records that are complete in bytes[start, end). The rest has to be given again together with what
   * follows it, unless `isComplete` or `fault` says that it is over. Nothing of the bytes is kept.
   *
   * @returns number of bytes read
   */
  read(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    for (;;) {
      const next = this.#readOne(bytes, at, end);
      if (next === at) return at - start;
      at = next;
    }
  }

  /** @returns where the next record begins; `at` when this one is not complete, or reading is over. */
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
      // Too short, or a length that is none: only the second goes on for this long.
      return end - at > RECORD_BYTES_MAX ? this.#fail(at, 'an ACL has a length that cannot be') : at;
    }
    this.#aclIds.set(index, this.#state.acls.intern(list));
    this.#left--;
    this.#maybeLeaveList();
    return reader.position;
  }

  #maybeLeaveList(): void {
    if (this.#left > 0) return;
    if (this.#phase === 'sessions') this.#phase = 'acl-count';
    else if (this.#phase === 'acls') this.#phase = 'znodes';
  }

  #readZnode(bytes: Uint8Array, at: number, end: number): number {
    if (end - at < 4) return at;
    const pathLength = getInt(bytes, at);
    if (pathLength < 0 || pathLength > RECORD_BYTES_MAX) return this.#fail(at, `a path has the length ${pathLength}`);
    const lengthAt = at + 4 + pathLength;
    if (pathLength === 1 && lengthAt <= end && bytes[at + 4] === 0x2f) return this.#finish(at + 5);
    if (end < lengthAt + 4) return at;
    const dataLength = getInt(bytes, lengthAt);
    if (dataLength < -1 || dataLength > RECORD_BYTES_MAX) return this.#fail(at, `data has the length ${dataLength}`);
    const dataEnd = lengthAt + 4 + Math.max(dataLength, 0);
    const next = dataEnd + 8 + PERSISTED_STAT_BYTES;
    if (end < next) return at;
    const data = dataLength < 0 ? null : bytes.subarray(lengthAt + 4, dataEnd);
    const z = this.#addZnode({ bytes, start: at + 4, end: lengthAt }, data, this.#aclIdOf(bytes, dataEnd), dataEnd + 8);
    if (z === NO_ZNODE) return at;
    this.#znodes++;
    this.#last = z;
    return next;
  }

  /** @returns the znode, NO_ZNODE after a fault */
  #addZnode(path: BytesRange, data: Uint8Array | null, aclId: number, persisted: number): ZnodeNumber {
    const state = this.#state;
    const { bytes } = path;
    const owner = persisted + PersistedOffset.ephemeralOwner;
    const high = getInt(bytes, owner);
    const low = getInt(bytes, owner + 4);
    const kind = kindOfOwner(high, low, state.extendedTypesEnabled);
    if (kind === null) return this.#refuse(path, `has the owner 0x${hex(high)}${hex(low)}, which is no kind`);
    if (!areZxids(bytes, persisted)) return this.#refuse(path, 'has a zxid that is out of range');
    const ascii = isAscii(path);
    let z =
      ascii && path.end - path.start > 1
        ? state.table.findBytes(bytes, path.start, path.end)
        : state.table.find(textOf(path));
    if (z === NO_ZNODE) {
      const parent = ascii ? state.findParentBytes(bytes, path.start, path.end) : state.findParent(textOf(path));
      if (parent === NO_ZNODE) return this.#refuse(path, 'has no parent');
      z = ascii ? state.addBytes(path, parent, kind, data, aclId) : state.add(textOf(path), parent, kind, data, aclId);
      if (kind === ZnodeKind.ephemeral) {
        this.#reader.reset(bytes, owner, owner + 8);
        state.setSession(z, this.#reader.longBig());
      } else if (kind === ZnodeKind.ttl) {
        state.ttls.set(z, ttlOfOwner(high, low));
      }
    } else {
      if (!SYSTEM_PATHS.has(state.table.pathOf(z))) return this.#refuse(path, 'is there twice');
      state.replaceData(z, data);
      state.replaceAcl(z, aclId);
    }
    this.#fillStat(z, bytes, persisted);
    return z;
  }

  /** Everything of the stat but what follows from data, children and kind. */
  #fillStat(z: ZnodeNumber, bytes: Uint8Array, persisted: number): void {
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
  }

  #aclIdOf(bytes: Uint8Array, at: number): number {
    return this.#aclIds.get(getLong(bytes, at)) ?? this.#state.acls.intern(CLOSED_ACL);
  }

  /** What follows from the znodes once all of them are there. */
  #finish(end: number): number {
    this.#phase = 'done';
    this.#quotas.rebuild();
    this.#state.acls.purgeUnused();
    return end;
  }

  #refuse(path: BytesRange, what: string): ZnodeNumber {
    this.#fail(0, `the znode ${textOf(path)} ${what}`);
    return NO_ZNODE;
  }

  #fail(at: number, what: string): number {
    this.fault = `${what} (${this.position})`;
    this.#phase = 'fault';
    return at;
  }
}

/** bytes[start, end): a path as the snapshot has it. */
interface BytesRange {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });
const SYSTEM_PATHS: ReadonlySet<string> = new Set(['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config']);

/** The root is '' here as it is there. */
function textOf({ bytes, start, end }: BytesRange): string {
  return DECODER.decode(bytes.subarray(start, end));
}

function isAscii({ bytes, start, end }: BytesRange): boolean {
  for (let i = start; i < end; i++) if (bytes[i]! > 0x7f) return false;
  return true;
}

/** czxid, mzxid and pzxid: not negative but for −1, and exact numbers. */
function areZxids(bytes: Uint8Array, persisted: number): boolean {
  return (
    isZxidAt(bytes, persisted) &&
    isZxidAt(bytes, persisted + PersistedOffset.mzxid) &&
    isZxidAt(bytes, persisted + PersistedOffset.pzxid)
  );
}

function isZxidAt(bytes: Uint8Array, at: number): boolean {
  const high = getInt(bytes, at);
  return high >= 0 ? high <= ZXID_HIGH_MAX : high === -1 && getInt(bytes, at + 4) === -1;
}

function hex(half: number): string {
  return (half >>> 0).toString(16).padStart(8, '0');
}
