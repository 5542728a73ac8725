import { getInt, hexZxid, JuteReader, PERSISTED_STAT_BYTES, RECORD_BYTES_MAX, readAclList } from '@meerkat/protocol';
import type { FoundState, LoggedTxn } from './checkers/live-checker.ts';

/** Files as seen from outside their server. */
export interface FileSource {
  names(directory: string): readonly string[];
  /** null: there is no such file. */
  peek(path: string): Uint8Array | null;
}

/**
 * Reads a server's directories as an operator would, without the server's own code: `log.<zxid>` and `snapshot.<zxid>` of
 * Apache's formats, and the epoch files.
 */
export function readServerDisk(disk: FileSource, directory: string, logDirectory: string): FoundState {
  const names = disk.names(directory);
  const base = Math.max(0, ...names.flatMap((name) => zxidBehind('snapshot.', name) ?? []));
  return {
    acceptedEpoch: readEpoch(disk, `${directory}/acceptedEpoch`),
    currentEpoch: readEpoch(disk, `${directory}/currentEpoch`),
    base,
    txns: readLogs(disk, logDirectory).filter(({ zxid }) => zxid > base),
  };
}

/** Every txn of all log files whose bytes have not rotted, oldest first. */
export function readLogs(disk: FileSource, directory: string): readonly LoggedTxn[] {
  const files = disk.names(directory).flatMap((name) => {
    const zxid = zxidBehind('log.', name);
    return zxid === null ? [] : [{ name, zxid }];
  });
  const txns: LoggedTxn[] = [];
  for (const { name } of files.toSorted((a, b) => a.zxid - b.zxid)) {
    const bytes = disk.peek(`${directory}/${name}`);
    if (bytes === null) continue;
    readLogEntries(bytes, LOG_HEADER_BYTES, (txn, checksum) => {
      if (adler32(txn.payload) === checksum) txns.push(txn);
    });
  }
  return txns;
}

/** `(long checksum, int length, payload, byte 'B')*`, up to a length of zero or an entry that is cut. */
export function readLogEntries(
  bytes: Uint8Array,
  from: number,
  onTxn: (txn: LoggedTxn, checksum: number) => void,
): void {
  let at = from;
  while (at + ENTRY_HEAD_BYTES < bytes.length) {
    const length = getInt(bytes, at + 8);
    const end = at + ENTRY_HEAD_BYTES + length;
    if (length <= ZXID_AT + 8 || end >= bytes.length || bytes[end] !== END_OF_ENTRY) return;
    const payload = bytes.subarray(at + ENTRY_HEAD_BYTES, end);
    const zxid = getInt(payload, ZXID_AT) * 2 ** 32 + (getInt(payload, ZXID_AT + 4) >>> 0);
    onTxn({ zxid, payload }, getInt(bytes, at + 4) >>> 0);
    at = end + 1;
  }
}

/**
 * What is wrong with the znodes of a snapshot: each must occur once, after its parent, and none may be created after the
 * zxid in the file's name. null when nothing is.
 */
export function findSnapshotFault(bytes: Uint8Array, zxid: number): string | null {
  const reader = new JuteReader(bytes, RECORD_BYTES_MAX);
  const skip = (count: number): void => reader.reset(bytes, reader.position + count, bytes.length);
  skip(SNAPSHOT_HEADER_BYTES);
  skip(SESSION_BYTES * reader.int());
  for (let lists = reader.int(); lists > 0 && !reader.failed; lists--) {
    reader.long();
    readAclList(reader);
  }
  const paths = new Set<string>();
  for (;;) {
    const path = reader.ustring();
    if (reader.failed || path === null) return `what stands behind ${paths.size} znodes cannot be read`;
    if (path === '/') return null;
    if (paths.has(path)) return `${path} stands in it twice`;
    const parent = path.slice(0, Math.max(0, path.lastIndexOf('/')));
    if (path !== '' && !paths.has(parent)) return `${path} stands in it before its parent`;
    paths.add(path);
    reader.skipField();
    reader.long();
    const czxid = reader.long();
    if (czxid > zxid) return `${path} was created later, by txn ${hexZxid(czxid)}`;
    skip(PERSISTED_STAT_BYTES - CZXID_BYTES);
  }
}

const SNAPSHOT_HEADER_BYTES = 16;
/** Id and timeout. */
const SESSION_BYTES = 12;
const CZXID_BYTES = 8;

export const LOG_HEADER_BYTES = 16;
const ENTRY_HEAD_BYTES = 12;
const END_OF_ENTRY = 0x42;
/** Behind session id and cxid. */
const ZXID_AT = 12;

/** Adler-32 (RFC 1950). */
function adler32(bytes: Uint8Array): number {
  let a = 1;
  let b = 0;
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(at + BYTES_PER_REMAINDER, bytes.length);
    for (; at < end; at++) {
      a += bytes[at]!;
      b += a;
    }
    a %= 65521;
    b %= 65521;
  }
  return ((b << 16) | a) >>> 0;
}

/** Bytes to add up before taking remainders: more would exceed 31 bits. */
const BYTES_PER_REMAINDER = 3800;

/** @returns null when the name does not match */
export function zxidBehind(prefix: string, name: string): number | null {
  const digits = name.startsWith(prefix) ? name.slice(prefix.length) : '';
  return /^[0-9a-f]+$/.test(digits) ? Number.parseInt(digits, 16) : null;
}

/** 0 when the file does not exist. */
export function readEpoch(disk: FileSource, path: string): number {
  const bytes = disk.peek(path);
  return bytes === null ? 0 : Number(new TextDecoder().decode(bytes).trim());
}
