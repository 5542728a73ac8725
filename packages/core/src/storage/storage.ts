/**
 * Everything that a server stores on its disk: the log, the snapshots, the epoch files.
 *
 *     empty ── recover ──► recovering ──► open ◄──────────────────────────────┐
 *                              ▲           │ append … flush ─► onLogSynced    │
 *                              │           ├── truncate ─────────► exchanging ┤
 *                              └───────────│── (truncated) ◄───────┘          │
 *                                          ├── installSnapshot ──► exchanging ┘
 *                                          └── stop ──► closing ──► stopped ─► onStorageStopped
 *
 * The server is notified of recovery, failure and stop; what becomes durable is reported to the role that owns the
 * storage (`reportTo`). The host calls `flush` at the end of every turn: the txns appended during it go to the disk
 * together, and a snapshot that is due begins. After `onStorageFailed` nothing becomes durable; the server stops.
 *
 * A server of an ensemble has one storage for each of its roles. It is stopped at the end of the role, and the next
 * role begins with another storage; the directories stay locked meanwhile (`keepsHold`, `isHeld`), and the database is
 * handed over to the new storage, which replays the rest of the log (`carriedState`).
 */
import { hexZxid, type Txn, type TxnHeader, type Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { type DurabilityEvents, type Durable, type EpochFileName, NOTHING_DURABLE, onDisk } from '../base/durable.ts';
import type { CoreOptions } from '../base/options.ts';
import type { Ports } from '../base/ports.ts';
import type { Database } from '../tree/database.ts';
import type { History } from '../zab/history.ts';
import { DurableMark } from './durable-mark.ts';
import { EpochWrites } from './epoch-writes.ts';
import { LogFiles } from './log-files.ts';
import { type HistoryDone, type HistoryRange, LogHistory } from './log-history.ts';
import { LogTruncation } from './log-truncation.ts';
import { Recovery, type RecoverySummary } from './recovery.ts';
import { SnapshotInstall } from './snapshot-install.ts';
import type { CarriedStorage, StorageEvents, TruncateEvents } from './storage-events.ts';
import { TxnLog } from './txn-log.ts';
import { type NewestSnapshotFile, Upkeep } from './upkeep.ts';

export type { HistoryDone, HistoryRange } from './log-history.ts';
export type { RecoverySummary } from './recovery.ts';
export type { CarriedStorage, StorageEvents } from './storage-events.ts';

type StoragePhase =
  /** Nothing has been recovered. */
  | 'empty'
  /** The directory is being read. */
  | 'recovering'
  /** Txns can be appended. */
  | 'open'
  /** The log is closed and the history is being replaced: no other operation uses the directory. */
  | 'exchanging'
  /** Everything is idle except for the durable mark. */
  | 'closing'
  | 'stopped';

export class Storage {
  readonly #ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'scans' | 'clock' | 'random' | 'trace'>;
  readonly #options: CoreOptions;
  readonly #events: StorageEvents;
  /** The role that currently owns this storage. */
  #owner: DurabilityEvents | null = null;
  /** The state that recovery starts from; null: only what is on disk. */
  #carriedState: CarriedStorage | null;
  readonly #logFiles: LogFiles;
  readonly #history: LogHistory;
  readonly #epochs: EpochWrites;
  readonly #mark: DurableMark;
  readonly #upkeep: Upkeep;
  #log: TxnLog;

  #database: Database | null = null;
  /** Everything up to here is durable. */
  #durableZxid: Durable<Zxid> = NOTHING_DURABLE;
  #phase: StoragePhase = 'empty';
  #hasFailed = false;
  /** `stop` was called. `isWhole`: the database and the log had the same history at that time. */
  #stopping: { readonly keepsHold: boolean; readonly isWhole: boolean } | null = null;
  /** For an exchange: called once the log is closed. */
  #exchange: (() => void) | null = null;
  #install: SnapshotInstall | null = null;

  /** @param carriedState of the previous storage, which was stopped with `keepsHold` */
  constructor(
    ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'scans' | 'clock' | 'random' | 'trace'>,
    options: CoreOptions,
    events: StorageEvents,
    carriedState: CarriedStorage | null = null,
  ) {
    this.#ports = ports;
    this.#options = options;
    this.#events = events;
    this.#carriedState = carriedState;
    this.#logFiles = carriedState?.logFiles ?? new LogFiles();
    this.#upkeep = new Upkeep(ports, options, {
      onSnapshotBegins: () => this.#log.roll(),
      onLogsPurged: (names) => this.#logFiles.forget(names),
      onUpkeepRests: () => this.#maybeClose(),
    });
    this.#history = new LogHistory(ports.disk, options.logDirectory, this.#logFiles);
    this.#log = this.#makeLog();
    this.#mark = new DurableMark(ports, options.snapshotDirectory);
    this.#epochs = new EpochWrites(ports.disk, options.snapshotDirectory, {
      onEpochWritten: (name, epoch) => {
        if (name === 'acceptedEpoch') this.#mark.enter(epoch);
        if (!this.#hasFailed) this.#owner?.onEpochDurable(name, epoch);
      },
      onEpochFailed: (name, error) => {
        this.#fail(
          new Error(`cannot write ${name}: ${error.message}. Look at the file system, then start the server again`, {
            cause: error,
          }),
        );
      },
      onEpochsClosed: () => this.#maybeClose(),
    });
  }

  /** A role begins: what becomes durable is reported to it only. null: it has ended. */
  reportTo(role: DurabilityEvents | null): void {
    this.#owner = role;
  }

  /**
   * Recovers the directories; `onRecovered` or `onStorageFailed` follows.
   *
   * @param options.isHeld true when the previous storage was stopped with `keepsHold`
   */
  recover(options: { readonly isHeld: boolean } = { isHeld: false }): void {
    const { trace } = this.#ports;
    if (!this.#options.forceSync && !options.isHeld) {
      trace.emit({
        kind: 'warning',
        message:
          'forceSync is off: writes are acknowledged before they are durable, and a power cut loses the last of them',
      });
    }
    const carriedState = this.#carriedState;
    // Released, so that a database replaced by a truncation or a leader's snapshot can be collected.
    this.#carriedState = null;
    this.#recover(options.isHeld, carriedState, (database, summary, history) => {
      if (this.#options.ensemble === null) this.allowSnapshots();
      this.#events.onRecovered(database, summary, history);
    });
  }

  #recover(isHeld: boolean, carriedState: CarriedStorage | null, onRecovered: StorageEvents['onRecovered']): void {
    this.#phase = 'recovering';
    new Recovery(
      this.#ports,
      this.#options,
      { isHeld, logFiles: this.#logFiles, carriedState, mark: this.#mark },
      {
        onDatabaseRecovered: (database, summary, history) => {
          if (this.#follow(database, summary, history)) onRecovered(database, summary, history);
        },
        onRecoveryFailed: (error) => {
          this.#phase = 'empty';
          this.#fail(error);
          this.#maybeClose();
        },
      },
    ).start();
  }

  /**
   * Appends one txn to the log; zxids are ascending. Durable once `onLogSynced` has reported it.
   *
   * @returns size of the txn's entry in bytes
   */
  append(header: TxnHeader, txn: Txn, treeDigest: bigint | null): number {
    assert(this.#isOpen, 'txns are appended after the recovery');
    const bytes = this.#log.append(header, txn, treeDigest);
    this.#upkeep.onAppended(bytes);
    return bytes;
  }

  /** The same for an encoded txn, as in PROPOSAL: header, record and digest. The bytes are copied. */
  appendPayload(zxid: Zxid, payload: Uint8Array): void {
    assert(this.#isOpen, 'txns are appended after the recovery');
    this.#upkeep.onAppended(this.#log.appendPayload(zxid, payload));
  }

  /** Replaces an epoch file; `onEpochDurable` follows, in the order of the calls. */
  writeEpoch(name: EpochFileName, epoch: number): void {
    assert(this.#database !== null, 'epochs are written after the recovery');
    if (!this.#isEnding) this.#epochs.write(name, epoch);
  }

  /** The end of a turn. */
  flush(): void {
    this.#log.flush();
    this.#upkeep.onTurnEnd();
  }

  onTick(nowMs: number): void {
    this.#upkeep.onTick(nowMs);
    this.#mark.onTick(nowMs);
  }

  /** When `onTick` has to be called; Infinity = never. Monotonic milliseconds. */
  nextDeadlineMs(): number {
    return Math.min(this.#upkeep.dueMs, this.#mark.dueMs);
  }

  /**
   * From now on snapshots are taken, and old ones purged: what is applied is committed. A standalone server allows it
   * at once, a server of an ensemble when it serves; until then it may have applied txns that it has to truncate.
   */
  allowSnapshots(): void {
    assert(this.#isOpen, 'a role begins after the recovery');
    this.#upkeep.allow();
  }

  /** Writes a snapshot now, unless the newest one is up to date. @param done the newest one; null when it has failed */
  takeSnapshot(done: (newest: NewestSnapshotFile | null) => void): void {
    this.#upkeep.take(done);
  }

  /* ----------------------------------------------------------------------------------------------- history ---- */

  /** The newest snapshot on disk. */
  get newestSnapshot(): NewestSnapshotFile {
    return this.#upkeep.newest;
  }

  /** Uncompressed size of the newest snapshot on disk, in bytes. */
  get newestSnapshotBytes(): number {
    return this.#upkeep.newest.bytes;
  }

  /** Bytes of the log file that has `zxid` and of all later ones; Infinity when the log begins later. */
  logBytesAfter(zxid: Zxid): number {
    return this.#logFiles.bytesFrom(zxid);
  }

  /**
   * Reads durable txns from the log files. See `LogHistory.read`; `done` is not called after a stop or a failure.
   */
  readHistory({ after, upTo, bytesMax }: HistoryRange, done: HistoryDone): void {
    assert(this.#isOpen, 'the history is read after the recovery');
    const end = upTo < this.#durableZxid ? upTo : this.#durableZxid;
    this.#history.read({ after, upTo: end, bytesMax }, (entries) => {
      if (!this.#isEnding) done(entries);
    });
  }

  /**
   * Removes everything after `zxid`, durably, and recovers again: `onTruncated` follows, with a new database. Or
   * `onTruncateRefused`, when zxid is neither a txn of the log nor the snapshot that the log begins at, or when no
   * whole snapshot is old enough; then nothing has changed. Nothing may be in flight.
   */
  truncate(zxid: Zxid, events: TruncateEvents): void {
    this.#beginExchange(() => {
      new LogTruncation(
        this.#ports,
        this.#options,
        { zxid, mark: this.#mark },
        {
          onTruncated: () => {
            this.#history.clear();
            if (this.#isEnding) this.#reopen();
            else this.#recover(true, null, (database, _, history) => events.onTruncated(database, history));
          },
          onTruncateRefused: (reason) => {
            if (this.#reopen()) events.onTruncateRefused(reason);
          },
          onTruncateFailed: (error) => {
            this.#fail(new Error(`cannot cut the log after ${hexZxid(zxid)}: ${error.message}`, { cause: error }));
            this.#reopen();
          },
        },
      ).start();
    });
  }

  /**
   * Makes a complete database, with its last zxid set, the whole history: a snapshot of it replaces all logs and
   * snapshots. `onInstalled` follows: the history ends there. If this is interrupted, the next start finds the old
   * history or the new one. The database must not change meanwhile; afterwards snapshots are taken of it. Nothing may
   * be in flight.
   */
  installSnapshot(database: Database, onInstalled: (lastZxid: Durable<Zxid>) => void): void {
    this.#beginExchange(() => {
      this.#install = new SnapshotInstall(
        this.#ports,
        this.#options,
        { database, mark: this.#mark },
        (error, bytes) => {
          this.#install = null;
          if (error === null) this.#adopt(database, bytes);
          else if (this.#stopping === null) {
            this.#fail(new Error(`cannot install the snapshot of the leader: ${error.message}`, { cause: error }));
          }
          if (this.#reopen() && error === null) onInstalled(this.#durableZxid);
        },
      );
      this.#install.start();
    });
  }

  /** From now on this database, with a snapshot of this size, is the history. */
  #adopt(database: Database, bytes: number): void {
    this.#history.clear();
    this.#logFiles.reset([]);
    this.#database = database;
    this.#durableZxid = onDisk(database.lastZxid);
    const compression = this.#options.snapshotCompression;
    this.#upkeep.follow(database, { zxid: database.lastZxid, compression, bytes });
    this.#upkeep.restartCount();
  }

  /** Closes the log, so that only `exchange` accesses the directory. */
  #beginExchange(exchange: () => void): void {
    assert(this.#isOpen, 'a history is exchanged after its recovery');
    assert(!this.#upkeep.isAllowed, 'a history is exchanged before the server serves');
    if (this.#isEnding) return;
    assert(this.#log.isIdle && !this.#epochs.isBusy, 'a history is exchanged while nothing is in flight');
    this.#phase = 'exchanging';
    this.#exchange = exchange;
    this.#log.close();
  }

  /** The exchange is over, and txns may be appended. @returns false after a stop or a failure meanwhile */
  #reopen(): boolean {
    this.#phase = 'open';
    if (this.#isEnding) {
      this.#maybeClose();
      return false;
    }
    this.#log = this.#makeLog();
    this.#log.follow(this.#durableZxid);
    return true;
  }

  /* ------------------------------------------------------------------------------------------------- stop ---- */

  /**
   * Finishes and syncs what was appended, aborts a snapshot in progress, closes; `onStorageStopped` follows.
   *
   * @param options.keepsHold keeps the directories locked, for the storage of the next role; nothing else is reported
   *   meanwhile, not even what becomes durable
   */
  stop(options: { readonly keepsHold: boolean } = { keepsHold: false }): void {
    if (this.#stopping !== null) return;
    const isWhole = this.#phase !== 'recovering' && this.#phase !== 'exchanging';
    this.#stopping = { keepsHold: options.keepsHold, isWhole };
    this.#upkeep.abandon();
    this.#install?.abandon();
    this.#epochs.close();
    // A log that was closed for an exchange is not reopened; the answer needs a separate event.
    if (this.#log.isClosed) this.#ports.disk.list(this.#options.logDirectory, () => this.#maybeClose());
    else this.#log.close();
  }

  /**
   * After `onStorageStopped`: what the next storage of this process can start from. null when the history was being
   * replaced, when the disk has failed, or when the database has txns that are not in the log, as for an observer that
   * does not log: then everything is read from the disk.
   */
  get carriedState(): CarriedStorage | null {
    assert(this.#phase === 'stopped', 'a stopped storage hands over its state');
    const database = this.#database;
    if (database === null || this.#hasFailed || !this.#stopping?.isWhole) return null;
    if (database.lastZxid > this.#durableZxid) return null;
    const durableZxid = this.#durableZxid;
    return { database, durableZxid, snapshot: this.#upkeep.newest, logFiles: this.#logFiles };
  }

  #makeLog(): TxnLog {
    return new TxnLog(
      this.#ports,
      this.#options,
      {
        onSynced: (durable) => {
          this.#durableZxid = durable;
          if (this.#options.forceSync) this.#mark.raise(durable);
          if (!this.#hasFailed && !this.#stopping?.keepsHold) this.#owner?.onLogSynced(durable);
        },
        onLogFailed: (error) => this.#fail(error),
        onLogClosed: () => {
          const exchange = this.#exchange;
          this.#exchange = null;
          if (exchange === null) this.#maybeClose();
          else if (this.#isEnding) this.#reopen();
          else exchange();
        },
      },
      this.#logFiles,
    );
  }

  /** What was recovered is the history from now on. @returns false after a stop or a failure meanwhile */
  #follow(database: Database, summary: RecoverySummary, history: History): boolean {
    this.#database = database;
    this.#durableZxid = history.lastZxid;
    this.#upkeep.follow(database, summary.snapshot);
    if (this.#log.isClosed || this.#isEnding) return this.#reopen();
    this.#phase = 'open';
    this.#log.follow(summary.lastZxid);
    return true;
  }

  get #isOpen(): boolean {
    return this.#phase === 'open';
  }

  /** True once nothing new may begin. */
  get #isEnding(): boolean {
    return this.#stopping !== null || this.#hasFailed;
  }

  /** Continues a stop when everything else is idle. */
  #maybeClose(): void {
    const isHeld = this.#phase === 'open';
    const isResting = this.#upkeep.isAtRest && !this.#epochs.isBusy && this.#log.isClosed;
    if (this.#stopping === null || !isResting || (!isHeld && this.#phase !== 'empty')) return;
    const { keepsHold } = this.#stopping;
    this.#phase = 'closing';
    this.#mark.close(() => {
      this.#phase = 'stopped';
      // After a failure there is no next role.
      if (isHeld && (!keepsHold || this.#hasFailed)) this.#release();
      this.#events.onStorageStopped();
    });
  }

  #release(): void {
    const { snapshotDirectory, logDirectory } = this.#options;
    this.#ports.disk.release(logDirectory);
    if (snapshotDirectory !== logDirectory) this.#ports.disk.release(snapshotDirectory);
  }

  #fail(error: Error): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#upkeep.end();
    this.#events.onStorageFailed(error);
  }
}
