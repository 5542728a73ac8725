import {
  ErrorCode,
  type JuteWriter,
  OpCode,
  type Txn,
  writeMultiEnd,
  writeMultiError,
  writeMultiHeader,
} from '@meerkat/protocol';
import type { ApplyResult, DataTree, PartResult } from '../tree/data-tree.ts';

/** The code in the reply's header. A multi that failed says so in its results, not in the header. */
export function replyErrorOf(txn: Txn): ErrorCode {
  return txn.type === OpCode.error ? (txn.error as ErrorCode) : ErrorCode.ok;
}

/** Writes the record of the reply to a write that succeeded, from the tree as the txn left it. */
export function writeReplyRecord(writer: JuteWriter, op: number, txn: Txn, result: ApplyResult, tree: DataTree): void {
  switch (txn.type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL:
      writer.ustring(txn.path);
      if (op !== OpCode.create) tree.writeStat(result.znode, writer);
      return;
    case OpCode.setData:
    case OpCode.setACL:
      tree.writeStat(result.znode, writer);
      return;
    case OpCode.multi:
      for (const part of result.parts ?? []) writePart(writer, part);
      writeMultiEnd(writer);
      return;
    default:
      return;
  }
}

function writePart(writer: JuteWriter, part: PartResult): void {
  switch (part.type) {
    case OpCode.create:
      writeMultiHeader(writer, OpCode.create, false, ErrorCode.ok);
      writer.ustring(part.path);
      return;
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL:
      writeMultiHeader(writer, OpCode.create2, false, ErrorCode.ok);
      writer.ustring(part.path);
      if (part.stat !== null) writer.raw(part.stat);
      return;
    case OpCode.setData:
      writeMultiHeader(writer, OpCode.setData, false, ErrorCode.ok);
      if (part.stat !== null) writer.raw(part.stat);
      return;
    case OpCode.error:
      writeMultiError(writer, part.error);
      return;
    default:
      writeMultiHeader(writer, part.type, false, ErrorCode.ok);
  }
}
