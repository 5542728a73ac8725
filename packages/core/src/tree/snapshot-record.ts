/**
 * One znode in the bytes of a snapshot, or the end of its znodes.
 *
 *     record := ustring path, buffer data, long aclId, StatPersisted         (snapshot-writer.ts has the whole grammar)
 *
 *     │ int length │ path … │ int length │ data … │ aclId │ StatPersisted │
 *                  └ pathStart  └ pathEnd          └ dataEnd └ persisted     └ end
 *
 * Only the lengths are examined. One object is reused for all records.
 */
import { getInt, PERSISTED_STAT_BYTES, RECORD_BYTES_MAX } from '@meerkat/protocol';
import type { ZnodeRecord } from './znode-block.ts';

/** `last`: the path "/", which ends the znodes. `broken`: not a record, see `fault`. */
export type RecordFound = 'whole' | 'cut' | 'last' | 'broken';

export class SnapshotRecord implements ZnodeRecord {
  bytes: Uint8Array = NOTHING;
  pathStart = 0;
  pathEnd = 0;
  dataEnd = 0;
  /** For `cut`: minimum size of the record. */
  bytesMin = 0;
  /** For `broken`: what is impossible. */
  fault = '';

  /** Where the stat begins. */
  get persisted(): number {
    return this.dataEnd + ACL_BYTES;
  }

  /** Where the next record begins. */
  get end(): number {
    return this.dataEnd + ACL_BYTES + PERSISTED_STAT_BYTES;
  }

  /** Examines the record at `at`; the positions are set when it is whole. */
  read(bytes: Uint8Array, at: number, end: number): RecordFound {
    if (end - at < 4) return this.#cut(LAST_RECORD_BYTES);
    const pathLength = getInt(bytes, at);
    if (pathLength < 0 || pathLength > RECORD_BYTES_MAX) return this.#break(`a path has the length ${pathLength}`);
    const pathStart = at + 4;
    const pathEnd = pathStart + pathLength;
    if (pathLength === 1 && pathEnd <= end && bytes[pathStart] === SLASH) return 'last';
    if (end < pathEnd + 4) return this.#cut(pathEnd + 4 - at);
    const dataLength = getInt(bytes, pathEnd);
    if (dataLength < -1 || dataLength > RECORD_BYTES_MAX) return this.#break(`data has the length ${dataLength}`);
    this.bytes = bytes;
    this.pathStart = pathStart;
    this.pathEnd = pathEnd;
    this.dataEnd = pathEnd + 4 + Math.max(dataLength, 0);
    return end < this.end ? this.#cut(this.end - at) : 'whole';
  }

  /** The same for a record that is known to be whole. */
  readKnown(bytes: Uint8Array, at: number): void {
    this.bytes = bytes;
    this.pathStart = at + 4;
    this.pathEnd = this.pathStart + getInt(bytes, at);
    this.dataEnd = this.pathEnd + 4 + Math.max(getInt(bytes, this.pathEnd), 0);
  }

  #cut(bytesMin: number): 'cut' {
    this.bytesMin = bytesMin;
    return 'cut';
  }

  #break(fault: string): 'broken' {
    this.fault = fault;
    return 'broken';
  }
}

/** Size of the path that ends the znodes. */
export const LAST_RECORD_BYTES = 5;

const NOTHING = new Uint8Array(0);
const SLASH = 0x2f;
const ACL_BYTES = 8;
