/**
 * Removes everything after a zxid from the history: txns that were proposed, logged here, and never committed. They are
 * kept under other names (`replaced-files.ts`).
 *
 *     check: base snapshot ≤ zxid ─► the log from there on, to its end ─► is zxid reached?      nothing is modified yet
 *     cut:   snapshots above the base ─► later log files ─► the rest of the file that zxid is in
 *
 * 1. The base is the newest snapshot that is whole and contains nothing after zxid, its fuzzy part included.
 * 2. zxid is a txn of the log or the base itself; from the base on the log lacks nothing. Otherwise it is refused.
 * 3. Everything is removed newest first, each step durable before the next one. So after a power cut at any point, the
 *    next start finds the old history up to some txn that is not before zxid: without the newer snapshots the log
 *    continues from the base, and the log only ever loses its end.
 * 4. The file is cut to its entries, so that no old data follows them. If an Apache server has logged txns twice, there
 *    may be several files to cut.
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

/** Exactly one of the three is called, once, in a later event. */
export interface LogTruncationEvents {
  /** Nothing on the disk is after the zxid, durably. */
  onTruncated(): void;
  /** It is impossible, and nothing was modified. */
  onTruncateRefused(reason: string): void;
  onTruncateFailed(error: Error): void;
}

/** The end of a file, from the first entry after the zxid on. */
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

  /** @param zxid the last txn that is kept. The log must be closed, and no snapshot or purge in progress. */
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

  /** Loads the newest snapshot that is not above `zxidMax`: only then is it known to be whole. */
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
    // One more file, in case it continues beyond the beginning of the next one.
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
    this.#events.onTruncateRefused(`the history cannot be cut after zxid ${hexZxid(this.#zxid)}: ${reason}`);
  }

  #remove(base: Zxid): void {
    const { disk } = this.#ports;
    const snapshots = snapshotFilesOf(this.#snapshotEntries).filter((file) => file.zxid > base);
    const logs = this.#logs.filter((file) => file.zxid > this.#zxid);
    if (snapshots.length === 0 && logs.length === 0 && this.#cuts.length === 0) {
      // Nothing follows; the result needs an event.
      disk.syncDirectory(this.#options.logDirectory, (error) => this.#end(error));
      return;
    }
    // The mark must not cover what is about to be removed.
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

/** True when the snapshot contains nothing after `zxid`. One without a completion zxid may contain more. */
function isUpTo({ completeZxid }: LoadedSnapshot, zxid: Zxid): boolean {
  return completeZxid !== null && completeZxid <= zxid;
}

/** The recovery has read the same files, and reported what it found. */
const SILENT: Trace = { emit() {} };
