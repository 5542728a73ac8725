import {
  type Acl,
  type CheckRequest,
  CreateMode,
  type CreateRequest,
  type DeleteRequest,
  ErrorCode,
  isTxnWithin,
  isValidPath,
  MULTI_PART_BYTES,
  type MultiOp,
  type MultiRequest,
  type MultiSubTxn,
  OpCode,
  Perm,
  parentOf,
  type SetAclRequest,
  type SetDataRequest,
  TXN_FRAME_BYTES,
  type Txn,
  type TxnHeader,
  txnRecordBytes,
  type WriteRequest,
  type Zxid,
} from '@meerkat/protocol';
import type { Identity } from '../base/ports.ts';
import { ChangeAllowance, weightOf, weightOfAll } from '../tree/change-weight.ts';
import { UNKNOWN_DIGEST } from '../tree/digest.ts';
import { hashOf } from '../tree/path-index.ts';
import { type Prepared, UNPREPARED } from '../tree/prepared.ts';
import { areReadableStats, type Quotas } from '../tree/quota.ts';
import {
  CONTAINER_OWNER,
  isContainerOver,
  isTtlOver,
  ownerOfTtl,
  TTL_MS_MAX,
  ttlOfOwnerLong,
  ZnodeKind,
} from '../tree/znode-kind.ts';
import { NO_ZNODE } from '../tree/znode-rows.ts';
import type { PendingTree } from './pending.ts';
import { PendingZnode } from './pending-znode.ts';
import type { Permission } from './permission.ts';
import type { PrepareSteps } from './prepare-steps.ts';
import { SessionEnd } from './session-end.ts';

export interface PrepareOptions {
  readonly extendedTypesEnabled: boolean;
  readonly enforceQuota: boolean;
  /** Age in milliseconds at which a container that never had a child goes; 0 = never. */
  readonly containerNeverUsedMs: number;
  /** Largest txn with header and digest: what the log, the links and the servers behind them take. */
  readonly txnBytesMax: number;
}

/**
 * Turns requests into txns: every check that can fail happens here, against the tree as it will be
 * (PrepRequestProcessor).
 *
 * A txn says what the tree is afterwards, not what to do: the final name of a sequential znode, the version a znode
 * then has. A request that fails becomes an error txn, which takes a zxid like any other. The order of the checks is
 * Apache's; the first that fails decides. Behind them stands one of ours: a txn that is longer than `txnBytesMax` is
 * MARSHALLINGERROR. Proposed, it would be a packet that learners refuse, and an entry that Apache's server stops at.
 */
export class Preparer {
  readonly #pending: PendingTree;
  readonly #permission: Permission;
  readonly #quotas: Quotas;
  readonly #options: PrepareOptions;
  /** Of the multi prepared last. */
  #multi: Prepared = UNPREPARED;
  /** Bytes that the multi which is being prepared may still take; null outside of one. */
  #room: number | null = null;

  constructor(pending: PendingTree, permission: Permission, quotas: Quotas, options: PrepareOptions) {
    this.#pending = pending;
    this.#permission = permission;
    this.#quotas = quotas;
    this.#options = options;
  }

  prepareWrite(request: WriteRequest | CheckRequest, header: TxnHeader, identities: readonly Identity[]): MultiSubTxn {
    const prepared = this.#prepareOne(request, header, identities);
    return typeof prepared === 'number' ? { type: OpCode.error, error: prepared } : prepared;
  }

  /** All operations, each seeing the ones before it; or, when one fails, none. */
  prepareMulti(request: MultiRequest, header: TxnHeader, identities: readonly Identity[]): Txn {
    return this.multiSteps(request, header, identities).goOn(Number.POSITIVE_INFINITY)!;
  }

  /** The same in steps. Nothing else may be prepared until they are done. */
  multiSteps(request: MultiRequest, header: TxnHeader, identities: readonly Identity[]): PrepareSteps {
    const { ops } = request;
    const txns: MultiSubTxn[] = [];
    const parts: Prepared[] = [];
    let isFailed = false;
    const allowance = new ChangeAllowance();
    this.#room = this.#options.txnBytesMax - TXN_FRAME_BYTES - MULTI_COUNT_BYTES;
    this.#pending.beginMulti();
    const prepareNext = (op: MultiOp): void => {
      const prepared = isFailed ? ErrorCode.runtimeInconsistency : this.#prepareOne(op, header, identities);
      if (typeof prepared === 'number') {
        isFailed = true;
        txns.push({ type: OpCode.error, error: prepared });
      } else {
        txns.push(prepared);
        parts.push(this.#pending.lastPrepared());
      }
      allowance.spend(weightOf(op.path));
    };
    return {
      size: weightOfAll(ops),
      goOn: (count) => {
        allowance.renew(count);
        while (txns.length < ops.length && !allowance.isUsed) prepareNext(ops[txns.length]!);
        if (txns.length < ops.length) return null;
        this.#pending.endMulti(!isFailed);
        this.#room = null;
        this.#multi = { digest: UNKNOWN_DIGEST, znode: NO_ZNODE, parts };
        const txn: Txn = { type: OpCode.multi, txns };
        return isFailed && !isTxnWithin(txn, this.#options.txnBytesMax)
          ? { type: OpCode.multi, txns: toErrors(txns) }
          : txn;
      },
    };
  }

  /** What it has computed on the way to the txn that it returned last. */
  preparedOf(txn: Txn): Prepared {
    switch (txn.type) {
      case OpCode.setData:
      case OpCode.create:
      case OpCode.create2:
      case OpCode.createContainer:
      case OpCode.createTTL:
      case OpCode.delete:
        // The znode that such a txn is about is put last, after its parent.
        return this.#pending.lastPrepared();
      case OpCode.multi:
        return this.#multi;
      default:
        return UNPREPARED;
    }
  }

  /**
   * The session ends: the txn names the ephemerals that it will own, so that all servers delete the same. In steps: nothing
   * else may be prepared until they are done.
   */
  closeSessionSteps(sessionId: bigint, zxid: Zxid): PrepareSteps {
    return new SessionEnd(this.#pending, sessionId, zxid, this.#options.txnBytesMax);
  }

  /**
   * Whether a container or TTL znode will still be one that nobody needs, once what is in flight is applied: since it was
   * found it may have got a child, been written, or made anew.
   */
  isCollectable(path: string, wallMs: number): boolean {
    const znode = this.#pending.find(path);
    if (znode === null || znode.childCount > 0) return false;
    if (!isTxnWithin({ type: OpCode.deleteContainer, path }, this.#options.txnBytesMax)) return false;
    const { kind, cversion, mtime, ephemeralOwner } = znode;
    if (kind === ZnodeKind.ttl) return isTtlOver(ttlOfOwnerLong(ephemeralOwner), wallMs - mtime);
    return (
      kind === ZnodeKind.container && isContainerOver(cversion, wallMs - mtime, this.#options.containerNeverUsedMs)
    );
  }

  /** One that is collectable. No session asks for it and no ACL is in its way. */
  prepareDeleteContainer(path: string, zxid: Zxid): Txn {
    const znode = this.#pending.find(path);
    const parent = this.#pending.find(parentOf(path));
    if (znode === null || parent === null) return { type: OpCode.error, error: ErrorCode.noNode };
    this.#pending.putDeleted(znode, parent, zxid);
    return { type: OpCode.deleteContainer, path };
  }

  #prepareOne(
    request: WriteRequest | MultiOp,
    header: TxnHeader,
    identities: readonly Identity[],
  ): MultiSubTxn | ErrorCode {
    switch (request.op) {
      case OpCode.setData:
        return this.#prepareSetData(request, header, identities);
      case OpCode.create:
      case OpCode.create2:
      case OpCode.createContainer:
      case OpCode.createTTL:
        return this.#prepareCreate(request, header, identities);
      case OpCode.delete:
        return this.#prepareDelete(request, header, identities);
      case OpCode.setACL:
        return this.#prepareSetAcl(request, header, identities);
      case OpCode.check:
        return this.#prepareCheck(request, identities);
    }
  }

  #prepareCreate(request: CreateRequest, header: TxnHeader, identities: readonly Identity[]): MultiSubTxn | ErrorCode {
    const { op, flags, ttl } = request;
    const { zxid, time } = header;
    if (flags < CreateMode.persistent || flags > CreateMode.persistentSequentialWithTtl) return ErrorCode.badArguments;
    const isTtl = flags === CreateMode.persistentWithTtl || flags === CreateMode.persistentSequentialWithTtl;
    if (isTtl && !this.#options.extendedTypesEnabled) return ErrorCode.unimplemented;
    // A createTTL whose flags are not those of a TTL znode brings no valid ttl; Apache's server stops at applying it.
    if (isTtl || op === OpCode.createTTL ? ttl <= 0 || ttl > TTL_MS_MAX : ttl >= 0) return ErrorCode.badArguments;
    if (!isTtl && op === OpCode.createTTL) return ErrorCode.badArguments;

    if (request.path.lastIndexOf('/') < 0 || request.path.includes('\0')) return ErrorCode.badArguments;
    const acl = this.#permission.resolveAcl(request.acl, identities);
    if (acl === null) return ErrorCode.invalidACL;
    const parent = this.#pending.find(request.path.slice(0, request.path.lastIndexOf('/')));
    if (parent === null) return ErrorCode.noNode;
    if (!this.#isAllowed(parent, Perm.create, identities)) return ErrorCode.noAuth;

    const path = isSequential(flags) ? request.path + formatSequence(parent.cversion) : request.path;
    if (!isValidPath(path) || path === ROOT_LIMITS) return ErrorCode.badArguments;
    if (this.#pending.find(path) !== null) return ErrorCode.nodeExists;
    if (parent.kind === ZnodeKind.ephemeral) return ErrorCode.noChildrenForEphemerals;
    const { data } = request;
    const dataLength = data === null ? 0 : data.length;
    if (this.#isOverQuota(path, dataLength, 1)) return ErrorCode.quotaExceeded;

    const isEphemeral =
      (op === OpCode.create || op === OpCode.create2) &&
      (flags === CreateMode.ephemeral || flags === CreateMode.ephemeralSequential);
    // The counter of children ever created stays at its end rather than start anew and give out names twice.
    const parentCversion = Math.min(parent.cversion + 1, SEQUENCE_MAX);
    const txn = createTxnOf(request, path, acl, isEphemeral, parentCversion);
    if (!this.#hasRoomFor(txn)) return ErrorCode.marshallingError;
    const pending = this.#pending;
    const nextParent = pending.edit(parent, zxid);
    nextParent.childCount++;
    pending.setCversion(nextParent, parentCversion);
    pending.setPzxid(nextParent, zxid);
    pending.put(nextParent);

    const created = new PendingZnode(path, hashOf(path), zxid);
    created.kind = kindOf(op, isEphemeral);
    created.acl = acl;
    created.czxid = zxid;
    created.mzxid = zxid;
    created.ctime = time;
    created.mtime = time;
    created.ephemeralOwner = ownerOf(created.kind, header.sessionId, ttl);
    created.pzxid = zxid;
    pending.setData(created, data);
    pending.put(created);
    return txn;
  }

  #prepareDelete(request: DeleteRequest, header: TxnHeader, identities: readonly Identity[]): MultiSubTxn | ErrorCode {
    const { path } = request;
    if (!path.includes('/') || path.includes('\0') || SPECIAL_PATHS.has(path)) return ErrorCode.badArguments;
    const parent = this.#pending.find(path.slice(0, path.lastIndexOf('/')));
    if (parent === null) return ErrorCode.noNode;
    if (!this.#isAllowed(parent, Perm.delete, identities)) return ErrorCode.noAuth;
    const znode = this.#pending.find(path);
    if (znode === null) return ErrorCode.noNode;
    if (!isExpected(request.version, znode.version)) return ErrorCode.badVersion;
    if (znode.childCount > 0) return ErrorCode.notEmpty;
    const txn = { type: OpCode.delete, path };
    if (!this.#hasRoomFor(txn)) return ErrorCode.marshallingError;
    this.#pending.putDeleted(znode, parent, header.zxid);
    return txn;
  }

  #prepareSetData(
    request: SetDataRequest,
    header: TxnHeader,
    identities: readonly Identity[],
  ): MultiSubTxn | ErrorCode {
    const { path, data } = request;
    const znode = this.#pending.find(path);
    if (znode === null || path === '') return faultOfMissing(path);
    if (!this.#isAllowed(znode, Perm.write, identities)) return ErrorCode.noAuth;
    if (!areReadableStats(path, data)) return ErrorCode.badArguments;
    const dataLength = data === null ? 0 : data.length;
    if (this.#isOverQuota(path, dataLength - znode.dataLength, 0)) return ErrorCode.quotaExceeded;
    if (!isExpected(request.version, znode.version)) return ErrorCode.badVersion;
    const version = (znode.version + 1) | 0;
    const txn = { type: OpCode.setData, path, data, version };
    if (!this.#hasRoomFor(txn)) return ErrorCode.marshallingError;
    const next = this.#pending.edit(znode, header.zxid);
    next.mzxid = header.zxid;
    next.mtime = header.time;
    next.version = version;
    this.#pending.setData(next, data);
    this.#pending.put(next);
    return txn;
  }

  #prepareSetAcl(request: SetAclRequest, header: TxnHeader, identities: readonly Identity[]): MultiSubTxn | ErrorCode {
    const { path } = request;
    if (!isValidPath(path)) return ErrorCode.badArguments;
    const acl = this.#permission.resolveAcl(request.acl, identities);
    if (acl === null) return ErrorCode.invalidACL;
    const znode = this.#pending.find(path);
    if (znode === null) return ErrorCode.noNode;
    if (!this.#isAllowed(znode, Perm.admin, identities)) return ErrorCode.noAuth;
    if (!isExpected(request.version, znode.aversion)) return ErrorCode.badVersion;
    const version = (znode.aversion + 1) | 0;
    const txn = { type: OpCode.setACL, path, acl, version };
    if (!this.#hasRoomFor(txn)) return ErrorCode.marshallingError;
    const next = this.#pending.edit(znode, header.zxid);
    next.acl = acl;
    this.#pending.setAversion(next, version);
    this.#pending.put(next);
    return txn;
  }

  #prepareCheck(request: CheckRequest, identities: readonly Identity[]): MultiSubTxn | ErrorCode {
    const { path } = request;
    const znode = this.#pending.find(path);
    if (znode === null || path === '') return faultOfMissing(path);
    if (!this.#isAllowed(znode, Perm.read, identities)) return ErrorCode.noAuth;
    if (!isExpected(request.version, znode.version)) return ErrorCode.badVersion;
    const txn = { type: OpCode.check, path, version: (znode.version + 1) | 0 };
    return this.#hasRoomFor(txn) ? txn : ErrorCode.marshallingError;
  }

  /** Whether the txn, or as a part of the multi all of it so far, is not too long. */
  #hasRoomFor(txn: MultiSubTxn): boolean {
    if (this.#room === null) return isTxnWithin(txn, this.#options.txnBytesMax);
    const bytes = MULTI_PART_BYTES + txnRecordBytes(txn);
    if (bytes > this.#room) return false;
    this.#room -= bytes;
    return true;
  }

  #isAllowed(znode: PendingZnode, perms: number, identities: readonly Identity[]): boolean {
    return this.#permission.isAllowed(znode.acl, perms, identities);
  }

  #isOverQuota(path: string, bytesDelta: number, countDelta: number): boolean {
    return this.#options.enforceQuota && this.#quotas.check(path, bytesDelta, countDelta) !== 'ok';
  }
}

const MULTI_COUNT_BYTES = 4;

/**
 * A multi that has failed, in the shortest form: nobody needs to know what its first parts were to be. They become
 * errors that are none.
 */
function toErrors(txns: readonly MultiSubTxn[]): readonly MultiSubTxn[] {
  return txns.map((part) => (part.type === OpCode.error ? part : { type: OpCode.error, error: ErrorCode.ok }));
}

function createTxnOf(
  { op, data, ttl }: CreateRequest,
  path: string,
  acl: readonly Acl[],
  isEphemeral: boolean,
  parentCversion: number,
): MultiSubTxn {
  switch (op) {
    case OpCode.createContainer:
      return { type: op, path, data, acl, parentCversion };
    case OpCode.createTTL:
      return { type: op, path, data, acl, parentCversion, ttl };
    default:
      return { type: op, path, data, acl, isEphemeral, parentCversion };
  }
}

/**
 * A quota of the root, which there is none of. A txn that makes this znode ends every server of Apache that applies it, and
 * each time that it is started again.
 */
const ROOT_LIMITS = '/zookeeper/quota/zookeeper_limits';

/** The system's own znodes, which nobody deletes. */
const SPECIAL_PATHS: ReadonlySet<string> = new Set(['/', '/zookeeper', '/zookeeper/config', '/zookeeper/quota']);

/**
 * What comes of a path under which no znode was found, or of the empty one, which names the root here and is no path.
 *
 * Apache's server looks at the path before it looks for the znode. A path that is found is valid, for it was looked at
 * when the znode was created; so only what is not found has to be.
 */
function faultOfMissing(path: string): ErrorCode {
  return isValidPath(path) ? ErrorCode.noNode : ErrorCode.badArguments;
}

function isExpected(expected: number, actual: number): boolean {
  return expected === -1 || expected === actual;
}

function isSequential(flags: number): boolean {
  return (
    flags === CreateMode.persistentSequential ||
    flags === CreateMode.ephemeralSequential ||
    flags === CreateMode.persistentSequentialWithTtl
  );
}

/** Largest number of children ever created that a parent can count. */
const SEQUENCE_MAX = 2 ** 32 - 1;

/** Ten digits, so that names sort as numbers: 0 … 4,294,967,295. */
function formatSequence(sequence: number): string {
  return sequence.toString().padStart(10, '0');
}

/** The operation decides what a znode is, not the flags: create with the flags of a container makes a plain znode. */
function kindOf(op: CreateRequest['op'], isEphemeral: boolean): ZnodeKind {
  if (op === OpCode.createContainer) return ZnodeKind.container;
  if (op === OpCode.createTTL) return ZnodeKind.ttl;
  return isEphemeral ? ZnodeKind.ephemeral : ZnodeKind.persistent;
}

function ownerOf(kind: ZnodeKind, sessionId: bigint, ttl: number): bigint {
  switch (kind) {
    case ZnodeKind.ephemeral:
      return sessionId;
    case ZnodeKind.container:
      return CONTAINER_OWNER;
    case ZnodeKind.ttl:
      return ownerOfTtl(ttl);
    default:
      return 0n;
  }
}
