/**
 * Everything that a server keeps on its disk: the log, the snapshots, the epoch files.
 *
 *     recover ─► onRecovered ─► append … flush ─► onLogSynced … ─► stop ─► onStorageStopped
 *
 * The host calls `flush` at the end of every turn: the txns appended during it go to the disk together, and a snapshot
 * that has become due begins. After `onStorageFailed` nothing is durable any more; the server stops.
 */
import type { Txn, TxnHeader, Zxid } from '@meerkat/protocol';
import { assert } from '../assert.ts';
import type { CoreOptions } from '../options.ts';
import type { Ports } from '../ports.ts';
import type { Database } from '../tree/database.ts';
import type { Durable } from './durable.ts';
import { Recovery, type RecoverySummary } from './recovery.ts';
import { Purge } from './retention.ts';
import { SnapshotTrigger } from './snapshot-trigger.ts';
import { SnapshotWrite } from './snapshot-write.ts';
import { TxnLog } from './txn-log.ts';

export type { RecoverySummary } from './recovery.ts';

export interface StorageEvents {
  /** The newest snapshot and the log behind it, applied. */
  onRecovered(database: Database, summary: RecoverySummary): void;
  /** Everything up to here is safe. */
  onLogSynced(durable: Durable<Zxid>): void;
  /** The server must stop: the start found damage, or the disk failed. Nothing more becomes durable. Told once. */
  onStorageFailed(error: Error): void;
  /** The answer to `stop`. */
  onStorageStopped(): void;
}

/** After this long a server that replayed txns writes a snapshot, so that the next start is short. */
const FIRST_SNAPSHOT_AFTER_MS = 1000;

export class Storage {
  readonly #ports: Pick<Ports, 'disk' | 'clock' | 'random' | 'trace'>;
  readonly #options: CoreOptions;
  readonly #events: StorageEvents;
  readonly #log: TxnLog;
  readonly #trigger: SnapshotTrigger;

  #database: Database | null = null;
  #snapshot: SnapshotWrite | null = null;
  /** Zxid of the newest snapshot on the disk. */
  #snapshotZxid = -1;
  /** When a snapshot is due although few txns were appended; Infinity = not. Monotonic. */
  #snapshotDueMs = Number.POSITIVE_INFINITY;
  #purge: Purge | null = null;
  #purgeDueMs = Number.POSITIVE_INFINITY;
  #hasFailed = false;
  #isStopping = false;
  #isLogClosed = false;
  #isRecovering = false;

  constructor(ports: Pick<Ports, 'disk' | 'clock' | 'random' | 'trace'>, options: CoreOptions, events: StorageEvents) {
    this.#ports = ports;
    this.#options = options;
    this.#events = events;
    this.#trigger = new SnapshotTrigger(ports.random, options);
    this.#log = new TxnLog(ports, options, {
      onSynced: (durable) => this.#events.onLogSynced(durable),
      onLogFailed: (error) => this.#fail(error),
      onLogClosed: () => {
        this.#isLogClosed = true;
        this.#maybeFinishStopping();
      },
    });
  }

  /** Reads what is there; `onRecovered` or `onStorageFailed` follows. */
  recover(): void {
    const { trace } = this.#ports;
    if (!this.#options.forceSync) {
      trace.emit({
        kind: 'warning',
        message:
          'forceSync is off: writes are acknowledged before they are safe, and a power cut loses the last of them',
      });
    }
    this.#isRecovering = true;
    new Recovery(this.#ports, this.#options, {
      onDatabaseRecovered: (database, summary) => this.#onDatabaseRecovered(database, summary),
      onRecoveryFailed: (error) => {
        this.#isRecovering = false;
        this.#fail(error);
        this.#maybeFinishStopping();
      },
    }).start();
  }

  /** Takes one txn into the log; zxids come in ascending order. Durable once `onLogSynced` has told so. */
  append(header: TxnHeader, txn: Txn, treeDigest: bigint | null): void {
    assert(this.#database !== null, 'txns are appended after the recovery');
    this.#trigger.onAppended(this.#log.append(header, txn, treeDigest));
  }

  /** The end of a turn. */
  flush(): void {
    this.#log.flush();
    if (this.#trigger.isDue) this.#maybeStartSnapshot();
  }

  onTick(nowMs: number): void {
    if (nowMs >= this.#snapshotDueMs) this.#maybeStartSnapshot();
    if (nowMs >= this.#purgeDueMs) this.#startPurge(nowMs);
  }

  /** When `onTick` has something to do; Infinity = never. Monotonic milliseconds. */
  nextDeadlineMs(): number {
    return Math.min(this.#snapshotDueMs, this.#purgeDueMs);
  }

  /** Finishes and syncs what was appended, gives up a snapshot in progress, closes; `onStorageStopped` follows. */
  stop(): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#snapshotDueMs = Number.POSITIVE_INFINITY;
    this.#purgeDueMs = Number.POSITIVE_INFINITY;
    this.#snapshot?.abandon();
    this.#log.close();
  }

  #onDatabaseRecovered(database: Database, summary: RecoverySummary): void {
    this.#isRecovering = false;
    this.#database = database;
    if (this.#isStopping) {
      this.#maybeFinishStopping();
      return;
    }
    this.#snapshotZxid = summary.snapshotZxid;
    // In whole milliseconds, as `onTick` counts: a deadline in the middle of one would be due and not due at once.
    const nowMs = Math.floor(this.#ports.clock.monotonicMs());
    if (summary.txns > 0) this.#snapshotDueMs = nowMs + FIRST_SNAPSHOT_AFTER_MS;
    if (this.#options.purgeIntervalMs > 0) this.#purgeDueMs = nowMs;
    this.#events.onRecovered(database, summary);
  }

  /** One at a time; the log begins a new file with it, so that old files can go one day. */
  #maybeStartSnapshot(): void {
    const database = this.#database;
    if (this.#snapshot !== null || database === null || this.#hasFailed || this.#isStopping) return;
    this.#snapshotDueMs = Number.POSITIVE_INFINITY;
    this.#trigger.reset();
    // Nothing was applied since the newest one: it would be written over itself.
    if (database.lastZxid === this.#snapshotZxid) return;
    this.#log.roll();
    const snapshot = new SnapshotWrite(this.#ports, this.#options, database, {
      onSnapshotWritten: (zxid) => {
        this.#snapshotZxid = zxid;
        this.#onSnapshotEnded();
      },
      onSnapshotFailed: () => this.#onSnapshotEnded(),
    });
    this.#snapshot = snapshot;
    snapshot.start();
  }

  #onSnapshotEnded(): void {
    this.#snapshot = null;
    this.#maybeFinishStopping();
  }

  #startPurge(nowMs: number): void {
    this.#purgeDueMs = nowMs + this.#options.purgeIntervalMs;
    if (this.#purge !== null || this.#hasFailed || this.#isStopping) return;
    const { snapshotDirectory, logDirectory, purgeRetainCount } = this.#options;
    this.#purge = new Purge(this.#ports, { snapshotDirectory, logDirectory, retainCount: purgeRetainCount }, () => {
      this.#purge = null;
      this.#maybeFinishStopping();
    });
    this.#purge.start();
  }

  #maybeFinishStopping(): void {
    const isBusy = this.#isRecovering || !this.#isLogClosed || this.#snapshot !== null || this.#purge !== null;
    if (!this.#isStopping || isBusy) return;
    const { snapshotDirectory, logDirectory } = this.#options;
    if (this.#database !== null) {
      this.#ports.disk.release(logDirectory);
      if (snapshotDirectory !== logDirectory) this.#ports.disk.release(snapshotDirectory);
    }
    this.#events.onStorageStopped();
  }

  #fail(error: Error): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#events.onStorageFailed(error);
  }
}
