/**
 * Reads a snapshot record by record, with memory for a slice, the ACLs and the longest record: nothing is built of it. Apache's
 * snapshots, and compressed ones, are read as well. Checksums are verified at the end, when all records have been told.
 */
import {
  ADLER_START,
  adler32,
  faultOfSnapshotHeader,
  LAST_RECORD_BYTES,
  readSnapshotEnd,
  SNAPSHOT_HEADER_BYTES,
  type SnapshotDigest,
  SnapshotRecord,
} from '@meerkat/core/files';
import {
  type Acl,
  getInt,
  getLong,
  getLongBig,
  JuteReader,
  OPEN_ACL,
  RECORD_BYTES_MAX,
  readAclList,
} from '@meerkat/protocol';
import { ArchiveError } from './archive-error.ts';
import type { OpenFile } from './archive-files.ts';
import { snapshotChunks } from './byte-chunks.ts';

/** A znode as the snapshot has it. `data` may be looked at until the receiver returns. */
export interface SnapshotZnode {
  /** The root is "/". */
  readonly path: string;
  readonly data: Uint8Array | null;
  /** null: a list that the snapshot does not have, because the ACL changed while it was taken. */
  readonly acl: readonly Acl[] | null;
  readonly czxid: number;
  readonly mzxid: number;
  readonly ctime: number;
  readonly mtime: number;
  readonly version: number;
  /** The number of children ever created, as snapshots have it. */
  readonly cversion: number;
  readonly aversion: number;
  /** As in the Stat: a session, or what marks containers and TTLs; 0n for persistent znodes. */
  readonly ephemeralOwner: bigint;
  readonly pzxid: number;
}

export interface SnapshotScanEvents {
  onSession?(id: bigint, timeoutMs: number): void;
  onZnode?(znode: SnapshotZnode): void;
  /** After each slice; what it returns is waited for. */
  onSlice?(): Promise<void> | undefined;
}

export interface SnapshotScanned {
  readonly sessions: number;
  readonly acls: number;
  readonly znodes: number;
  /** Unpacked. */
  readonly bytes: number;
  readonly digest: SnapshotDigest | null;
  /** The last zxid applied when its body was complete; null when it does not say. */
  readonly completeZxid: number | null;
}

/** @throws ArchiveError `damaged`: where, and what was found */
export async function scanSnapshot(
  file: OpenFile,
  events: SnapshotScanEvents,
  signal?: AbortSignal,
): Promise<SnapshotScanned> {
  const scan = new SnapshotScan(file.path, events);
  for await (const chunk of snapshotChunks(file)) {
    signal?.throwIfAborted();
    scan.add(chunk);
    await events.onSlice?.();
  }
  return scan.end();
}

const SESSION_BYTES = 12;
/** Behind the body there are three seals and two parts, or four. */
const END_BYTES_MAX = 4096;

type Phase = 'header' | 'session-count' | 'sessions' | 'acl-count' | 'acls' | 'znodes' | 'end';

class SnapshotScan {
  readonly #path: string;
  readonly #events: SnapshotScanEvents;
  readonly #acls = new Map<number, readonly Acl[]>();
  readonly #jute = new JuteReader(undefined, RECORD_BYTES_MAX);
  #phase: Phase = 'header';
  /** Sessions or ACLs that are still to come. */
  #left = 0;
  #sessions = 0;
  #aclCount = 0;
  #znodes = 0;
  #last = '';
  #rest: Uint8Array = new Uint8Array(0);
  /** Of the first byte of `rest`. */
  #position = 0;
  #checksum: number = ADLER_START;
  readonly #record: SnapshotRecord = new SnapshotRecord();
  /** Bytes below which it makes no sense to look at the next record again. */
  #need = 0;

  constructor(path: string, events: SnapshotScanEvents) {
    this.#path = path;
    this.#events = events;
  }

  add(chunk: Uint8Array): void {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (this.#rest.length < this.#need) return;
    this.#need = 0;
    const bytes = this.#rest;
    let at = 0;
    for (;;) {
      const next = this.#readOne(bytes, at);
      if (next === at) break;
      at = next;
    }
    this.#checksum = adler32(this.#checksum, bytes, 0, at);
    this.#position += at;
    this.#rest = bytes.subarray(at);
    if (this.#phase === 'end' && this.#rest.length > END_BYTES_MAX)
      this.#fail(0, 'bytes follow the end of the snapshot');
  }

  end(): SnapshotScanned {
    if (this.#phase !== 'end') this.#fail(this.#rest.length, 'it is cut short');
    const found = readSnapshotEnd(this.#rest, this.#checksum);
    if (found === null) return this.#fail(0, 'its checksum is wrong: some byte before is not what was written');
    return {
      sessions: this.#sessions,
      acls: this.#aclCount,
      znodes: this.#znodes,
      bytes: this.#position + this.#rest.length,
      ...found,
    };
  }

  /** @returns where the next record begins; `at` when this one is not complete */
  #readOne(bytes: Uint8Array, at: number): number {
    const left = bytes.length - at;
    switch (this.#phase) {
      case 'header': {
        if (left < SNAPSHOT_HEADER_BYTES) return at;
        const fault = faultOfSnapshotHeader(bytes.subarray(at));
        if (fault !== null) this.#fail(at, fault);
        this.#phase = 'session-count';
        return at + SNAPSHOT_HEADER_BYTES;
      }
      case 'session-count':
        return this.#readCount(bytes, at, 'sessions');
      case 'sessions': {
        if (this.#left === 0) return this.#enter('acl-count', bytes, at);
        if (left < SESSION_BYTES) return at;
        this.#events.onSession?.(getLongBig(bytes, at), getInt(bytes, at + 8));
        this.#sessions++;
        this.#left--;
        return at + SESSION_BYTES;
      }
      case 'acl-count':
        return this.#readCount(bytes, at, 'acls');
      case 'acls':
        return this.#left === 0 ? this.#enter('znodes', bytes, at) : this.#readAcl(bytes, at);
      case 'znodes':
        return this.#readZnode(bytes, at);
      case 'end':
        return at;
    }
  }

  #enter(phase: Phase, bytes: Uint8Array, at: number): number {
    this.#phase = phase;
    return this.#readOne(bytes, at);
  }

  #readCount(bytes: Uint8Array, at: number, next: 'sessions' | 'acls'): number {
    if (bytes.length - at < 4) return at;
    const count = getInt(bytes, at);
    if (count < 0) this.#fail(at, `the number of ${next === 'acls' ? 'ACLs' : next} is ${count}`);
    this.#left = count;
    this.#phase = next;
    return at + 4;
  }

  #readAcl(bytes: Uint8Array, at: number): number {
    const jute = this.#jute;
    jute.reset(bytes, at, bytes.length);
    const index = jute.longClamped();
    const list = readAclList(jute);
    if (jute.failed) {
      if (bytes.length - at > RECORD_BYTES_MAX) this.#fail(at, 'an ACL has an impossible length');
      this.#need = (bytes.length - at) * 2;
      return at;
    }
    this.#acls.set(index, list);
    this.#aclCount++;
    this.#left--;
    return jute.position;
  }

  #readZnode(bytes: Uint8Array, at: number): number {
    const record = this.#record;
    switch (record.read(bytes, at, bytes.length)) {
      case 'cut':
        this.#need = record.bytesMin;
        return at;
      case 'broken':
        return this.#fail(at, record.fault);
      case 'last':
        this.#phase = 'end';
        return at + LAST_RECORD_BYTES;
      case 'whole':
        this.#report(record);
        return record.end;
    }
  }

  #report({ bytes, pathStart, pathEnd, dataEnd, persisted: stat }: SnapshotRecord): void {
    const path = pathStart === pathEnd ? '/' : DECODER.decode(bytes.subarray(pathStart, pathEnd));
    const aclId = getLong(bytes, dataEnd);
    this.#znodes++;
    this.#last = path;
    this.#events.onZnode?.({
      path,
      data: getInt(bytes, pathEnd) < 0 ? null : bytes.subarray(pathEnd + 4, dataEnd),
      acl: aclId === -1 ? OPEN_ACL : (this.#acls.get(aclId) ?? null),
      czxid: getLong(bytes, stat),
      mzxid: getLong(bytes, stat + 8),
      ctime: getLong(bytes, stat + 16),
      mtime: getLong(bytes, stat + 24),
      version: getInt(bytes, stat + 32),
      cversion: getInt(bytes, stat + 36),
      aversion: getInt(bytes, stat + 40),
      ephemeralOwner: getLongBig(bytes, stat + 44),
      pzxid: getLong(bytes, stat + 52),
    });
  }

  #fail(at: number, what: string): never {
    const after = this.#znodes === 0 ? '' : `, behind ${this.#znodes} znodes, the last one ${this.#last}`;
    throw new ArchiveError(
      'damaged',
      `${this.#path} at position ${this.#position + at}: ${what}${after}. Take another snapshot: an older one and the log ` +
        'behind it have the same',
    );
  }
}

const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });
