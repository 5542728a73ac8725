/**
 * Applies the txns of a log to a database that was loaded from a snapshot.
 *
 *     payload ─┬─ a plain create? ─► applied from its bytes ─┬─► its digest compared ─► next
 *              └─ anything else ──► decoded ──► applied ─────┘
 */
import {
  createPathEnd,
  createPathStart,
  DIGEST_VERSION,
  getInt,
  getLongBig,
  hexZxid,
  type JuteReader,
  PlainCreate,
  readTxnEntry,
  type TxnDigest,
  type Zxid,
} from '@meerkat/protocol';
import type { Trace } from '../base/ports.ts';
import type { Database } from '../tree/database.ts';
import type { KnownZnode } from '../tree/known-znode.ts';
import { PathPrefetch } from '../tree/path-prefetch.ts';
import { SILENT_EVENTS } from '../tree/tree-events.ts';
import type { SnapshotDigest } from './snapshot-end.ts';

export class Replay {
  readonly #database: Database;
  readonly #verifier: DigestVerifier | null;
  readonly #create: PlainCreate = new PlainCreate();
  readonly #coming: PathPrefetch;
  #txns = 0;

  /** @param digest of the snapshot; null: the digests in the log are ignored */
  constructor(database: Database, digest: SnapshotDigest | null, trace: Trace) {
    this.#database = database;
    this.#coming = new PathPrefetch(database.tree.state.table);
    this.#verifier = digest === null ? null : new DigestVerifier(database, digest, trace);
  }

  /** Txns applied. */
  get txns(): number {
    return this.#txns;
  }

  /** The payloads at starts[0 … count) are expected next: prefetches what they need of the tree. */
  onAhead(bytes: Uint8Array, starts: Int32Array, count: number): void {
    for (let i = 0; i < count; i++) {
      const start = starts[i]!;
      const pathEnd = createPathEnd(bytes, start);
      if (pathEnd > 0) this.#coming.add(bytes, createPathStart(start), pathEnd);
    }
    this.#coming.fetch();
  }

  /** Memory for future znodes. @returns true when the tree has taken it */
  onMemory(memory: ArrayBuffer): boolean {
    return this.#database.tree.state.table.arena.offer(memory);
  }

  /** The same for creates in the rows [row, rowsEnd) of a scan. */
  onScannedAhead(rows: Int32Array, row: number, rowsEnd: number): void {
    this.#coming.fetchScanned(rows, row, rowsEnd);
  }

  /**
   * Applies the txn between the reader's position and its end. Errors because something already exists or is already
   * gone come from the fuzzy snapshot and are ignored.
   *
   * @param known what a scan has computed, when it is a plain create
   * @returns false when it is not a txn
   */
  apply(payload: JuteReader, known: KnownZnode | null = null): boolean {
    const create = this.#create;
    if (this.#isPlain(payload, known) && this.#database.tree.replayCreate(create, known)) {
      this.#verifier?.onCreated(create);
    } else {
      const entry = readTxnEntry(payload);
      if (entry === null) return false;
      this.#database.apply(entry.header, entry.txn, SILENT_EVENTS);
      this.#verifier?.onApplied(entry.header.zxid, entry.digest);
    }
    this.#txns++;
    return true;
  }

  /** True when it is a plain create; it has been read then. */
  #isPlain({ bytes, position, end }: JuteReader, known: KnownZnode | null): boolean {
    if (known === null) return this.#create.read(bytes, position, end);
    this.#create.readKnown(bytes, position, end);
    return true;
  }
}

/**
 * Compares the tree with the digests in the log, from the zxid on at which the snapshot's body was complete and the
 * replayed tree is exact; at that zxid also with the snapshot's own digest. A difference from the log is reported once,
 * and again after it has disappeared; it stops nothing (as in an Apache server, which reports one for the snapshot and
 * one for the log).
 */
class DigestVerifier {
  readonly #database: Database;
  readonly #start: SnapshotDigest;
  readonly #trace: Trace;
  #differs = false;

  constructor(database: Database, start: SnapshotDigest, trace: Trace) {
    this.#database = database;
    this.#start = start;
    this.#trace = trace;
  }

  onApplied(zxid: Zxid, digest: TxnDigest | null): void {
    const start = this.#start;
    if (zxid < start.zxid) return;
    if (zxid === start.zxid && start.version === DIGEST_VERSION && !this.#isOfTree(start.treeDigest)) {
      this.#reportMismatch(zxid, start.treeDigest, 'snapshot');
    }
    if (digest === null || digest.version !== DIGEST_VERSION) return;
    const differs = !this.#isOfTree(digest.treeDigest);
    if (differs && !this.#differs) this.#reportMismatch(zxid, digest.treeDigest, 'log');
    this.#differs = differs;
  }

  /** The same; a matching digest is not converted to a bigint. */
  onCreated({ zxid, bytes, digestAt }: PlainCreate): void {
    if (digestAt >= 0) {
      const version = getInt(bytes, digestAt);
      const isRight = version === DIGEST_VERSION && this.#database.tree.digestSum().standsAt(bytes, digestAt + 4);
      if (isRight && !this.#differs && zxid !== this.#start.zxid) return;
      this.onApplied(zxid, { version, treeDigest: getLongBig(bytes, digestAt + 4) });
    } else {
      this.onApplied(zxid, null);
    }
  }

  #isOfTree(digest: bigint): boolean {
    return this.#database.tree.digestSum().isValue(digest);
  }

  #reportMismatch(zxid: Zxid, expected: bigint, where: 'log' | 'snapshot'): void {
    const actual = this.#database.tree.digestSum().toBigInt();
    this.#trace.emit({ kind: 'digest-mismatch', zxid, expected, actual });
    this.#trace.emit({
      kind: 'warning',
      message: `after txn ${hexZxid(zxid)} the tree differs from what the ${where} says; compare this server with others`,
    });
  }
}
