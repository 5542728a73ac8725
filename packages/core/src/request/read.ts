import {
  type Acl,
  type ClientInfo,
  ErrorCode,
  type JuteWriter,
  type MultiReadRequest,
  OpCode,
  Perm,
  type Request,
  writeAclList,
  writeClientInfos,
  writeMultiEnd,
  writeMultiError,
  writeMultiHeader,
} from '@meerkat/protocol';
import type { Authenticator, Identity } from '../ports.ts';
import { OPEN_ACL_ID } from '../tree/acl-table.ts';
import type { DataTree } from '../tree/data-tree.ts';
import type { WatchManager } from '../watch/watch-manager.ts';
import { WatchMode } from '../watch/watch-table.ts';
import type { Client } from './client.ts';
import type { Permission } from './permission.ts';
import { WatchRequests } from './watch-requests.ts';

/**
 * Answers what needs no txn, from the applied tree (FinalRequestProcessor).
 *
 * A watch is left only when the read succeeds, except by exists, which may watch for a znode to come.
 */
export class Reads {
  readonly #tree: DataTree;
  readonly #watches: WatchManager;
  readonly #permission: Permission;
  readonly #authenticator: Authenticator;
  readonly #watchRequests: WatchRequests;

  constructor(tree: DataTree, watches: WatchManager, permission: Permission, authenticator: Authenticator) {
    this.#tree = tree;
    this.#watches = watches;
    this.#permission = permission;
    this.#authenticator = authenticator;
    this.#watchRequests = new WatchRequests(tree, watches);
  }

  answer(client: Client, xid: number, request: Request, receivedMs: number): void {
    const error = this.#answer(client, xid, request);
    if (error !== ErrorCode.ok) this.#begin(client, xid, error);
    client.endReply(receivedMs);
  }

  /** @returns `ok` when it has begun a reply and written its record; otherwise the code to refuse with */
  #answer(client: Client, xid: number, request: Request): ErrorCode {
    switch (request.op) {
      case OpCode.getData: {
        const znode = this.#tree.find(request.path);
        const error = this.#check(znode, Perm.read, client.identities);
        if (error !== ErrorCode.ok) return error;
        if (request.watch) this.#watches.data.add(request.path, client, WatchMode.standard);
        this.#tree.writeDataAndStat(znode, this.#begin(client, xid));
        break;
      }
      case OpCode.exists: {
        if (request.path.includes('\0')) return ErrorCode.badArguments;
        const znode = this.#tree.find(request.path);
        const error = this.#check(znode, Perm.read, client.identities);
        if (error === ErrorCode.noAuth) return error;
        if (request.watch) this.#watches.data.add(request.path, client, WatchMode.standard);
        if (error !== ErrorCode.ok) return error;
        this.#tree.writeStat(znode, this.#begin(client, xid));
        break;
      }
      case OpCode.getChildren:
      case OpCode.getChildren2: {
        const znode = this.#tree.find(request.path);
        const error = this.#check(znode, Perm.read, client.identities);
        if (error !== ErrorCode.ok) return error;
        if (request.watch) this.#watches.child.add(request.path, client, WatchMode.standard);
        const writer = this.#begin(client, xid);
        this.#tree.writeChildren(znode, writer);
        if (request.op === OpCode.getChildren2) this.#tree.writeStat(znode, writer);
        break;
      }
      case OpCode.getACL: {
        const znode = this.#tree.find(request.path);
        const error = this.#check(znode, Perm.read | Perm.admin, client.identities);
        if (error !== ErrorCode.ok) return error;
        const writer = this.#begin(client, xid);
        this.#writeAcl(znode, client.identities, writer);
        this.#tree.writeStat(znode, writer);
        break;
      }
      case OpCode.getAllChildrenNumber: {
        const znode = this.#tree.find(request.path);
        const error = this.#check(znode, Perm.read, client.identities);
        if (error !== ErrorCode.ok) return error;
        this.#begin(client, xid).int(this.#tree.descendantCountOf(znode));
        break;
      }
      case OpCode.getEphemerals:
        this.#writeEphemerals(request.prefix, client, this.#begin(client, xid));
        break;
      case OpCode.multiRead:
        this.#writeResults(request, client.identities, this.#begin(client, xid));
        break;
      case OpCode.whoAmI:
        writeClientInfos(this.#begin(client, xid), client.identities.map(this.#infoOf, this));
        break;
      case OpCode.setWatches:
      case OpCode.setWatches2:
        this.#watchRequests.setWatches(request, client);
        this.#begin(client, xid);
        break;
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
        return ErrorCode.unimplemented;
    }
    return ErrorCode.ok;
  }

  #begin(client: Client, xid: number, error: ErrorCode = ErrorCode.ok): JuteWriter {
    return client.beginReply(xid, this.#tree.lastZxid, error);
  }

  #check(znode: number, perms: number, identities: readonly Identity[]): ErrorCode {
    if (znode === 0) return ErrorCode.noNode;
    const aclId = this.#tree.aclOf(znode);
    if (aclId === OPEN_ACL_ID || this.#permission.isAllowed(this.#tree.acls.get(aclId), perms, identities)) {
      return ErrorCode.ok;
    }
    return ErrorCode.noAuth;
  }

  /** Who may not administer the znode does not see the digests of passwords. */
  #writeAcl(znode: number, identities: readonly Identity[], writer: JuteWriter): void {
    const acl = this.#tree.acls.get(this.#tree.aclOf(znode));
    const isAdmin = this.#permission.isAllowed(acl, Perm.admin, identities);
    writeAclList(writer, isAdmin ? acl : acl.map(maskDigest));
  }

  #writeEphemerals(prefix: string | null, client: Client, writer: JuteWriter): void {
    const paths = client.session === null ? [] : this.#tree.ephemeralsOf(client.session.id);
    const isAll = prefix === null || prefix.trim() === '' || prefix === '/';
    const wanted = isAll ? paths : paths.filter((path) => path.startsWith(prefix));
    writer.int(wanted.length);
    for (const path of wanted) writer.ustring(path);
  }

  #writeResults(request: MultiReadRequest, identities: readonly Identity[], writer: JuteWriter): void {
    for (const { op, path } of request.ops) {
      const znode = this.#tree.find(path);
      const error = this.#check(znode, Perm.read, identities);
      if (error !== ErrorCode.ok) {
        writeMultiError(writer, error);
        continue;
      }
      writeMultiHeader(writer, op, false, ErrorCode.ok);
      if (op === OpCode.getData) this.#tree.writeDataAndStat(znode, writer);
      else this.#tree.writeChildren(znode, writer);
    }
    writeMultiEnd(writer);
  }

  #infoOf(identity: Identity): ClientInfo {
    return { scheme: identity.scheme, user: this.#authenticator.userName(identity) };
  }
}

/** `digest:ann:hash` becomes `digest:ann:x`. */
function maskDigest(acl: Acl): Acl {
  if (acl.scheme !== 'digest' || acl.id === null) return acl;
  const colon = acl.id.indexOf(':');
  return colon < 0 ? acl : { ...acl, id: `${acl.id.slice(0, colon)}:x` };
}
