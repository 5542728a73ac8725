/**
 * A copy of the files of a server, from which every state since the oldest snapshot can be restored:
 *
 *     <directory>/version-2/snapshot.<zxid>   as the server wrote it, unpacked or not
 *                          /log.<zxid>        its txns, without a hole from the oldest snapshot on
 *
 * It has the layout of a data directory. It is safe to kill at any moment:
 *
 * 1. A batch of txns is appended and synced; a torn batch is cut off at the next start and copied again.
 * 2. A snapshot is copied under a temporary name, verified, and renamed once the log reaches the zxid at which it was
 *    complete. So every snapshot with its final name can be restored.
 * 3. When the server has replaced an uncommitted txn, it is replaced here, too; the old one is kept.
 */
import { type FileHandle, mkdir, open, readdir, rename, stat, unlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { filesToRemove, type ZxidFile } from '@meerkat/core/files';
import { hexZxid, ZXID_NONE, type Zxid } from '@meerkat/protocol';
import type { Hold } from '../node/hold.ts';
import { ArchiveError, systemError } from './archive-error.ts';
import type { ArchiveFiles } from './archive-files.ts';
import { BackupLog, type FirstTxn } from './backup-log.ts';
import { type CommonPast, cutBehind, findCommonPast } from './common-past.ts';
import { DirectoryFiles, openFile } from './directory-files.ts';
import { holdArchive } from './hold-archive.ts';
import { LogTailReader } from './log-tail-reader.ts';
import { scanSnapshot } from './snapshot-scan.ts';
import { syncDirectory } from './sync-directory.ts';
import { writeWhole } from './write-whole.ts';

export interface BackupOptions {
  /** A newer snapshot of the server is copied when the newest here is older than this. Milliseconds. */
  readonly snapshotEveryMs: number;
  /** How many snapshots stay, at least 1, with the log behind the oldest; null: all. */
  readonly keepCount: number | null;
  /** Retention in milliseconds: states younger than this stay restorable; null: all. */
  readonly keepMs: number | null;
  readonly onWarning: (text: string) => void;
  /** What an operator may want to know, now and then. */
  readonly onNotice: (text: string) => void;
}

export interface BackupState {
  /** Everything up to here is durable. */
  readonly zxid: Zxid;
  /** Time of that txn in milliseconds; null while the log is empty. */
  readonly timeMs: number | null;
  readonly snapshots: readonly ZxidFile[];
  readonly logs: readonly ZxidFile[];
}

interface PendingSnapshot {
  readonly name: string;
  readonly zxid: Zxid;
  /** It can be restored once the log reaches this; null: once it reaches the end of the server's. */
  readonly completeZxid: number | null;
}

const UNFINISHED = 'unfinished-';
const COPY_BYTES = 1024 * 1024;

export class Backup {
  readonly directory: string;
  readonly #options: BackupOptions;
  readonly #hold: Hold;
  #log: BackupLog;
  #tail: LogTailReader | null = null;
  #pending: PendingSnapshot | null = null;
  /** True until it is known that the server's history is the one of this backup. */
  #isUnchecked = true;

  /** @throws ArchiveError when another process writes it, or it is damaged */
  static async open(directory: string, options: BackupOptions): Promise<Backup> {
    const below = join(directory, 'version-2');
    let hold: Hold;
    try {
      await mkdir(below, { recursive: true });
      hold = await holdArchive(below, `${directory} is in use: another backup writes it, or a server runs on it`);
    } catch (error) {
      throw systemError(`cannot write a backup in ${directory}`, error);
    }
    try {
      for (const name of await readdir(below)) if (name.startsWith(UNFINISHED)) await unlink(join(below, name));
      const { logs } = await listOf(below);
      return new Backup(below, options, hold, await BackupLog.open(below, logs));
    } catch (error) {
      hold.release();
      throw systemError(`cannot read the backup in ${directory}`, error);
    }
  }

  private constructor(directory: string, options: BackupOptions, hold: Hold, log: BackupLog) {
    this.directory = directory;
    this.#options = options;
    this.#hold = hold;
    this.#log = log;
  }

  /**
   * Copies everything that the server has written by now. To be called again and again, with files of the same history; after an
   * error too.
   */
  async catchUp(files: ArchiveFiles, signal?: AbortSignal): Promise<BackupState> {
    try {
      return await this.#catchUp(files, signal);
    } catch (error) {
      // Where it was reading may have gone.
      await this.#tail?.close();
      this.#tail = null;
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#tail?.close();
    await this.#log.close();
    this.#hold.release();
  }

  async #catchUp(files: ArchiveFiles, signal?: AbortSignal): Promise<BackupState> {
    const { logs, snapshots } = await listOf(this.directory);
    if (this.#isUnchecked && this.#log.last !== ZXID_NONE) await this.#settlePast(files, logs, signal);
    this.#isUnchecked = false;
    if (this.#pending === null && (await this.#wantsSnapshot(files, snapshots))) {
      this.#pending = await this.#copySnapshot(files, snapshots, signal);
    }
    if (this.#log.last === ZXID_NONE)
      await this.#log.startAfter(this.#pending?.zxid ?? snapshots.at(-1)?.zxid ?? ZXID_NONE);
    for (;;) {
      this.#tail ??= new LogTailReader(files, this.#log.last);
      const outcome = await this.#poll(this.#tail, signal);
      if (outcome.kind === 'end') break;
      await this.#tail.close();
      this.#tail = null;
      if (outcome.kind === 'replaced') await this.#settlePast(files, (await listOf(this.directory)).logs, signal);
      else await this.#leap(files, outcome.reason, signal);
    }
    await this.#maybeFinishSnapshot();
    const now = await listOf(this.directory);
    return { zxid: this.#log.last, timeMs: this.#log.lastMs, ...now };
  }

  async #poll(tail: LogTailReader, signal?: AbortSignal): ReturnType<LogTailReader['poll']> {
    let first: FirstTxn | null = null;
    const flush = async (): Promise<void> => {
      if (first === null) return;
      const begun = first;
      first = null;
      await this.#log.sync(begun);
    };
    const outcome = await tail.poll(
      {
        onEntry: (entry, isOurs) => {
          first ??= { zxid: entry.zxid, isOurs, before: this.#log.last };
          this.#log.add(entry);
        },
        onSlice: flush,
        onWarning: this.#options.onWarning,
      },
      signal,
    );
    await flush();
    return outcome;
  }

  /** The server has another snapshot, and this backup has none, or the newest is old enough. */
  async #wantsSnapshot(files: ArchiveFiles, own: readonly ZxidFile[]): Promise<boolean> {
    const newest = own.at(-1);
    if (newest === undefined) return true;
    const { mtimeMs } = await stat(join(this.directory, newest.name));
    if (Date.now() - mtimeMs < this.#options.snapshotEveryMs) return false;
    const offered = (await files.list()).snapshots.at(-1);
    return offered !== undefined && offered.zxid > newest.zxid;
  }

  /** @returns null when all that the server has is older than what is here */
  async #copySnapshot(
    files: ArchiveFiles,
    own: readonly ZxidFile[],
    signal?: AbortSignal,
  ): Promise<PendingSnapshot | null> {
    const offered = (await files.list()).snapshots.toReversed();
    let fault: unknown = new ArchiveError(
      'unusable',
      `${files.place} has no snapshot to begin with: let the server take one`,
    );
    for (const { name, zxid } of offered) {
      if (own.some((file) => file.zxid >= zxid)) return null;
      try {
        return await this.#copyOne(files, { name, zxid }, signal);
      } catch (error) {
        const isOfTheServer = error instanceof ArchiveError && (error.fault === 'damaged' || error.fault === 'missing');
        if (!isOfTheServer) throw error;
        this.#options.onWarning(`${error.message}: the snapshot before it is taken`);
        fault = error;
      }
    }
    if (own.length > 0) return null;
    throw fault;
  }

  async #copyOne(
    files: ArchiveFiles,
    { name, zxid }: { readonly name: string; readonly zxid: Zxid },
    signal?: AbortSignal,
  ): Promise<PendingSnapshot> {
    const path = join(this.directory, UNFINISHED + name);
    const source = await files.open(name);
    let target: FileHandle | null = null;
    try {
      target = await open(path, 'w');
      for (let position = 0; ; ) {
        signal?.throwIfAborted();
        const bytes = await source.read(position, COPY_BYTES);
        await writeWhole(target, bytes, position);
        position += bytes.length;
        if (bytes.length < COPY_BYTES) break;
      }
      await target.sync();
    } catch (error) {
      if (signal?.aborted === true) throw error;
      throw systemError(`cannot copy ${source.path} to ${path}`, error);
    } finally {
      await target?.close();
      await source.close();
    }
    // A reader goes by the end of the name, so the copy is read as what it is.
    await using copied = await openFile(path);
    const { completeZxid, znodes } = await scanSnapshot(copied, {}, signal);
    this.#options.onNotice(`${name}: ${znodes} znodes copied and verified`);
    return { name, zxid, completeZxid };
  }

  async #maybeFinishSnapshot(): Promise<void> {
    const pending = this.#pending;
    if (pending === null || this.#log.last < (pending.completeZxid ?? pending.zxid)) return;
    const path = join(this.directory, pending.name);
    try {
      await rename(join(this.directory, UNFINISHED + pending.name), path);
      const now = new Date();
      await utimes(path, now, now);
      await syncDirectory(this.directory);
    } catch (error) {
      throw systemError(`cannot put ${path} in its place`, error);
    }
    this.#pending = null;
    await this.#prune();
  }

  async #prune(): Promise<void> {
    const { keepCount, keepMs } = this.#options;
    if (keepCount === null && keepMs === null) return;
    const { snapshots, logs } = await listOf(this.directory);
    let oldestKept = keepCount === null ? 0 : Math.max(0, snapshots.length - Math.max(keepCount, 1));
    if (keepMs !== null) {
      const sinceMs = Date.now() - keepMs;
      let byAge = 0;
      for (const [index, { name }] of snapshots.entries()) {
        // The newest one that is older still is where the states of that time begin.
        if ((await stat(join(this.directory, name))).mtimeMs <= sinceMs) byAge = index;
      }
      oldestKept = keepCount === null ? byAge : Math.min(oldestKept, byAge);
    }
    const removed = filesToRemove(snapshots, logs, oldestKept);
    for (const { name } of [...removed.snapshots, ...removed.logs]) await unlink(join(this.directory, name));
    if (removed.snapshots.length + removed.logs.length > 0) await syncDirectory(this.directory);
  }

  /** Txns between this backup and the server's log were purged: resumes after the next snapshot. */
  async #leap(files: ArchiveFiles, reason: string, signal?: AbortSignal): Promise<void> {
    const { snapshots } = await listOf(this.directory);
    if (this.#pending === null || this.#pending.zxid <= this.#log.last) {
      this.#pending = await this.#copySnapshot(files, snapshots, signal);
    }
    if (this.#pending === null || this.#pending.zxid <= this.#log.last) {
      throw new ArchiveError(
        'unusable',
        `${files.place}: ${reason}, and it has no snapshot behind them either: let the server take one`,
      );
    }
    this.#options.onWarning(
      `${files.place}: ${reason}. The backup resumes with ${this.#pending.name}: states between zxid ${hexZxid(this.#log.last)} and ` +
        'that one cannot be had. A backup that runs more often than the server purges its log has no such gap',
    );
    await this.#log.startAfter(this.#pending.zxid);
  }

  /** Finds where the histories of backup and server diverge, and cuts the backup there. */
  async #settlePast(files: ArchiveFiles, own: readonly ZxidFile[], signal?: AbortSignal): Promise<void> {
    const ownFiles = await DirectoryFiles.open(this.directory, null);
    const past: CommonPast = await findCommonPast(files, ownFiles, this.#log.last, signal);
    if (past.kind === 'same') return;
    const { snapshots } = await listOf(this.directory);
    const newest = snapshots.at(-1);
    if (past.kind === 'other' || (newest !== undefined && newest.zxid > past.zxid)) {
      throw new ArchiveError(
        'unusable',
        `the history of ${files.place} is not that of the backup in ${this.directory}, which has zxid ${hexZxid(this.#log.last)}` +
          `${past.kind === 'other' ? '' : ` and is the same up to ${hexZxid(past.zxid)} only`}: it is another service, or was restored ` +
          'or emptied. Begin a new backup in another directory',
      );
    }
    this.#options.onWarning(
      `${files.place} has replaced what was not committed behind zxid ${hexZxid(past.zxid)}: so does the backup, and keeps what it had`,
    );
    await this.#log.close();
    await cutBehind(this.directory, own, past.zxid);
    this.#log = await BackupLog.open(this.directory, (await listOf(this.directory)).logs);
    await this.#log.startAfter(past.zxid);
  }
}

/** Of the backup. A missing backup directory is permanent, unlike a file that the server has purged. */
async function listOf(
  directory: string,
): Promise<{ readonly snapshots: readonly ZxidFile[]; readonly logs: readonly ZxidFile[] }> {
  try {
    const { snapshots, logs } = await DirectoryFiles.listOf(directory);
    return { snapshots, logs };
  } catch (error) {
    if (!(error instanceof ArchiveError) || error.fault !== 'missing') throw error;
    throw new ArchiveError(
      'disk',
      `the backup ${directory} was removed, or its disk unmounted: ${error.message}`,
      error,
    );
  }
}
