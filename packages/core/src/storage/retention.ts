/**
 * The purge (PurgeTxnLog): keeps the newest snapshots and every log that one of them needs.
 *
 * 1. Only snapshots that pass the quick test count; with fewer than `retainCount` of them nothing is removed, so the
 *    only usable snapshot is never removed.
 * 2. The names of the kept ones are made durable before anything is removed.
 * 3. Of the logs, the newest file whose name is not above the oldest kept snapshot is kept: it has the later txns.
 * 4. Replaced files (`replaced-files.ts`) are removed with the snapshots of their time, once the history has moved on.
 */
import type { DirectoryEntry, DiskError, Ports } from '../base/ports.ts';
import { logFilesOf, snapshotFilesOf, type ZxidFile } from './file-names.ts';
import { replacedBefore } from './replaced-files.ts';
import { looksWhole } from './snapshot-store.ts';

export interface RetentionOptions {
  readonly snapshotDirectory: string;
  readonly logDirectory: string;
  /** Number of snapshots to keep; at least RETAIN_COUNT_MIN. */
  readonly retainCount: number;
}

/** Apache refuses to keep fewer. */
export const RETAIN_COUNT_MIN = 3;

export class Purge {
  readonly #ports: Pick<Ports, 'disk' | 'trace'>;
  readonly #options: RetentionOptions;
  #removedLogs: readonly string[] = [];
  readonly #done: (removedLogs: readonly string[]) => void;

  /** @param done called once, in a later event, in any case, with the names of log files that may have been removed */
  constructor(
    ports: Pick<Ports, 'disk' | 'trace'>,
    options: RetentionOptions,
    done: (removedLogs: readonly string[]) => void,
  ) {
    this.#ports = ports;
    this.#options = options;
    this.#done = done;
  }

  start(): void {
    const { disk, trace } = this.#ports;
    const { snapshotDirectory, logDirectory } = this.#options;
    trace.emit({ kind: 'purge-started' });
    disk.list(snapshotDirectory, (error, snapshotEntries) => {
      if (error !== null) return this.#giveUp(error);
      disk.list(logDirectory, (logError, logEntries) => {
        if (logError !== null) return this.#giveUp(logError);
        this.#findKept(snapshotEntries, logEntries);
      });
    });
  }

  #findKept(snapshotEntries: readonly DirectoryEntry[], logEntries: readonly DirectoryEntry[]): void {
    const { disk } = this.#ports;
    const { snapshotDirectory, logDirectory } = this.#options;
    const snapshots = snapshotFilesOf(snapshotEntries);
    let missing = Math.max(this.#options.retainCount, RETAIN_COUNT_MIN);
    let index = snapshots.length;
    const checkNext = (): void => {
      if (missing === 0) {
        const { zxid } = snapshots[index]!;
        const replaced = [
          ...replacedBefore(zxid, snapshotDirectory, snapshotEntries),
          ...(logDirectory === snapshotDirectory ? [] : replacedBefore(zxid, logDirectory, logEntries)),
        ];
        this.#remove(filesToRemove(snapshots, logFilesOf(logEntries), index), replaced);
        return;
      }
      index--;
      const file = snapshots[index];
      if (file === undefined) {
        this.#end();
        return;
      }
      looksWhole(disk, `${snapshotDirectory}/${file.name}`, file.size, (error, isWhole) => {
        if (error === null && isWhole) missing--;
        checkNext();
      });
    };
    checkNext();
  }

  #remove(removed: FilesToRemove, replaced: readonly string[]): void {
    const { disk, trace } = this.#ports;
    const { snapshotDirectory, logDirectory } = this.#options;
    const paths = [
      ...removed.snapshots.map((file) => `${snapshotDirectory}/${file.name}`),
      ...removed.logs.map((file) => `${logDirectory}/${file.name}`),
      ...replaced,
    ];
    if (paths.length === 0) {
      this.#end();
      return;
    }
    this.#removedLogs = removed.logs.map((file) => file.name);
    const syncBoth = (then: () => void): void => {
      disk.syncDirectory(snapshotDirectory, (error) => {
        if (error !== null) return this.#giveUp(error);
        if (logDirectory === snapshotDirectory) return then();
        disk.syncDirectory(logDirectory, (logError) => (logError === null ? then() : this.#giveUp(logError)));
      });
    };
    let index = 0;
    const removeNext = (): void => {
      const path = paths[index++];
      if (path !== undefined) {
        disk.remove(path, (error) => (error === null || error.code === 'ENOENT' ? removeNext() : this.#giveUp(error)));
        return;
      }
      syncBoth(() => {
        trace.emit({ kind: 'files-purged', files: paths });
        this.#end();
      });
    };
    syncBoth(removeNext);
  }

  #end(): void {
    this.#ports.trace.emit({ kind: 'purge-ended' });
    this.#done(this.#removedLogs);
  }

  #giveUp(error: DiskError): void {
    this.#ports.trace.emit({ kind: 'warning', message: `old files are not purged: ${error.message}` });
    this.#end();
  }
}

interface FilesToRemove {
  readonly snapshots: readonly ZxidFile[];
  readonly logs: readonly ZxidFile[];
}

/**
 * @param snapshots oldest first
 * @param logs oldest first
 * @param oldestKept index of the oldest snapshot to keep
 */
export function filesToRemove(
  snapshots: readonly ZxidFile[],
  logs: readonly ZxidFile[],
  oldestKept: number,
): FilesToRemove {
  const kept = snapshots[oldestKept];
  if (kept === undefined) return { snapshots: [], logs: [] };
  const oldestLogKept = logs.findLastIndex((file) => file.zxid <= kept.zxid);
  return { snapshots: snapshots.slice(0, oldestKept), logs: logs.slice(0, Math.max(oldestLogKept, 0)) };
}
