import {
  ErrorCode,
  type JuteWriter,
  OpCode,
  STAT_BYTES,
  type Txn,
  writeMultiEnd,
  writeMultiError,
  writeMultiHeader,
} from '@meerkat/protocol';
import { NO_STAT } from '../tree/apply-result.ts';
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
      for (const part of result.parts ?? []) writePart(writer, part, result.stats);
      writeMultiEnd(writer);
      return;
    default:
      return;
  }
}

function writePart(writer: JuteWriter, part: PartResult, stats: Uint8Array | null): void {
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
      writePartStat(writer, part, stats);
      return;
    case OpCode.setData:
      writeMultiHeader(writer, OpCode.setData, false, ErrorCode.ok);
      writePartStat(writer, part, stats);
      return;
    case OpCode.error:
      writeMultiError(writer, part.error);
      return;
    default:
      writeMultiHeader(writer, part.type, false, ErrorCode.ok);
  }
}

function writePartStat(writer: JuteWriter, part: PartResult, stats: Uint8Array | null): void {
  if (part.statAt !== NO_STAT && stats !== null) writer.raw(stats.subarray(part.statAt, part.statAt + STAT_BYTES));
}
