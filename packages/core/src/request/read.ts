import {
  type Acl,
  type ClientInfo,
  ErrorCode,
  type JuteWriter,
  OpCode,
  Perm,
  type ReadRequest,
  writeAclList,
  writeClientInfos,
} from '@meerkat/protocol';
import type { Meters } from '../base/meters/meters.ts';
import type { NamespaceMeters } from '../base/meters/namespace-meters.ts';
import type { Authenticator, Identity, Trace } from '../base/ports.ts';
import { ChildNames } from '../tree/child-names.ts';
import { type DataTree, NO_ZNODE, ROOT } from '../tree/data-tree.ts';
import { DescendantCount } from '../tree/descendant-count.ts';
import { EphemeralNames } from '../tree/ephemeral-names.ts';
import type { WatchManager } from '../watch/watch-manager.ts';
import { WatchMode } from '../watch/watch-table.ts';
import type { Client, LongRead } from './client.ts';
import { Descendants } from './descendants.ts';
import { LEASE_PATH, writeLeaseZnode } from './lease-znode.ts';
import { SLICE_STEPS } from './long-read.ts';
import { type LongReadLimiter, NO_ROOM } from './long-read-limiter.ts';
import { MultiRead, type MultiReadParts } from './multi-read.ts';
import { NameList } from './name-list.ts';
import type { Permission } from './permission.ts';
import { PiecePool } from './piece-pool.ts';
import { ReadAccess } from './read-access.ts';
import { WatchRequests } from './watch-requests.ts';
import { WatchRestoration } from './watch-restoration.ts';
import type { WorkMeter } from './work-meter.ts';

export interface ReadsParts {
  readonly tree: DataTree;
  readonly watches: WatchManager;
  readonly permission: Permission;
  readonly authenticator: Authenticator;
  readonly work: WorkMeter;
  readonly meters: Meters;
  readonly trace: Trace;
  /** Longest reply to a multiRead in bytes. */
  readonly multiReadBytesMax: number;
  /** Default: answers are not leased. */
  readonly leases?: LeaseKnowledge;
}

/** Whether clients can rely on this server's answers without a safety margin. */
export interface LeaseKnowledge {
  /** Milliseconds; 0 on a standalone server; null when servers of the ensemble hold no such leases or it is unknown. */
  readonly sharedLeaseMs: number | null;
}

/**
 * Answers requests that need no txn, from the applied tree (FinalRequestProcessor).
 *
 * A watch is set only when the read succeeds, except by exists, which may also watch for a znode to be created.
 */
export class Reads {
  readonly #tree: DataTree;
  readonly #watches: WatchManager;
  readonly #permission: Permission;
  readonly #authenticator: Authenticator;
  readonly #watchRequests: WatchRequests;
  readonly #access: ReadAccess;
  readonly #namespaces: NamespaceMeters;
  /** Parts for reads that take several turns. */
  readonly #parts: ReadsParts & Pick<MultiReadParts, 'access' | 'pieces'>;

  constructor(parts: ReadsParts) {
    this.#tree = parts.tree;
    this.#watches = parts.watches;
    this.#permission = parts.permission;
    this.#authenticator = parts.authenticator;
    this.#watchRequests = new WatchRequests(parts.watches);
    this.#access = new ReadAccess(parts.tree, parts.permission);
    this.#namespaces = parts.meters.namespaces;
    this.#parts = { ...parts, access: this.#access, pieces: new PiecePool() };
  }

  /**
   * @param room entered by a client whose answer may need several turns; null when it is already inside or needs no
   *   room
   * @returns null when it has been answered; `NO_ROOM` when it has not begun and the client waits for room; otherwise a
   *   read that the caller must continue until it is done, and then answer
   */
  answer(
    client: Client,
    xid: number,
    request: ReadRequest,
    receivedMs: number,
    room: LongReadLimiter | null,
  ): LongRead | typeof NO_ROOM | null {
    const outcome = this.#answer(client, xid, request, room);
    if (typeof outcome !== 'number') {
      if (outcome === NO_ROOM || !outcome.advance()) return outcome;
      if (client.isOpen) outcome.answer(client, xid, receivedMs);
      return null;
    }
    if (outcome !== ErrorCode.ok) this.#begin(client, xid, outcome);
    client.output.endReply(receivedMs);
    return null;
  }

  /** Whether a request needs room: long ones do, except setWatches, which buffers no reply. */
  needsRoom(client: Client, request: ReadRequest): boolean {
    if (request.op === OpCode.multiRead && request.ops.length > 1) return true;
    return request.op !== OpCode.setWatches && request.op !== OpCode.setWatches2 && this.isLong(client, request);
  }

  /** Whether a request must not begin in a turn that other clients have used up. */
  isCostly(client: Client, request: ReadRequest): boolean {
    if (request.op !== OpCode.getData) return this.isLong(client, request) || this.needsRoom(client, request);
    const znode = this.#tree.znodes.find(request.path);
    return znode !== NO_ZNODE && this.#tree.dataLengthOf(znode) >= LARGE_DATA_BYTES;
  }

  /** Whether a request will probably take several turns, judging by the current tree. */
  isLong(client: Client, request: ReadRequest): boolean {
    switch (request.op) {
      case OpCode.getChildren:
      case OpCode.getChildren2:
        return this.#hasManyChildren(request.path);
      case OpCode.getEphemerals:
        return this.#tree.ephemeralCountOf(client.session?.id ?? 0n) > SLICE_STEPS;
      case OpCode.multiRead:
        return (
          request.ops.length > FEW_OPS ||
          request.ops.some(({ op, path }) => op === OpCode.getChildren && this.#hasManyChildren(path))
        );
      case OpCode.getAllChildrenNumber:
      case OpCode.setWatches:
      case OpCode.setWatches2:
        return true;
      case OpCode.exists:
      case OpCode.getData:
      case OpCode.getACL:
      case OpCode.addWatch:
      case OpCode.checkWatches:
      case OpCode.removeWatches:
      case OpCode.whoAmI:
        return false;
    }
  }

  /** Answers a getData of a path that is not in the tree. */
  #answerMissing(client: Client, xid: number, path: string): ErrorCode {
    const leaseMs = path === LEASE_PATH ? (this.#parts.leases?.sharedLeaseMs ?? null) : null;
    if (leaseMs === null) return ErrorCode.noNode;
    writeLeaseZnode(leaseMs, this.#begin(client, xid));
    return ErrorCode.ok;
  }

  /**
   * @returns `ok` when the reply is begun and its record written; an error code for the reply; or a read that will
   *   answer when it is done
   */
  #answer(
    client: Client,
    xid: number,
    request: ReadRequest,
    room: LongReadLimiter | null,
  ): ErrorCode | LongRead | typeof NO_ROOM {
    switch (request.op) {
      case OpCode.getData: {
        const znode = this.#tree.znodes.find(request.path);
        const error = this.#access.check(znode, Perm.read, client.identities);
        if (error !== ErrorCode.ok) {
          return error === ErrorCode.noNode ? this.#answerMissing(client, xid, request.path) : error;
        }
        if (request.watch) this.#watches.data.add(request.path, client, WatchMode.standard);
        const dataBytes = this.#tree.writeDataAndStat(znode, this.#begin(client, xid));
        this.#parts.work.add(dataBytes >> DATA_PER_UNIT_SHIFT);
        this.#namespaces.onRead(request.path, dataBytes);
        break;
      }
      case OpCode.exists: {
        if (request.path.includes('\0')) return ErrorCode.badArguments;
        const znode = this.#tree.znodes.find(request.path);
        const error = this.#access.check(znode, Perm.read, client.identities);
        if (error === ErrorCode.noAuth) return error;
        if (request.watch) this.#watches.data.add(request.path, client, WatchMode.standard);
        if (error !== ErrorCode.ok) return error;
        this.#tree.writeStat(znode, this.#begin(client, xid));
        this.#namespaces.onRead(request.path, 0);
        break;
      }
      case OpCode.getChildren:
      case OpCode.getChildren2: {
        const znode = this.#tree.znodes.find(request.path);
        const error = this.#access.check(znode, Perm.read, client.identities);
        if (error !== ErrorCode.ok) return error;
        const isLong = this.#tree.znodes.childCountOf(znode) > SLICE_STEPS;
        if (isLong && room?.enter(client) === false) return NO_ROOM;
        if (request.watch) this.#watches.child.add(request.path, client, WatchMode.standard);
        if (isLong) return this.#childrenOf(znode, request.op);
        this.#parts.work.add(this.#tree.znodes.childCountOf(znode));
        const writer = this.#begin(client, xid);
        this.#tree.writeChildren(znode, writer);
        if (request.op === OpCode.getChildren2) this.#tree.writeStat(znode, writer);
        this.#namespaces.onRead(request.path, 0);
        break;
      }
      case OpCode.getACL: {
        const znode = this.#tree.znodes.find(request.path);
        const error = this.#access.check(znode, Perm.read | Perm.admin, client.identities);
        if (error !== ErrorCode.ok) return error;
        const writer = this.#begin(client, xid);
        this.#writeAcl(znode, client.identities, writer);
        this.#tree.writeStat(znode, writer);
        break;
      }
      case OpCode.getAllChildrenNumber: {
        const znode = this.#tree.znodes.find(request.path);
        const error = this.#access.check(znode, Perm.read, client.identities);
        if (error !== ErrorCode.ok) return error;
        if (znode !== ROOT) return room?.enter(client) === false ? NO_ROOM : this.#descendantsOf(znode);
        this.#begin(client, xid).int(this.#tree.descendantCount);
        break;
      }
      case OpCode.getEphemerals:
        if (this.isLong(client, request) && room?.enter(client) === false) return NO_ROOM;
        return this.#ephemeralsOf(client, request.prefix);
      case OpCode.multiRead:
        if (this.needsRoom(client, request) && room?.enter(client) === false) return NO_ROOM;
        return new MultiRead(request.ops, client.identities, this.#parts);
      case OpCode.whoAmI:
        this.#parts.work.add(client.identities.length * IDENTITY_UNITS);
        writeClientInfos(this.#begin(client, xid), client.identities.map(this.#infoOf, this));
        break;
      case OpCode.setWatches:
      case OpCode.setWatches2:
        return new WatchRestoration(request, client, this.#parts);
      case OpCode.addWatch:
      case OpCode.checkWatches:
      case OpCode.removeWatches: {
        const error = this.#watchRequests.change(request, client);
        if (error !== ErrorCode.ok) return error;
        const writer = this.#begin(client, xid);
        if (request.op === OpCode.addWatch) writer.int(ErrorCode.ok);
        break;
      }
      default:
        request satisfies never;
    }
    return ErrorCode.ok;
  }

  #hasManyChildren(path: string): boolean {
    const znode = this.#tree.znodes.find(path);
    return znode !== 0 && this.#tree.znodes.childCountOf(znode) > SLICE_STEPS;
  }

  #begin(client: Client, xid: number, error: ErrorCode = ErrorCode.ok): JuteWriter {
    return client.output.beginReply(xid, this.#tree.lastZxid, error);
  }

  #childrenOf(znode: number, op: ReadRequest['op']): LongRead {
    const { state, lastZxid } = this.#tree;
    const stat = op === OpCode.getChildren2 ? this.#tree.statOf(znode) : null;
    return new NameList(new ChildNames(state, znode, lastZxid), lastZxid, stat, this.#parts);
  }

  #descendantsOf(znode: number): LongRead {
    const { state, lastZxid } = this.#tree;
    return new Descendants(new DescendantCount(state, znode, lastZxid), lastZxid, this.#parts.work);
  }

  #ephemeralsOf({ session }: Client, prefix: string | null): LongRead {
    const { state, lastZxid } = this.#tree;
    const wanted = prefix === null || isBlankOrRoot(prefix) ? '' : prefix;
    const names = new EphemeralNames(state, session?.id ?? 0n, wanted, lastZxid);
    return new NameList(names, lastZxid, null, this.#parts);
  }

  /** Masks password digests unless the client has the admin permission. */
  #writeAcl(znode: number, identities: readonly Identity[], writer: JuteWriter): void {
    const acl = this.#tree.acls.get(this.#tree.znodes.aclOf(znode));
    this.#parts.work.add(acl.length * ENTRY_UNITS);
    const isAdmin = this.#permission.isAllowed(acl, Perm.admin, identities);
    writeAclList(writer, isAdmin ? acl : acl.map(maskDigest));
  }

  #infoOf(identity: Identity): ClientInfo {
    return { scheme: identity.scheme, user: this.#authenticator.userName(identity) };
  }
}

/** Cost of writing an identity. */
const IDENTITY_UNITS = 4;
/** Cost of data, most of it in the kernel: one unit per 256 bytes. */
const DATA_PER_UNIT_SHIFT = 8;
/** About fifty microseconds of a turn. */
const LARGE_DATA_BYTES = 64 * 1024;
/** Cost of writing an ACL entry. */
const ENTRY_UNITS = 4;

/** A multiRead of up to this many ops fits into a slice, unless it reads many children. */
const FEW_OPS = 16;

/** True when the text is empty or "/" after Java's trim(). */
function isBlankOrRoot(text: string): boolean {
  let start = 0;
  let end = text.length;
  while (start < end && text.charCodeAt(start) <= SPACE) start++;
  while (start < end && text.charCodeAt(end - 1) <= SPACE) end--;
  return start === end || (end - start === 1 && text[start] === '/');
}

const SPACE = 0x20;

/** `digest:ann:hash` becomes `digest:ann:x`. */
function maskDigest(acl: Acl): Acl {
  if (acl.scheme !== 'digest' || acl.id === null) return acl;
  const colon = acl.id.indexOf(':');
  return colon < 0 ? acl : { ...acl, id: `${acl.id.slice(0, colon)}:x` };
}
