/**
 * Takes out of the history everything behind a zxid: txns that were proposed, logged here, and never committed. It is
 * kept under other names (`replaced-files.ts`).
 *
 *     look: base snapshot ≤ zxid ─► the log from there on, to its end ─► is zxid reached?      nothing is touched yet
 *     cut:  snapshots above the base ─► later log files ─► the rest of the file that zxid is in
 *
 * 1. The base is the newest snapshot that is whole and holds nothing behind zxid, its fuzzy part included.
 * 2. zxid is a txn of the log or the base itself; from the base on the log lacks nothing. Otherwise it is refused.
 * 3. Everything goes newest first, each step durable before the next one. So wherever the power is cut, what the next
 *    start finds is the old history up to some txn that is not before zxid: without the newer snapshots the log leads on
 *    from the base, and the log only ever loses its end.
 * 4. The file is cut to its entries, so that nothing of old stands behind them. Of files in which an Apache server has
 *    written txns twice, there may be several to cut.
 */
import { hexZxid, previousZxid, ZXID_NONE, type Zxid } from '@meerkat/protocol';
import type { CoreOptions } from '../base/options.ts';
import { type DirectoryEntry, type DiskDone, DiskError, type Ports, type Trace } from '../base/ports.ts';
import { Database } from '../tree/database.ts';
import type { DurableMark } from './durable-mark.ts';
import { logFilesOf, snapshotFilesOf, type ZxidFile } from './file-names.ts';
import { ReplacedSet } from './replaced-files.ts';
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

/** The end of a file, from the first entry behind the zxid on. */
interface Cut {
  readonly name: string;
  readonly position: number;
  /** Where the entries of the file end. */
  end: number;
}

export class LogTruncation {
  readonly #ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'trace'>;
  readonly #options: CoreOptions;
  readonly #zxid: Zxid;
  readonly #mark: DurableMark;
  readonly #events: LogTruncationEvents;
  #snapshotEntries: readonly DirectoryEntry[] = [];
  #logs: readonly ZxidFile[] = [];
  #isReached = false;
  /** Oldest file first. */
  readonly #cuts: Cut[] = [];

  /** @param zxid the last txn that stays. The log is closed, and nobody writes a snapshot or removes files. */
  constructor(
    ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'trace'>,
    options: CoreOptions,
    { zxid, mark }: { readonly zxid: Zxid; readonly mark: DurableMark },
    events: LogTruncationEvents,
  ) {
    this.#ports = ports;
    this.#options = options;
    this.#zxid = zxid;
    this.#mark = mark;
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
    const names = snapshotFilesOf(this.#snapshotEntries).flatMap(({ zxid, name }) => (zxid <= zxidMax ? [name] : []));
    const entries = this.#snapshotEntries.filter(({ name }) => names.includes(name));
    const refuse = (): void => this.#refuse('no snapshot that is whole is old enough');
    const newest = new NewestSnapshot(
      { ...this.#ports, scans: null, trace: SILENT },
      this.#options.snapshotDirectory,
      entries,
      () => new Database(this.#options, SILENT),
      {
        onSnapshotLoaded: (snapshot) => {
          if (isUpTo(snapshot, this.#zxid)) this.#readLog(snapshot.zxid);
          else if (snapshot.zxid === 0) refuse();
          else this.#findBase(previousZxid(snapshot.zxid));
        },
        onNoSnapshot: refuse,
        onSnapshotsUnusable: refuse,
      },
    );
    newest.load();
  }

  #readLog(base: Zxid): void {
    const { disk } = this.#ports;
    const zxid = this.#zxid;
    const first = this.#logs.findLastIndex((file) => file.zxid <= base);
    // One file more, for the case that it goes on beyond where the next one begins.
    const files = this.#logs.slice(Math.max(first - 1, 0));
    this.#isReached = base === zxid;
    const onEntry = (entryZxid: Zxid, { name, zxid: nameZxid }: ZxidFile, position: number): void => {
      if (entryZxid === zxid) this.#isReached = true;
      if (entryZxid <= zxid || nameZxid > zxid || this.#cuts.at(-1)?.name === name) return;
      this.#cuts.push({ name, position, end: position });
    };
    const reader = new TxnLogReader(
      { disk, trace: SILENT },
      {
        ...this.#options,
        files,
        durable: ZXID_NONE,
        after: base,
        startAt: 0,
        areSizesExact: false,
        isEnsemble: true,
        rewritesEnd: false,
      },
      {
        onTxn: () => {
          onEntry(reader.entryZxid, reader.entryFile, reader.entryPosition);
          return true;
        },
        onKnownTxn: onEntry,
        onLogFileRead: ({ name }, bytes) => {
          const cut = this.#cuts.at(-1);
          if (cut?.name === name) cut.end = bytes;
        },
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
    this.#events.onTruncateRefused(`the history cannot be cut behind zxid ${hexZxid(this.#zxid)}: ${reason}`);
  }

  #remove(base: Zxid): void {
    const { disk } = this.#ports;
    const snapshots = snapshotFilesOf(this.#snapshotEntries).filter((file) => file.zxid > base);
    const logs = this.#logs.filter((file) => file.zxid > this.#zxid);
    if (snapshots.length === 0 && logs.length === 0 && this.#cuts.length === 0) {
      // Nothing follows; the answer needs an event.
      disk.syncDirectory(this.#options.logDirectory, (error) => this.#end(error));
      return;
    }
    // What goes now, the log need not have any more.
    this.#mark.lower(this.#zxid, (markError) => {
      if (markError !== null) return this.#end(markError);
      ReplacedSet.begin(disk, this.#options, this.#zxid, (error, set) => {
        if (set === null) this.#end(error);
        else this.#replace(set, snapshots, logs);
      });
    });
  }

  #replace(set: ReplacedSet, snapshots: readonly ZxidFile[], logs: readonly ZxidFile[]): void {
    const { snapshotDirectory, logDirectory } = this.#options;
    const where = `behind zxid ${hexZxid(this.#zxid)}`;
    const message = `the history is cut ${where}: what follows was never committed; it is kept as ${set.prefix}…`;
    this.#ports.trace.emit({ kind: 'recovery-progress', message });
    const steps: ((done: DiskDone) => void)[] = [
      ...this.#removals(set, snapshotDirectory, snapshots),
      ...this.#removals(set, logDirectory, logs),
    ];
    for (const cut of this.#cuts.toReversed()) steps.push((done) => set.cut(logDirectory, cut.name, cut, done));
    const next = (error: DiskError | null): void => {
      const step = error === null ? steps.shift() : undefined;
      if (step !== undefined) step(next);
      else this.#end(error);
    };
    next(null);
  }

  #end(error: DiskError | null): void {
    if (error === null) this.#events.onTruncated();
    else this.#events.onTruncateFailed(error);
  }

  #removals(set: ReplacedSet, directory: string, files: readonly ZxidFile[]): ((done: DiskDone) => void)[] {
    const { disk } = this.#ports;
    return files
      .toReversed()
      .flatMap(({ name }) => [
        (done: DiskDone) => set.move(directory, name, done),
        (done: DiskDone) => disk.syncDirectory(directory, done),
      ]);
  }
}

/** True when nothing behind `zxid` is in the snapshot. One that does not say so may hold more. */
function isUpTo({ completeZxid }: LoadedSnapshot, zxid: Zxid): boolean {
  return completeZxid !== null && completeZxid <= zxid;
}

/** What is looked at here was looked at by the recovery, which has told about it. */
const SILENT: Trace = { emit() {} };
