/**
 * Transactions: the decided effects of requests in absolute terms, so that applying one is idempotent (zookeeper.jute,
 * SerializeUtils). The transaction log and proposals hold the same bytes.
 *
 *     payload   := TxnHeader record? TxnDigest?
 *     TxnHeader := long clientId, int cxid, long zxid, long time, int type        (32 bytes)
 *     TxnDigest := int version, long treeDigest                                    (12 bytes)
 */
import type { JuteReader } from '../jute/reader.ts';
import type { JuteWriter } from '../jute/writer.ts';
import { OpCode } from '../op-code.ts';
import { isZxid, type Zxid } from '../zxid.ts';
import { type Acl, readAclList, writeAclList } from './data.ts';

export interface TxnHeader {
  /** Session that requested the change; 0n for the server itself. */
  readonly sessionId: bigint;
  /** The xid of the request. */
  readonly cxid: number;
  readonly zxid: Zxid;
  /** Wall-clock milliseconds at the server that decided; becomes ctime and mtime. */
  readonly time: number;
}

/** op 1 and 15; `isEphemeral` makes the header's session the owner. */
export interface CreateTxn {
  readonly type: typeof OpCode.create | typeof OpCode.create2;
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[];
  readonly isEphemeral: boolean;
  /**
   * Number of children ever created in the parent, including this one; −1 in logs before 3.4: the parent's count plus
   * one.
   */
  readonly parentCversion: number;
}

export interface CreateContainerTxn {
  readonly type: typeof OpCode.createContainer;
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[];
  readonly parentCversion: number;
}

export interface CreateTtlTxn {
  readonly type: typeof OpCode.createTTL;
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[];
  readonly parentCversion: number;
  /** Milliseconds. */
  readonly ttl: number;
}

export interface DeleteTxn {
  readonly type: typeof OpCode.delete | typeof OpCode.deleteContainer;
  readonly path: string;
}

export interface SetDataTxn {
  readonly type: typeof OpCode.setData | typeof OpCode.reconfig;
  readonly path: string;
  readonly data: Uint8Array | null;
  /** The version of the znode afterwards. */
  readonly version: number;
}

export interface SetAclTxn {
  readonly type: typeof OpCode.setACL;
  readonly path: string;
  readonly acl: readonly Acl[];
  /** The aversion of the znode afterwards. */
  readonly version: number;
}

/** Only inside a multi; applying it has no effect. */
export interface CheckTxn {
  readonly type: typeof OpCode.check;
  readonly path: string;
  readonly version: number;
}

export interface CreateSessionTxn {
  readonly type: typeof OpCode.createSession;
  readonly timeoutMs: number;
}

export interface CloseSessionTxn {
  readonly type: typeof OpCode.closeSession;
  /** Ephemerals to delete; null in logs before 3.6: all that the session owns. */
  readonly paths: readonly string[] | null;
}

/** A request that failed: it takes a zxid and changes nothing. */
export interface ErrorTxn {
  readonly type: typeof OpCode.error;
  readonly error: number;
}

export type MultiSubTxn =
  | CreateTxn
  | CreateContainerTxn
  | CreateTtlTxn
  | DeleteTxn
  | SetDataTxn
  | SetAclTxn
  | CheckTxn
  | ErrorTxn;

/** Applies all of its parts or, if one of them is an ErrorTxn, none. */
export interface MultiTxn {
  readonly type: typeof OpCode.multi;
  readonly txns: readonly MultiSubTxn[];
}

export type Txn = MultiSubTxn | CreateSessionTxn | CloseSessionTxn | MultiTxn;

/** Digest of the whole tree after the txn (AdHash): version 2 is the one in use. */
export interface TxnDigest {
  readonly version: number;
  readonly treeDigest: bigint;
}

export const DIGEST_VERSION = 2;

const DIGEST_BYTES = 12;

export interface TxnEntry {
  readonly header: TxnHeader;
  readonly txn: Txn;
  readonly digest: TxnDigest | null;
}

export function writeTxn(writer: JuteWriter, header: TxnHeader, txn: Txn): void {
  writer.longBig(header.sessionId);
  writer.int(header.cxid);
  writer.long(header.zxid);
  writer.long(header.time);
  writer.int(txn.type);
  writeTxnRecord(writer, txn);
}

export function writeTxnDigest(writer: JuteWriter, version: number, treeDigest: bigint): void {
  writer.int(version);
  writer.longBig(treeDigest);
}

/**
 * Reads a payload of the log or of a proposal.
 *
 * Byte fields are views into the reader's bytes.
 * @returns null when the bytes are not a txn that this server knows
 */
export function readTxnEntry(reader: JuteReader): TxnEntry | null {
  const sessionId = reader.longBig();
  const cxid = reader.int();
  const zxid = reader.long();
  const time = reader.long();
  const type = reader.int();
  if (reader.failed || !isZxid(zxid)) return null;
  const txn = readTxnRecord(type, reader);
  if (txn === null || reader.failed) return null;
  const digest = reader.remaining >= DIGEST_BYTES ? { version: reader.int(), treeDigest: reader.longBig() } : null;
  return { header: { sessionId, cxid, zxid, time }, txn, digest };
}

function writeTxnRecord(writer: JuteWriter, txn: Txn): void {
  switch (txn.type) {
    case OpCode.create:
    case OpCode.create2:
      writer.ustring(txn.path);
      writer.buffer(txn.data);
      writeAclList(writer, txn.acl);
      writer.boolean(txn.isEphemeral);
      writer.int(txn.parentCversion);
      return;
    case OpCode.createContainer:
      writer.ustring(txn.path);
      writer.buffer(txn.data);
      writeAclList(writer, txn.acl);
      writer.int(txn.parentCversion);
      return;
    case OpCode.createTTL:
      writer.ustring(txn.path);
      writer.buffer(txn.data);
      writeAclList(writer, txn.acl);
      writer.int(txn.parentCversion);
      writer.long(txn.ttl);
      return;
    case OpCode.delete:
    case OpCode.deleteContainer:
      writer.ustring(txn.path);
      return;
    case OpCode.setData:
    case OpCode.reconfig:
      writer.ustring(txn.path);
      writer.buffer(txn.data);
      writer.int(txn.version);
      return;
    case OpCode.setACL:
      writer.ustring(txn.path);
      writeAclList(writer, txn.acl);
      writer.int(txn.version);
      return;
    case OpCode.check:
      writer.ustring(txn.path);
      writer.int(txn.version);
      return;
    case OpCode.createSession:
      writer.int(txn.timeoutMs);
      return;
    case OpCode.closeSession:
      if (txn.paths === null) return;
      writer.int(txn.paths.length);
      for (const path of txn.paths) writer.ustring(path);
      return;
    case OpCode.error:
      writer.int(txn.error);
      return;
    case OpCode.multi:
      writer.int(txn.txns.length);
      for (const part of txn.txns) {
        // Servers before 3.8.2 do not know create2 inside a multi: they stop in the middle, and their trees diverge.
        writer.int(part.type === OpCode.create2 ? OpCode.create : part.type);
        const lengthAt = writer.beginFrame();
        writeTxnRecord(writer, part);
        writer.endFrame(lengthAt);
      }
      return;
  }
}

/** `reader.end` is the latest end of the record; it tells whether fields are present that old logs lack. */
function readTxnRecord(type: number, reader: JuteReader): Txn | null {
  switch (type) {
    case OpCode.createSession:
      return { type, timeoutMs: reader.int() };
    case OpCode.closeSession:
      return readCloseSession(reader);
    case OpCode.multi:
      return readMultiTxn(reader);
    default:
      return readSubTxnRecord(type, reader);
  }
}

/** Txns that may occur alone or inside a multi. A multi may not be nested, so hostile nesting costs no stack. */
function readSubTxnRecord(type: number, reader: JuteReader): MultiSubTxn | null {
  switch (type) {
    case OpCode.create:
    case OpCode.create2: {
      const path = reader.ustring();
      const data = reader.buffer();
      const acl = readAclList(reader);
      const isEphemeral = reader.boolean();
      // CreateTxnV0 has no parentCversion. Such logs have no digest either, so nothing follows the record.
      const parentCversion = reader.remaining >= 4 ? reader.int() : -1;
      return path === null ? null : { type, path, data, acl, isEphemeral, parentCversion };
    }
    case OpCode.createContainer: {
      const path = reader.ustring();
      const data = reader.buffer();
      const acl = readAclList(reader);
      const parentCversion = reader.int();
      return path === null ? null : { type, path, data, acl, parentCversion };
    }
    case OpCode.createTTL: {
      const path = reader.ustring();
      const data = reader.buffer();
      const acl = readAclList(reader);
      const parentCversion = reader.int();
      const ttl = reader.long();
      return path === null ? null : { type, path, data, acl, parentCversion, ttl };
    }
    case OpCode.delete:
    case OpCode.deleteContainer: {
      const path = reader.ustring();
      return path === null ? null : { type, path };
    }
    case OpCode.setData:
    case OpCode.reconfig: {
      const path = reader.ustring();
      const data = reader.buffer();
      const version = reader.int();
      return path === null ? null : { type, path, data, version };
    }
    case OpCode.setACL: {
      const path = reader.ustring();
      const acl = readAclList(reader);
      const version = reader.int();
      return path === null ? null : { type, path, acl, version };
    }
    case OpCode.check: {
      const path = reader.ustring();
      const version = reader.int();
      return path === null ? null : { type, path, version };
    }
    case OpCode.error:
      return { type, error: reader.int() };
    default:
      return null;
  }
}

/**
 * The list of paths is missing in old logs and if `closeSessionTxn.enabled` is off; a digest may follow instead. The
 * list is present if its count and texts fill the bytes up to a possible digest.
 */
function readCloseSession(reader: JuteReader): CloseSessionTxn {
  const start = reader.position;
  if (reader.remaining >= 4) {
    const paths = readPaths(reader);
    if (paths !== null && (reader.remaining === 0 || reader.remaining === DIGEST_BYTES)) {
      return { type: OpCode.closeSession, paths };
    }
  }
  reader.reset(reader.bytes, start, reader.end);
  return { type: OpCode.closeSession, paths: null };
}

function readPaths(reader: JuteReader): readonly string[] | null {
  const count = reader.vectorLength(4);
  const paths: string[] = [];
  for (let i = 0; i < count; i++) {
    const path = reader.ustring();
    if (path === null) return null;
    paths.push(path);
  }
  return reader.failed ? null : paths;
}

function readMultiTxn(reader: JuteReader): MultiTxn | null {
  const count = reader.vectorLength(8);
  const txns: MultiSubTxn[] = [];
  const end = reader.end;
  for (let i = 0; i < count; i++) {
    const type = reader.int();
    const length = reader.int();
    const partEnd = reader.position + length;
    if (reader.failed || length < 0 || partEnd > end) return null;
    // A part is limited to its own bytes: one that is too short must not continue into the next.
    reader.end = partEnd;
    const part = readSubTxnRecord(type, reader);
    reader.end = end;
    if (part === null || reader.failed) return null;
    reader.position = partEnd;
    txns.push(part);
  }
  return { type: OpCode.multi, txns };
}
