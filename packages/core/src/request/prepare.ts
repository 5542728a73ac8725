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
  /** Age in milliseconds at which a container that never had a child is deleted; 0 = never. */
  readonly containerNeverUsedMs: number;
  /** Largest txn, with header and digest, that the log, the links and other servers accept. */
  readonly txnBytesMax: number;
}

/**
 * Turns requests into txns: every check that can fail happens here, against the tree as it will be
 * (PrepRequestProcessor).
 *
 * A txn describes the resulting state, such as the final name of a sequential znode or the new version. A request that
 * fails becomes an error txn, which takes a zxid like any other. The order of the checks is Apache's; the first failure
 * decides. We add one check after them: a txn longer than `txnBytesMax` fails with MARSHALLINGERROR, because learners
 * would refuse its packet, and Apache's server fails when it reads such an entry from its log.
 */
export class Preparer {
  readonly #pending: PendingTree;
  readonly #permission: Permission;
  readonly #quotas: Quotas;
  readonly #options: PrepareOptions;
  /** Of the last prepared multi. */
  #multi: Prepared = UNPREPARED;
  /** Bytes left for the multi that is being prepared; null outside of one. */
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

  /** All operations, each seeing the effects of the ones before it, or none if one fails. */
  prepareMulti(request: MultiRequest, header: TxnHeader, identities: readonly Identity[]): Txn {
    return this.multiSteps(request, header, identities).advance(Number.POSITIVE_INFINITY)!;
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
      advance: (count) => {
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

  /** What was computed along with the last returned txn. */
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
   * Prepares a closeSession. Its txn lists the ephemerals that the session will own, so that all servers delete the
   * same ones. Nothing else may be prepared until all steps are done.
   */
  closeSessionSteps(sessionId: bigint, zxid: Zxid): PrepareSteps {
    return new SessionEnd(this.#pending, sessionId, zxid, this.#options.txnBytesMax);
  }

  /**
   * Whether a container or TTL znode will still be empty and expired once everything in flight is applied: since it was
   * found it may have got a child, been written or been recreated.
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

  /** Deletes a collectable znode. No session requests it, and ACLs are not checked. */
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
    // A createTTL without the flags of a TTL znode has no valid ttl; Apache's server fails when it applies one.
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
    // The counter of children ever created stops at its maximum instead of wrapping around and reusing names.
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

  /** Whether the txn, or the multi with this part, is within `txnBytesMax`. */
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
 * The shortest form of a failed multi: the parts before the failed one become errors with code 0, as their contents
 * are not needed.
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
 * The root cannot have a quota. A txn that creates this znode crashes every Apache server that applies it, again after
 * each restart.
 */
const ROOT_LIMITS = '/zookeeper/quota/zookeeper_limits';

/** System znodes, which cannot be deleted. */
const SPECIAL_PATHS: ReadonlySet<string> = new Set(['/', '/zookeeper', '/zookeeper/config', '/zookeeper/quota']);

/**
 * The error for a path that was not found, or for the empty path, which is invalid but finds the root here.
 *
 * Apache's server validates the path before it looks up the znode. The path of an existing znode is valid, because it
 * was validated by its create, so only the others need a check.
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

/** The op code decides the kind, not the flags: create with the flags of a container creates a persistent znode. */
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
