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
import type { WaitingWrite } from './client.ts';

/** The error in the reply header. A failed multi has its errors in the results, not in the header. */
export function replyErrorOf(txn: Txn): ErrorCode {
  return txn.type === OpCode.error ? (txn.error as ErrorCode) : ErrorCode.ok;
}

/** Writes the record of the reply to a write that succeeded, from the tree as the txn left it. */
export function writeReplyRecord(
  writer: JuteWriter,
  { op, partOps }: Pick<WaitingWrite, 'op' | 'partOps'>,
  txn: Txn,
  result: ApplyResult,
  tree: DataTree,
): void {
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
    case OpCode.reconfig:
      tree.writeDataAndStat(result.znode, writer);
      return;
    case OpCode.multi: {
      const parts = result.parts ?? NO_PARTS;
      // `entries()` cost 2.5 % of the core's time for a multi of ten.
      for (let i = 0; i < parts.length; i++) {
        const part = parts[i]!;
        const isCreate2 = part.type === OpCode.create && partOps !== null && partOps[i] === OpCode.create2;
        writePart(writer, isCreate2 ? OpCode.create2 : part.type, part);
      }
      writeMultiEnd(writer);
      return;
    }
    default:
      return;
  }
}

const NO_PARTS: readonly PartResult[] = [];

function writePart(writer: JuteWriter, type: number, part: PartResult): void {
  switch (type) {
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
      writeMultiHeader(writer, type, false, ErrorCode.ok);
  }
}
