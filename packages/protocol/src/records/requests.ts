import type { JuteReader } from '../jute/reader.ts';
import type { JuteWriter } from '../jute/writer.ts';
import { OpCode } from '../op-code.ts';
import {
  type MultiReadRequest,
  type MultiRequest,
  readMultiReadRequest,
  readMultiRequest,
  writeMultiReadRequest,
  writeMultiRequest,
} from './multi.ts';
import { readTexts, type Texts } from './texts.ts';
import { readCreate, readDelete, readSetAcl, readSetData, type WriteRequest, writeWriteRequest } from './writes.ts';

/** Special xids that clients use in a RequestHeader. */
export const SpecialXid = { notification: -1, ping: -2, auth: -4, setWatches: -8 } as const;

/** A read of one znode that may leave a watch. */
export interface WatchableReadRequest {
  readonly op: typeof OpCode.exists | typeof OpCode.getData | typeof OpCode.getChildren | typeof OpCode.getChildren2;
  readonly path: string;
  readonly watch: boolean;
}

/** A read whose record is one path. */
export interface PathRequest {
  readonly op: typeof OpCode.getACL | typeof OpCode.getAllChildrenNumber;
  readonly path: string;
}

export interface SyncRequest {
  readonly op: typeof OpCode.sync;
  readonly path: string;
}

export interface GetEphemeralsRequest {
  readonly op: typeof OpCode.getEphemerals;
  /** null, blank and "/" all mean every ephemeral of the session. */
  readonly prefix: string | null;
}

export interface SetWatchesRequest {
  readonly op: typeof OpCode.setWatches | typeof OpCode.setWatches2;
  /** Last zxid that the client saw: later changes are reported as events. */
  readonly relativeZxid: number;
  readonly dataWatches: Texts;
  readonly existWatches: Texts;
  readonly childWatches: Texts;
  readonly persistentWatches: Texts;
  readonly persistentRecursiveWatches: Texts;
}

/** Mode of an addWatch (AddWatchMode). */
export const AddWatchMode = { persistent: 0, persistentRecursive: 1 } as const;

export interface AddWatchRequest {
  readonly op: typeof OpCode.addWatch;
  readonly path: string;
  /** An AddWatchMode, unless the client sent another number. */
  readonly mode: number;
}

/** Which watches checkWatches and removeWatches mean (Watcher.WatcherType). */
export const WatcherType = { children: 1, data: 2, any: 3, persistent: 4, persistentRecursive: 5 } as const;

export interface WatcherTypeRequest {
  readonly op: typeof OpCode.checkWatches | typeof OpCode.removeWatches;
  readonly path: string;
  /** A WatcherType, unless the client sent another number. */
  readonly watcherType: number;
}

export interface ReconfigRequest {
  readonly op: typeof OpCode.reconfig;
  readonly joiningServers: string | null;
  readonly leavingServers: string | null;
  readonly newMembers: string | null;
  readonly currentConfigId: number;
}

export interface AuthRequest {
  readonly op: typeof OpCode.auth;
  /** null, as for `auth`, is refused like any unknown credentials. */
  readonly scheme: string | null;
  readonly auth: Uint8Array | null;
}

export interface SaslRequest {
  readonly op: typeof OpCode.sasl;
  readonly token: Uint8Array | null;
}

export interface WhoAmIRequest {
  readonly op: typeof OpCode.whoAmI;
}

/** A request without a record. */
export interface BareRequest {
  readonly op: typeof OpCode.ping | typeof OpCode.closeSession;
}

/** Requests that a server answers from its tree and its watches, without a txn. */
export type ReadRequest =
  | WatchableReadRequest
  | PathRequest
  | GetEphemeralsRequest
  | SetWatchesRequest
  | AddWatchRequest
  | WatcherTypeRequest
  | WhoAmIRequest
  | MultiReadRequest;

/**
 * Requests that a client may send outside a multi. A switch over `op` has no default if it must handle new operations:
 * then the compiler reports missing ones.
 */
export type Request =
  | ReadRequest
  | WriteRequest
  | MultiRequest
  | ReconfigRequest
  | SyncRequest
  | AuthRequest
  | SaslRequest
  | BareRequest;

export type ClientOp = Request['op'];

/**
 * Reads the record that follows a RequestHeader of operation `op`.
 *
 * @returns null when the bytes are not such a record or `op` has none that a client may send
 */
export function readRequest(op: number, reader: JuteReader): Request | null {
  const request = readRecord(op as ClientOp, reader);
  return reader.failed ? null : request;
}

/** True for operations that a client may send outside a multi. Others are answered with UNIMPLEMENTED. */
export function isClientOp(op: number): op is ClientOp {
  return CLIENT_OPS.has(op);
}

/** Operations that occur only in txns, in a multi or in a header of the server. */
type ForeignOp = Exclude<OpCode, ClientOp>;

const FOREIGN_OPS: { readonly [Op in ForeignOp]: true } = {
  [OpCode.notification]: true,
  [OpCode.check]: true,
  [OpCode.deleteContainer]: true,
  [OpCode.error]: true,
  [OpCode.createSession]: true,
};

const CLIENT_OPS: ReadonlySet<number> = new Set<number>(Object.values(OpCode).filter((op) => !(op in FOREIGN_OPS)));

function readRecord(op: ClientOp, reader: JuteReader): Request | null {
  switch (op) {
    case OpCode.getData:
    case OpCode.exists:
    case OpCode.getChildren:
    case OpCode.getChildren2: {
      const path = reader.ustring();
      const watch = reader.boolean();
      return path === null ? null : { op, path, watch };
    }
    case OpCode.setData:
      return readSetData(reader);
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL:
      return readCreate(op, reader);
    case OpCode.delete:
      return readDelete(reader);
    case OpCode.setACL:
      return readSetAcl(reader);
    case OpCode.getACL:
    case OpCode.sync:
    case OpCode.getAllChildrenNumber: {
      const path = reader.ustring();
      return path === null ? null : { op, path };
    }
    case OpCode.getEphemerals:
      return { op, prefix: reader.ustring() };
    case OpCode.multi:
      return readMultiRequest(reader);
    case OpCode.multiRead:
      return readMultiReadRequest(reader);
    case OpCode.setWatches:
    case OpCode.setWatches2:
      return {
        op,
        relativeZxid: reader.longClamped(),
        dataWatches: readTexts(reader),
        existWatches: readTexts(reader),
        childWatches: readTexts(reader),
        persistentWatches: op === OpCode.setWatches2 ? readTexts(reader) : [],
        persistentRecursiveWatches: op === OpCode.setWatches2 ? readTexts(reader) : [],
      };
    case OpCode.addWatch: {
      const path = reader.ustring();
      const mode = reader.int();
      return path === null ? null : { op, path, mode };
    }
    case OpCode.checkWatches:
    case OpCode.removeWatches: {
      const path = reader.ustring();
      const watcherType = reader.int();
      return path === null ? null : { op, path, watcherType };
    }
    case OpCode.reconfig:
      return {
        op,
        joiningServers: reader.ustring(),
        leavingServers: reader.ustring(),
        newMembers: reader.ustring(),
        currentConfigId: reader.longClamped(),
      };
    case OpCode.auth: {
      reader.int(); // an unused type
      return { op, scheme: reader.ustring(), auth: reader.buffer() };
    }
    case OpCode.sasl:
      return { op, token: reader.buffer() };
    case OpCode.ping:
    case OpCode.whoAmI:
    case OpCode.closeSession:
      return { op };
    default:
      // No operation remains for the compiler, but a client may send any other number.
      op satisfies never;
      return null;
  }
}

function writeTexts(writer: JuteWriter, texts: Texts): void {
  writer.int(texts.length);
  for (const text of texts) writer.ustring(text);
}

/** Writes the record of a request, without its header. */
export function writeRequest(writer: JuteWriter, request: Request): void {
  switch (request.op) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL:
    case OpCode.delete:
    case OpCode.setData:
    case OpCode.setACL:
      writeWriteRequest(writer, request);
      return;
    case OpCode.exists:
    case OpCode.getData:
    case OpCode.getChildren:
    case OpCode.getChildren2:
      writer.ustring(request.path);
      writer.boolean(request.watch);
      return;
    case OpCode.getACL:
    case OpCode.sync:
    case OpCode.getAllChildrenNumber:
      writer.ustring(request.path);
      return;
    case OpCode.getEphemerals:
      writer.ustring(request.prefix);
      return;
    case OpCode.setWatches:
    case OpCode.setWatches2:
      writer.long(request.relativeZxid);
      writeTexts(writer, request.dataWatches);
      writeTexts(writer, request.existWatches);
      writeTexts(writer, request.childWatches);
      if (request.op === OpCode.setWatches) return;
      writeTexts(writer, request.persistentWatches);
      writeTexts(writer, request.persistentRecursiveWatches);
      return;
    case OpCode.addWatch:
      writer.ustring(request.path);
      writer.int(request.mode);
      return;
    case OpCode.checkWatches:
    case OpCode.removeWatches:
      writer.ustring(request.path);
      writer.int(request.watcherType);
      return;
    case OpCode.reconfig:
      writer.ustring(request.joiningServers);
      writer.ustring(request.leavingServers);
      writer.ustring(request.newMembers);
      writer.long(request.currentConfigId);
      return;
    case OpCode.auth:
      writer.int(0);
      writer.ustring(request.scheme);
      writer.buffer(request.auth);
      return;
    case OpCode.sasl:
      writer.buffer(request.token);
      return;
    case OpCode.multi:
      writeMultiRequest(writer, request);
      return;
    case OpCode.multiRead:
      writeMultiReadRequest(writer, request);
      return;
    case OpCode.ping:
    case OpCode.whoAmI:
    case OpCode.closeSession:
      return;
    default:
      request satisfies never;
  }
}
