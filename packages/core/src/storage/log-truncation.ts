/**
 * Removes from the disk everything behind a zxid: txns that were proposed, logged here, and never committed.
 *
 *     look: base snapshot ≤ zxid ─► the log from there on, to its end ─► is zxid reached?      nothing is touched yet
 *     cut:  snapshots above the base ─► later log files ─► the rest of the file that zxid is in
 *
 * 1. The base is the newest snapshot that is whole and holds nothing behind zxid, its fuzzy part included.
 * 2. zxid is a txn of the log or the base itself; from the base on the log has no gap. Otherwise it is refused.
 * 3. Everything goes newest first, each removal durable before the next one. So wherever the power is cut, what the next
 *    start finds is the old history up to some txn that is not before zxid: without the newer snapshots the log leads on
 *    from the base, and the log only ever loses its end.
 * 4. The file is cut to its entries, so that nothing of old stands behind them.
 */
import { formatZxid, type Zxid } from '@meerkat/protocol';
import type { CoreOptions } from '../options.ts';
import { type DirectoryEntry, type DiskDone, DiskError, type Ports, type Trace } from '../ports.ts';
import { Database } from '../tree/database.ts';
import { logFilesOf, snapshotFilesOf, type ZxidFile } from './file-names.ts';
import { type LoadedSnapshot, NewestSnapshot } from './snapshot-store.ts';
import { TxnLogReader } from './txn-log-reader.ts';

/** Exactly one of the three is told, once, with a later event. */
export interface LogTruncationEvents {
  /** Nothing on the disk is behind the zxid any more, durably. */
  onTruncated(): void;
  /** It is impossible, and nothing was touched. */
  onTruncateRefused(reason: string): void;
  onTruncateFailed(error: Error): void;
}

/** What stands first behind the zxid in the file that goes on to it. */
interface Cut {
  readonly path: string;
  readonly position: number;
}

export class LogTruncation {
  readonly #ports: Pick<Ports, 'disk' | 'trace'>;
  readonly #options: CoreOptions;
  readonly #zxid: Zxid;
  readonly #events: LogTruncationEvents;
  #snapshotEntries: readonly DirectoryEntry[] = [];
  #logs: readonly ZxidFile[] = [];
  #isReached = false;
  #cut: Cut | null = null;

  /** @param zxid the last txn that stays. The log is closed, and nobody writes a snapshot or removes files. */
  constructor(ports: Pick<Ports, 'disk' | 'trace'>, options: CoreOptions, zxid: Zxid, events: LogTruncationEvents) {
    this.#ports = ports;
    this.#options = options;
    this.#zxid = zxid;
    this.#events = events;
  }

  start(): void {
    const { disk } = this.#ports;
    const { snapshotDirectory, logDirectory } = this.#options;
    disk.list(snapshotDirectory, (error, entries) => {
      if (error !== null) return this.#events.onTruncateFailed(error);
      this.#snapshotEntries = entries;
      disk.list(logDirectory, (logError, logEntries) => {
        if (logError !== null) return this.#events.onTruncateFailed(logError);
        this.#logs = logFilesOf(logEntries);
        this.#findBase(this.#zxid);
      });
    });
  }

  /** Loads the newest snapshot that is not above `zxidMax`: only then it is known to be whole. */
  #findBase(zxidMax: Zxid): void {
    const { disk } = this.#ports;
    const names = snapshotFilesOf(this.#snapshotEntries).flatMap(({ zxid, name }) => (zxid <= zxidMax ? [name] : []));
    const entries = this.#snapshotEntries.filter(({ name }) => names.includes(name));
    const refuse = (): void => this.#refuse('no snapshot that is whole is old enough');
    const newest = new NewestSnapshot(
      { disk, trace: SILENT },
      this.#options.snapshotDirectory,
      entries,
      () => new Database(this.#options, SILENT),
      {
        onSnapshotLoaded: (snapshot) => {
          if (isUpTo(snapshot, this.#zxid)) this.#readLog(snapshot.zxid);
          else if (snapshot.zxid === 0) refuse();
          else this.#findBase((snapshot.zxid - 1) as Zxid);
        },
        onNoSnapshot: refuse,
        onSnapshotsUnusable: refuse,
      },
    );
    newest.load();
  }

  #readLog(base: Zxid): void {
    const { disk } = this.#ports;
    const { logDirectory } = this.#options;
    const zxid = this.#zxid;
    const first = this.#logs.findLastIndex((file) => file.zxid <= base);
    const files = this.#logs.slice(Math.max(first, 0));
    this.#isReached = base === zxid;
    const reader = new TxnLogReader(
      { disk, trace: SILENT },
      {
        logDirectory,
        files,
        after: base,
        startAt: 0,
        areSizesExact: false,
        isEnsemble: true,
        rewriteEntryBytesMax: null,
      },
      {
        onTxn: () => {
          const { entryZxid, entryPosition, entryFile } = reader;
          if (entryZxid === zxid) this.#isReached = true;
          if (entryZxid > zxid && entryFile.zxid <= zxid) {
            this.#cut ??= { path: `${logDirectory}/${entryFile.name}`, position: entryPosition };
          }
          return true;
        },
        onLogFileRead() {},
        onLogRead: () => {
          if (this.#isReached) this.#remove(base);
          else this.#refuse('it is neither a txn of the log nor a snapshot that the log continues');
        },
        onLogFault: (error) => {
          if (error.cause instanceof DiskError) this.#events.onTruncateFailed(error);
          else this.#refuse(error.message);
        },
      },
    );
    reader.start();
  }

  #refuse(reason: string): void {
    this.#events.onTruncateRefused(`the history cannot be cut behind zxid 0x${formatZxid(this.#zxid)}: ${reason}`);
  }

  #remove(base: Zxid): void {
    const { disk, trace } = this.#ports;
    const { snapshotDirectory, logDirectory } = this.#options;
    const snapshots = snapshotFilesOf(this.#snapshotEntries).filter((file) => file.zxid > base);
    const logs = this.#logs.filter((file) => file.zxid > this.#zxid);
    const cut = this.#cut;
    const steps: ((done: DiskDone) => void)[] = [
      ...this.#removals(snapshotDirectory, snapshots),
      ...this.#removals(logDirectory, logs),
    ];
    if (cut !== null) steps.push((done) => this.#cutFile(cut, done));
    const next = (error: DiskError | null): void => {
      const step = error === null ? steps.shift() : undefined;
      if (step !== undefined) step(next);
      else if (error === null) this.#events.onTruncated();
      else this.#events.onTruncateFailed(error);
    };
    if (steps.length > 0) {
      trace.emit({
        kind: 'recovery-progress',
        message: `the history is cut behind zxid 0x${formatZxid(this.#zxid)}: what follows was never committed`,
      });
      next(null);
      return;
    }
    // Nothing follows; the answer needs an event.
    disk.syncDirectory(logDirectory, next);
  }

  #removals(directory: string, files: readonly ZxidFile[]): ((done: DiskDone) => void)[] {
    const { disk } = this.#ports;
    return files
      .toReversed()
      .flatMap(({ name }) => [
        (done: DiskDone) => disk.remove(`${directory}/${name}`, done),
        (done: DiskDone) => disk.syncDirectory(directory, done),
      ]);
  }

  #cutFile({ path, position }: Cut, done: DiskDone): void {
    this.#ports.disk.open(path, { readOnly: false }, (error, file) => {
      if (error !== null) return done(error);
      let failure: DiskError | null = null;
      file.truncate(position, (truncateError) => {
        failure = truncateError;
      });
      file.sync((syncError) => {
        file.close();
        done(failure ?? syncError);
      });
    });
  }
}

/** True when nothing behind `zxid` is in the snapshot. One that does not say so may hold more. */
function isUpTo({ completeZxid }: LoadedSnapshot, zxid: Zxid): boolean {
  return completeZxid !== null && completeZxid <= zxid;
}

/** What is looked at here was looked at by the recovery, which has told about it. */
const SILENT: Trace = { emit() {} };
