import { getInt, STAT_BYTES } from '@meerkat/protocol';
import { type ByteArena, copyBytes } from './byte-arena.ts';
import { blockBytes, fillReply, INFO_BYTES, LENGTH_BYTES, PATH_SHIFT } from './znode-block.ts';

/**
 * Replaces the data of a block; the rest is kept. `data` may be a view of what it replaces.
 *
 * @returns the block's reference, a new one when the size class has changed
 */
export function replaceData(arena: ByteArena, block: number, data: Uint8Array | null): number {
  const oldPage = arena.page(block);
  const oldStart = arena.offset(block);
  const pathBytes = getInt(oldPage, oldStart) >>> PATH_SHIFT;
  const replyAt = oldStart + INFO_BYTES + pathBytes;
  const oldLength = getInt(oldPage, replyAt);
  if (data !== null && data.length === oldLength) {
    // The usual case: only the data changes.
    copyBytes(data, 0, oldLength, oldPage, replyAt + LENGTH_BYTES);
    return block;
  }
  const oldBytes = blockBytes(pathBytes, oldLength);
  const bytes = blockBytes(pathBytes, data === null ? 0 : data.length);
  // Copied out first: the new data may overwrite it.
  const oldStat = oldStart + oldBytes - STAT_BYTES;
  copyBytes(oldPage, oldStat, oldStat + STAT_BYTES, STAT, 0);
  if (arena.isSameRoom(oldBytes, bytes)) {
    fillReply(oldPage, replyAt, data, STAT);
    return block;
  }
  const reference = arena.allocate(bytes);
  const page = arena.page(reference);
  const start = arena.offset(reference);
  copyBytes(oldPage, oldStart, oldStart + INFO_BYTES + pathBytes, page, start);
  fillReply(page, start + INFO_BYTES + pathBytes, data, STAT);
  arena.free(block, oldBytes);
  return reference;
}

const STAT = new Uint8Array(STAT_BYTES);
