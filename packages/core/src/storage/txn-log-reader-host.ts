/** The options of a reader of log files, and its events. */
import type { JuteReader, Zxid } from '@meerkat/protocol';
import type { KnownZnode } from '../tree/known-znode.ts';
import type { ZxidFile } from './file-names.ts';

export interface TxnLogReaderOptions {
  readonly logDirectory: string;
  /** Oldest first. */
  readonly files: readonly ZxidFile[];
  /** Entries up to this zxid are not delivered. */
  readonly after: Zxid;
  /** Offset of an entry in the first file: what precedes it is not read. 0 = at the header. */
  readonly startAt: number;
  /**
   * True when the `size` of each file is where its entries end: this process wrote them and closed the log gracefully.
   * Preallocated space is not read then.
   */
  readonly areSizesExact: boolean;
  readonly snapshotDirectory: string;
  /**
   * The lower bound of what this server has acknowledged: the log must reach that far. ZXID_NONE: unknown, though this
   * server was the last one to use the directory; null: not even that is known.
   */
  readonly durable: Zxid | null;
  /** False: after a crash of the machine any part of what was acknowledged may be missing. */
  readonly forceSync: boolean;
  /** True when an epoch that begins with another counter than 1 lacks txns: every epoch had a different leader. */
  readonly isEnsemble: boolean;
  /**
   * True when the process that wrote the log has ended, in whatever way: the end of the log is written again
   * (`log-rewrite.ts`). Then the last file is read from its beginning.
   */
  readonly rewritesEnd: boolean;
}

export interface TxnLogReaderEvents {
  /**
   * One entry, in order: its payload is between the reader's position and its end, and is valid until this returns.
   *
   * @param known what a scan has computed for a plain create; null for any other txn, and without a scan
   * @returns false when the payload is not a txn that this version knows; then a fault follows
   */
  onTxn(payload: JuteReader, known: KnownZnode | null): boolean;
  /**
   * Payloads that probably follow next begin at starts[0 … count) of `bytes`. Nothing is checked yet: they may be
   * anything, and need not be delivered.
   */
  onEntriesAhead?(bytes: Uint8Array, starts: Int32Array, count: number): void;
  /** The same for scanned entries: their rows are valid, and they will be delivered. */
  onScannedAhead?(rows: Int32Array, row: number, rowsEnd: number): void;
  /** Memory that the tree may take. @returns true when it has taken it */
  onMemory?(memory: ArrayBuffer): boolean;
  /** An entry that is not delivered: it is not after `after`, or it was delivered before. */
  onKnownTxn?(zxid: Zxid, file: ZxidFile, position: number): void;
  /** A file has been read: up to `bytes` it holds header and entries. */
  onLogFileRead(file: ZxidFile, bytes: number): void;
  /** Everything has been delivered and is durable; a torn tail has been cut, durably too. */
  onLogRead(): void;
  /** The log cannot be trusted: which file, where, why and what to do. Nothing follows. */
  onLogFault(error: Error): void;
}
