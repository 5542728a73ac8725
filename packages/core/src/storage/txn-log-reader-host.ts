/** What a reader of log files is asked to read, and whom it tells. */
import type { JuteReader, Zxid } from '@meerkat/protocol';
import type { KnownZnode } from '../tree/known-znode.ts';
import type { ZxidFile } from './file-names.ts';

export interface TxnLogReaderOptions {
  readonly logDirectory: string;
  /** Oldest first. */
  readonly files: readonly ZxidFile[];
  /** Entries up to this zxid are not delivered. */
  readonly after: Zxid;
  /** Where an entry begins in the first file: what stands before it is not read. 0 = at the header. */
  readonly startAt: number;
  /**
   * True when the `size` of each file is where its entries end: this process wrote them and closed the log in good order.
   * What a file was grown by is not looked at then.
   */
  readonly areSizesExact: boolean;
  readonly snapshotDirectory: string;
  /**
   * What this server has acknowledged at least: the log must reach that far. ZXID_NONE: nothing is known, though ours
   * was the last server here; null: not even that.
   */
  readonly durable: Zxid | null;
  /** False: what was acknowledged may be missing after the end of the machine, in any order. */
  readonly forceSync: boolean;
  /** True when an epoch that begins with another counter than 1 lacks txns: every epoch had a leader of its own. */
  readonly isEnsemble: boolean;
  /**
   * True when the process that wrote the log has ended, however it did: the end of the log is written once more
   * (`log-rewrite.ts`). Then the last file is read from its beginning on.
   */
  readonly rewritesEnd: boolean;
}

export interface TxnLogReaderEvents {
  /**
   * One entry, in order: its payload is between the reader's position and its end, and may be looked at until this
   * returns.
   *
   * @param known what a scan says of a plain create; null of any other txn, and where there was no scan
   * @returns false when the payload is no txn that this version knows; then a fault follows
   */
  onTxn(payload: JuteReader, known: KnownZnode | null): boolean;
  /**
   * At starts[0 … count) of `bytes` payloads seem to begin that come next. Nothing is checked yet: they may be anything, and
   * need not come.
   */
  onEntriesAhead?(bytes: Uint8Array, starts: Int32Array, count: number): void;
  /** The same of scanned entries: what their rows say is so, and they do come. */
  onScannedAhead?(rows: Int32Array, row: number, rowsEnd: number): void;
  /** Memory that the tree may take. @returns true when it has */
  onMemory?(memory: ArrayBuffer): boolean;
  /** An entry that is not delivered: `after` covers it, or it was delivered before. */
  onKnownTxn?(zxid: Zxid, file: ZxidFile, position: number): void;
  /** A file has been read: up to `bytes` it holds header and entries. */
  onLogFileRead(file: ZxidFile, bytes: number): void;
  /** Everything has been delivered and is durable; a torn tail has been cut, durably too. */
  onLogRead(): void;
  /** The log cannot be trusted: which file, where, why and what to do. Nothing follows. */
  onLogFault(error: Error): void;
}
