import { close, constants, type Dirent, fsync, open, readdir, rename, stat, unlink } from 'node:fs';
import { join } from 'node:path';
import { type DirectoryEntry, type DiskDone, DiskError, type DiskFile } from '@meerkat/core';
import { FileQueue, type FileQueueHost } from './file-queue.ts';
import { type Hold, holdDirectory } from './hold.ts';
import type { HostedDisk } from './hosted-disk.ts';
import { makeDirectory } from './make-directory.ts';
import { retryOnShortage } from './patient.ts';
import { SyncPace } from './sync-pace.ts';
import type { Turn } from './turn.ts';

/**
 * Files of this machine.
 *
 * Effects on directories start at once in the thread pool. Effects on files wait for the end of the turn, because only
 * then it is known whether there is just one small write to sync, in a turn with little else, for the only client that is active,
 * which is done without the thread pool (`SyncPace`, `HeardClients`).
 *
 * The log is written and synced by one call in the thread pool (O_DSYNC): compared with a write here and `fdatasync` there it takes
 * 37 instead of 63 µs of the loop's processor time, and 114 instead of 155 of the process's, for 1 KiB.
 */
export class NodeDisk implements HostedDisk, FileQueueHost {
  readonly pace: SyncPace = new SyncPace();
  readonly #turn: Turn;
  readonly #holds = new Map<string, Hold>();
  /** Files that were idle and got effects in this turn. */
  #touched: FileQueue[] = [];
  readonly #files = new Set<FileQueue>();
  /** The number of effects in progress that are not on open files. */
  #underWay = 0;
  #isAbandoned = false;
  /** Waiting for the end of all effects. */
  #awaitingRest: (() => void)[] = [];

  constructor(turn: Turn) {
    this.#turn = turn;
  }

  makeDirectory(path: string, done: DiskDone): void {
    this.#underWay++;
    makeDirectory(path, (error) => this.#finish('create directory', path, error, done));
  }

  list(path: string, done: DiskDone<readonly DirectoryEntry[]>): void {
    this.#underWay++;
    this.#retryOnShortage<Dirent[]>(
      (callback) => readdir(path, { withFileTypes: true }, callback),
      (error, entries) => {
        if (error !== null) {
          this.#end(done, makeDiskError('list', path, error), []);
          return;
        }
        // A log or snapshot that was moved elsewhere, with a link in its place, is one of the directory's.
        const files = entries.filter((entry) => entry.isFile() || entry.isSymbolicLink());
        this.#measure(path, files, done);
      },
    );
  }

  open(path: string, options: { readonly readOnly: boolean }, done: DiskDone<DiskFile>): void {
    this.#underWay++;
    this.#retryOnShortage<number>(
      (callback) => open(path, options.readOnly ? 'r' : 'r+', callback),
      (error, fd) => {
        if (error !== null) {
          this.#failFile('open', path, error, done);
          return;
        }
        stat(path, (statError, stats) => {
          if (statError === null) this.#deliverFile(path, fd, stats.size, done);
          else close(fd, () => this.#failFile('open', path, statError, done));
        });
      },
    );
  }

  create(path: string, done: DiskDone<DiskFile>, isSyncedOften: boolean = false): void {
    const writesThrough = isSyncedOften && WRITE_THROUGH !== 0;
    this.#underWay++;
    this.#retryOnShortage<number>(
      (callback) => open(path, writesThrough ? CREATE | WRITE_THROUGH : CREATE, callback),
      (error, fd) => {
        if (error === null) this.#deliverFile(path, fd, 0, done, writesThrough);
        else this.#failFile('create', path, error, done);
      },
    );
  }

  rename(source: string, target: string, done: DiskDone): void {
    this.#underWay++;
    rename(source, target, (error) => this.#finish(`rename to ${target}`, source, error, done));
  }

  remove(path: string, done: DiskDone): void {
    this.#underWay++;
    unlink(path, (error) => this.#finish('remove', path, error, done));
  }

  syncDirectory(path: string, done: DiskDone): void {
    this.#underWay++;
    this.#retryOnShortage<number>(
      (callback) => open(path, 'r', callback),
      (error, fd) => {
        if (error !== null) {
          this.#finish('sync directory', path, error, done);
          return;
        }
        fsync(fd, (syncError) => {
          // Some file systems cannot sync a directory and say EINVAL; they keep names in another way.
          const failure = syncError?.code === 'EINVAL' ? null : syncError;
          close(fd, () => this.#finish('sync directory', path, failure, done));
        });
      },
    );
  }

  hold(path: string, done: DiskDone): void {
    this.#underWay++;
    holdDirectory(path).then(
      (hold) => {
        if (this.#isAbandoned) hold.release();
        else this.#holds.set(path, hold);
        this.#end(done, null, undefined);
      },
      (error) => this.#end(done, makeDiskError('hold directory', path, error), undefined),
    );
  }

  release(path: string): void {
    this.#holds.get(path)?.release();
    this.#holds.delete(path);
  }

  async abandon(): Promise<void> {
    this.#isAbandoned = true;
    for (const file of this.#files) file.abandon();
    if (!this.#isAtRest) await new Promise<void>((resolve) => this.#awaitingRest.push(resolve));
    for (const path of [...this.#holds.keys()]) this.release(path);
  }

  /* ------------------------------------------------------------------------------------------------ turns ---- */

  startEffects(events: number): boolean {
    if (this.#touched.length === 0) return false;
    const touched = this.#touched;
    this.#touched = [];
    const [first] = touched;
    const isAlone = touched.length === 1 && events <= EVENTS_FEW && !this.#turn.clients.areSeveral;
    if (isAlone && first !== undefined && this.pace.isQuick && first.finishLoneWrite()) return true;
    for (const file of touched) file.start();
    return false;
  }

  onTouched(file: FileQueue): void {
    this.#touched.push(file);
    this.#turn.mark();
  }

  deliver<T>(done: DiskDone<T>, error: DiskError | null, value: T): void {
    if (this.#turn.isStopped) return;
    if (this.#turn.isFrozen) {
      this.#turn.postpone(() => this.deliver(done, error, value));
      return;
    }
    try {
      done(error, value);
    } catch (fault) {
      this.#turn.fail(fault);
    }
    this.#turn.mark();
  }

  onClosed(file: FileQueue): void {
    this.#files.delete(file);
    this.#maybeResolveRest();
  }

  /* --------------------------------------------------------------------------------------------- details ---- */

  #retryOnShortage<T>(
    attempt: (callback: (error: NodeJS.ErrnoException | null, value: T) => void) => void,
    done: (error: NodeJS.ErrnoException | null, value: T) => void,
  ): void {
    retryOnShortage(attempt, () => this.#isAbandoned, done);
  }

  get #isAtRest(): boolean {
    return this.#underWay === 0 && this.#files.size === 0;
  }

  #maybeResolveRest(): void {
    if (this.#isAtRest) for (const resolve of this.#awaitingRest.splice(0)) resolve();
  }

  /** An effect outside of files has taken place, or failed. */
  #end<T>(done: DiskDone<T>, error: DiskError | null, value: T): void {
    this.#underWay--;
    this.deliver(done, error, value);
    this.#maybeResolveRest();
  }

  #deliverFile(path: string, fd: number, size: number, done: DiskDone<DiskFile>, writesThrough = false): void {
    const file = new FileQueue(this, path, fd, size, writesThrough);
    this.#files.add(file);
    if (this.#isAbandoned) file.abandon();
    this.#end(done, null, file);
  }

  #finish(attempted: string, path: string, error: NodeJS.ErrnoException | null, done: DiskDone): void {
    this.#end(done, error === null ? null : makeDiskError(attempted, path, error), undefined);
  }

  /** A completion without a file: its receiver looks at the error first. */
  #failFile(attempted: string, path: string, error: NodeJS.ErrnoException, done: DiskDone<DiskFile>): void {
    this.#end(done as DiskDone<DiskFile | null>, makeDiskError(attempted, path, error), null);
  }

  /** Reads the sizes of files; one that was deleted meanwhile is left out, a dangling link is an error. */
  #measure(directory: string, files: readonly Dirent[], done: DiskDone<readonly DirectoryEntry[]>): void {
    const entries: DirectoryEntry[] = [];
    let missing = files.length;
    let failure: DiskError | null = null;
    if (missing === 0) this.#end(done, null, entries);
    for (const file of files) {
      const { name } = file;
      const path = join(directory, name);
      stat(path, (error, stats) => {
        if (error === null && stats.isFile()) entries.push({ name, size: stats.size });
        else if (error !== null && (error.code !== 'ENOENT' || file.isSymbolicLink())) {
          failure ??= makeDiskError('inspect', path, error);
        }
        missing--;
        if (missing === 0) this.#end(done, failure, entries);
      });
    }
  }
}

const CREATE: number = constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC;
/** Each write syncs what it writes as fdatasync does. Linux only: elsewhere it may mean less, or nothing. */
const WRITE_THROUGH: number = process.platform === 'linux' ? constants.O_DSYNC : 0;

/**
 * A turn with more events has others to serve: a sync here takes 129 µs of processor time of the loop, in the thread pool 37
 * (Linux, medians on a busy machine).
 */
const EVENTS_FEW = 4;

/** An error of the system in the words of the port. */
export function makeDiskError(attempted: string, path: string, error: unknown): DiskError {
  const { code = 'EIO' } = error as NodeJS.ErrnoException;
  return new DiskError(attempted, path, code, error);
}
