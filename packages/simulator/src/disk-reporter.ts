import type { DiskObserver, DiskOperation, MemoryDisk } from '@meerkat/core';
import type { LiveChecker } from './checkers/live-checker.ts';
import {
  findSnapshotFault,
  LOG_HEADER_BYTES,
  readEpoch,
  readLogEntries,
  readServerDisk,
  zxidBehind,
} from './disk-reader.ts';
import type { VirtualServer } from './virtual-server.ts';

/** Reports to a live checker what reaches one server's disk, from files and bytes alone. */
export class DiskReporter implements DiskObserver {
  readonly #checker: LiveChecker;
  readonly #serverId: number;
  /** Of snapshots and epochs. */
  readonly #directory: string;
  readonly #logDirectory: string;
  readonly #disk: () => MemoryDisk;
  /** Last txn written to each log file. */
  readonly #lastWritten: Map<string, number> = new Map();
  /** Last txn in the log, as reported so far. */
  #lastLogged = 0;
  /** What becomes durable with the next sync of the directory. */
  #renamed: string[] = [];
  #installing: number | null = null;
  /** Where a leader has asked for a truncation that has not been seen done yet. */
  #truncateTo: number | null = null;

  constructor(checker: LiveChecker, { serverId, options }: VirtualServer, disk: () => MemoryDisk) {
    this.#checker = checker;
    this.#serverId = serverId;
    this.#directory = options.snapshotDirectory;
    this.#logDirectory = options.logDirectory;
    this.#disk = disk;
  }

  /** A new process starts; its recovery finds out which writes of the last one survived. */
  onStarted(): void {
    this.#lastWritten.clear();
    this.#renamed = [];
  }

  onWiped(): void {
    this.#lastLogged = 0;
    this.#installing = null;
    this.#truncateTo = null;
  }

  onWritten(path: string, position: number, bytes: Uint8Array): void {
    if (!this.#isLog(path)) return;
    readLogEntries(bytes, position === 0 ? LOG_HEADER_BYTES : 0, ({ zxid, payload }) => {
      this.#lastWritten.set(path, zxid);
      if (zxid <= this.#lastLogged) return;
      this.#lastLogged = zxid;
      this.#truncateTo = null;
      this.#checker.onLogged(this.#serverId, zxid, payload);
    });
  }

  onSynced(path: string): void {
    const zxid = this.#lastWritten.get(path);
    if (zxid === undefined || zxid > this.#lastLogged) return;
    this.#checker.onLogDurable(this.#serverId, zxid);
  }

  onRenamed(source: string, target: string): void {
    const name = this.#nameOf(target);
    const log = zxidBehind('log.', this.#nameOf(source));
    if (log !== null) {
      const others = this.#disk().names(this.#logDirectory);
      this.#checker.onLogSetAside(
        this.#serverId,
        log,
        others.flatMap((other) => zxidBehind('log.', other) ?? []),
      );
    }
    this.#renamed.push(name);
    this.#installing = zxidBehind('installing-snapshot.', name) ?? this.#installing;
  }

  onDirectorySynced(path: string): void {
    if (path !== this.#directory) return;
    const renamed = this.#renamed;
    this.#renamed = [];
    for (const name of renamed) {
      if (name === 'acceptedEpoch' || name === 'currentEpoch') {
        this.#checker.onEpochDurable(this.#serverId, name, readEpoch(this.#disk(), `${path}/${name}`));
      } else if (name.startsWith('installing-snapshot.')) this.#completeInstallation();
      else this.#checkSnapshot(name);
    }
  }

  #checkSnapshot(name: string): void {
    const zxid = zxidBehind('snapshot.', name);
    const bytes = zxid === null ? null : this.#disk().peek(`${this.#directory}/${name}`);
    if (zxid === null || bytes === null) return;
    const fault = findSnapshotFault(bytes, zxid);
    if (fault !== null) this.#checker.onSnapshotFaulty(this.#serverId, zxid, fault);
  }

  /** A snapshot may fail: the log still has everything. */
  onFailed(operation: DiskOperation, path: string): void {
    const isWrite = operation === 'write' || operation === 'sync';
    const isPromise = this.#isLog(path) || this.#nameOf(path).includes('Epoch');
    if (isWrite && isPromise) this.#checker.onDiskFailed(this.#serverId);
  }

  /** A leader's TRUNC has arrived. */
  onTruncateAsked(zxid: number): void {
    this.#truncateTo = zxid;
  }

  /** The server has read its disk, and repaired what it repairs. */
  onRecovered(): void {
    const found = readServerDisk(this.#disk(), this.#directory, this.#logDirectory);
    const lastFound = found.txns.at(-1)?.zxid ?? found.base;
    // A power cut may have left the renames that complete the installation.
    if (this.#installing === found.base) this.#completeInstallation();
    const truncateTo = this.#truncateTo;
    if (truncateTo !== null && lastFound >= truncateTo && lastFound < this.#lastLogged) {
      // A truncation that was interrupted leaves more than was asked for, never less.
      this.#checker.onTruncated(this.#serverId, lastFound);
    }
    this.#renamed = [];
    this.#lastWritten.clear();
    this.#lastLogged = lastFound;
    this.#checker.onRecovered(this.#serverId, found);
  }

  onPurged(): void {
    const zxidsOf = (prefix: string, directory: string): number[] =>
      this.#disk()
        .names(directory)
        .flatMap((name) => zxidBehind(prefix, name) ?? [])
        .sort((a, b) => a - b);
    const [logBegin = null] = zxidsOf('log.', this.#logDirectory);
    this.#checker.onPurged(this.#serverId, zxidsOf('snapshot.', this.#directory), logBegin);
  }

  #completeInstallation(): void {
    const zxid = this.#installing;
    if (zxid === null) return;
    this.#installing = null;
    this.#lastWritten.clear();
    this.#lastLogged = zxid;
    this.#checker.onSnapshotInstalled(this.#serverId, zxid);
  }

  #isLog(path: string): boolean {
    return zxidBehind('log.', this.#nameOf(path)) !== null;
  }

  #nameOf(path: string): string {
    return path.slice(path.lastIndexOf('/') + 1);
  }
}
