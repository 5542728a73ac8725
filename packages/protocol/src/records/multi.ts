import type { ErrorCode } from '../error-code.ts';
import type { JuteReader } from '../jute/reader.ts';
import type { JuteWriter } from '../jute/writer.ts';
import { OpCode } from '../op-code.ts';
import {
  type CheckRequest,
  CreateMode,
  type CreateOp,
  type CreateRequest,
  type DeleteRequest,
  readCheck,
  readCreate,
  readDelete,
  readSetData,
  type SetDataRequest,
  writeWriteRequest,
} from './writes.ts';

/** Several writes as one txn: all or none. */
export interface MultiRequest {
  readonly op: typeof OpCode.multi;
  readonly ops: readonly MultiOp[];
}

export type MultiOp = CreateRequest | DeleteRequest | SetDataRequest | CheckRequest;

/** Several reads in one round trip; each succeeds or fails on its own. */
export interface MultiReadRequest {
  readonly op: typeof OpCode.multiRead;
  readonly ops: readonly MultiReadOp[];
}

export interface MultiReadOp {
  readonly op: typeof OpCode.getData | typeof OpCode.getChildren;
  readonly path: string;
}

/** Precedes each operation and each result, and ends the list: int type, boolean done, int err (9 bytes). */
export function writeMultiHeader(writer: JuteWriter, type: number, done: boolean, error: number): void {
  writer.int(type);
  writer.boolean(done);
  writer.int(error);
}

/** Ends a list of operations or results. */
export function writeMultiEnd(writer: JuteWriter): void {
  writeMultiHeader(writer, OpCode.error, true, -1);
}

/**
 * Reads `(MultiHeader record)* MultiHeader(-1, true, -1)`.
 *
 * @returns null when an operation is not one that a multi may hold
 */
export function readMultiRequest(reader: JuteReader): MultiRequest | null {
  const ops: MultiOp[] = [];
  for (;;) {
    const type = reader.int();
    const isDone = reader.boolean();
    reader.int();
    if (reader.failed) return null;
    if (isDone) return { op: OpCode.multi, ops };
    const op = readMultiOp(type, reader);
    if (op === null || reader.failed) return null;
    ops.push(op);
  }
}

export function readMultiReadRequest(reader: JuteReader): MultiReadRequest | null {
  const ops: MultiReadOp[] = [];
  for (;;) {
    const type = reader.int();
    const isDone = reader.boolean();
    reader.int();
    if (reader.failed) return null;
    if (isDone) return { op: OpCode.multiRead, ops };
    if (type !== OpCode.getData && type !== OpCode.getChildren) return null;
    const path = reader.ustring();
    reader.boolean(); // a watch flag: a multiRead never leaves a watch
    if (path === null || reader.failed) return null;
    ops.push({ op: type, path });
  }
}

function readMultiOp(type: number, reader: JuteReader): MultiOp | null {
  switch (type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL: {
      const create = readCreate(type, reader);
      return create === null ? null : asMultiCreate(create);
    }
    case OpCode.delete:
      return readDelete(reader);
    case OpCode.setData:
      return readSetData(reader);
    case OpCode.check:
      return readCheck(reader);
    default:
      return null;
  }
}

/**
 * Inside a multi the flags decide what a create becomes, not the operation code (Op.Create, MultiOperationRecord):
 * flags 4 make a container, flags 5 and 6 a TTL znode (without a ttl unless the operation is createTTL, which fails
 * later), and createTTL with other flags a plain create. An illegal flag makes the whole request undecodable, except
 * under createTTL, where that one operation fails.
 */
function asMultiCreate(create: CreateRequest): CreateRequest | null {
  const { flags } = create;
  if (create.op === OpCode.createTTL) {
    if (flags === CreateMode.container) return { ...create, op: OpCode.createContainer, ttl: -1 };
    if (isTtlMode(flags) || !isCreateMode(flags)) return create;
    return { ...create, op: OpCode.create, ttl: -1 };
  }
  if (!isCreateMode(flags)) return null;
  const op: CreateOp =
    flags === CreateMode.container ? OpCode.createContainer : isTtlMode(flags) ? OpCode.createTTL : create.op;
  return op === create.op ? create : { ...create, op };
}

function isTtlMode(flags: number): boolean {
  return flags === CreateMode.persistentWithTtl || flags === CreateMode.persistentSequentialWithTtl;
}

function isCreateMode(flags: number): boolean {
  return flags >= CreateMode.persistent && flags <= CreateMode.persistentSequentialWithTtl;
}

export function writeMultiRequest(writer: JuteWriter, request: MultiRequest): void {
  for (const op of request.ops) {
    writeMultiHeader(writer, op.op, false, -1);
    writeWriteRequest(writer, op);
  }
  writeMultiEnd(writer);
}

export function writeMultiReadRequest(writer: JuteWriter, request: MultiReadRequest): void {
  for (const op of request.ops) {
    writeMultiHeader(writer, op.op, false, -1);
    writer.ustring(op.path);
    writer.boolean(false);
  }
  writeMultiEnd(writer);
}

/** The result of an operation that failed or was not tried: its code is in the header and again behind it. */
export function writeMultiError(writer: JuteWriter, error: ErrorCode): void {
  writeMultiHeader(writer, OpCode.error, false, error);
  writer.int(error);
}
