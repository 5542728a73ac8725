import { randomUUID } from 'node:crypto';
import { linkSync, mkdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type DirectoryEntry, type Disk, type DiskDone, DiskError, type DiskFile } from '@meerkat/core';
import type { DiskFault } from './messages.ts';

export interface TroubledDiskHost {
  /** Delivers an event to the core; never called from within an effect. */
  deliver(event: () => void): void;
  /** A random number in [0, 1). */
  fraction(): number;
}

/**
 * A disk with fault injection: it can be slow, hang or fail.
 *
 *     core ──effect──► TroubledDisk ──► files of this machine
 *     core ◄──done──── waiting ◄─done──┘
 *
 * Effects are performed immediately; only their completion is delayed or fails. So effects are never reordered, and a
 * killed process leaves unacknowledged data on disk: the worst case for recovery.
 *
 * Logs that are removed or set aside keep a second name in `attic`, so that the committed sequence can be checked.
 */
export class FaultyDisk implements Disk {
  readonly #files: Disk;
  readonly #attic: string;
  readonly #host: TroubledDiskHost;
  #trouble: DiskFault = { kind: 'none' };
  /** Number of effects that still succeed before the injected error. */
  #skip = 0;
  /** Completions not reported yet, oldest first. */
  readonly #waiting: { readonly dueMs: number; readonly complete: () => void }[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(files: Disk, attic: string, host: TroubledDiskHost) {
    this.#files = files;
    this.#attic = attic;
    this.#host = host;
  }

  set trouble(trouble: DiskFault) {
    this.#trouble = trouble;
    this.#skip = trouble.kind === 'error' ? trouble.skip : 0;
    this.#completeWaiting();
  }

  makeDirectory(path: string, done: DiskDone): void {
    this.#files.makeDirectory(path, this.#late('create directory', path, done));
  }

  list(path: string, done: DiskDone<readonly DirectoryEntry[]>): void {
    this.#files.list(path, this.#late('list', path, done));
  }

  open(path: string, options: { readonly readOnly: boolean }, done: DiskDone<DiskFile>): void {
    this.#files.open(path, options, this.#lateFile('open', path, done));
  }

  create(path: string, done: DiskDone<DiskFile>, isSyncedOften?: boolean): void {
    this.#files.create(path, this.#lateFile('create', path, done), isSyncedOften);
  }

  rename(source: string, target: string, done: DiskDone): void {
    this.#keepLog(source);
    this.#files.rename(source, target, this.#late('rename', source, done));
  }

  remove(path: string, done: DiskDone): void {
    this.#keepLog(path);
    this.#files.remove(path, this.#late('remove', path, done));
  }

  syncDirectory(path: string, done: DiskDone): void {
    this.#files.syncDirectory(path, this.#late('sync directory', path, done));
  }

  hold(path: string, done: DiskDone): void {
    this.#files.hold(path, done);
  }

  release(path: string): void {
    this.#files.release(path);
  }

  #keepLog(path: string): void {
    const name = basename(path);
    if (!name.startsWith('log.')) return;
    mkdirSync(this.#attic, { recursive: true });
    try {
      linkSync(path, join(this.#attic, `${name}-${randomUUID()}`));
    } catch (error) {
      // The core itself gets an error from the removal when the file does not exist.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }

  /** Wraps the completion of an effect with the faults in force. */
  #late<T>(attempted: string, path: string, done: DiskDone<T>): DiskDone<T> {
    const code = this.#nextFailure(attempted);
    const delayMs = this.#trouble.kind === 'slow' ? this.#host.fraction() ** 2 * this.#trouble.maxMs : 0;
    return (error, value) => {
      const failure = code === null ? error : new DiskError(attempted, path, code);
      if (delayMs === 0 && this.#waiting.length === 0 && this.#trouble.kind !== 'stall') {
        done(failure, value);
        return;
      }
      this.#waiting.push({ dueMs: performance.now() + delayMs, complete: () => done(failure, value) });
      this.#arm();
    };
  }

  /** @returns the system error code when this effect must fail, otherwise null */
  #nextFailure(attempted: string): string | null {
    const trouble = this.#trouble;
    if (trouble.kind === 'full') return NEEDS_ROOM.includes(attempted) ? 'ENOSPC' : null;
    if (trouble.kind !== 'error' || !MAY_FAIL.includes(attempted)) return null;
    if (this.#skip > 0) {
      this.#skip--;
      return null;
    }
    this.#trouble = { kind: 'none' };
    return 'EIO';
  }

  /** Whether an effect that is reported as failed is not performed. */
  get #leavesOut(): boolean {
    const trouble = this.#trouble;
    if (trouble.kind === 'full') return true;
    return trouble.kind === 'error' && !trouble.takesPlace && this.#skip === 0;
  }

  #lateFile(attempted: string, path: string, done: DiskDone<DiskFile>): DiskDone<DiskFile> {
    return this.#late(attempted, path, (error, file) => {
      // The receiver checks the error first, so it does not need a file.
      if (error !== null) file?.close();
      done(error, error === null ? new TroubledFile(file, this.#effects) : file);
    });
  }

  readonly #effects: FileEffects = {
    late: (attempted, path, done) => this.#late(attempted, path, done),
    isLeftOut: (attempted) =>
      this.#leavesOut && (this.#trouble.kind === 'full' ? NEEDS_ROOM : MAY_FAIL).includes(attempted),
  };

  #arm(): void {
    const [first] = this.#waiting;
    if (this.#timer !== null || first === undefined || this.#trouble.kind === 'stall') return;
    this.#timer = setTimeout(() => this.#completeWaiting(), Math.max(0, first.dueMs - performance.now()));
    this.#timer.unref();
  }

  #completeWaiting(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    while (this.#trouble.kind !== 'stall') {
      const [first] = this.#waiting;
      if (first === undefined || first.dueMs > performance.now()) break;
      this.#host.deliver(() => first.complete());
      this.#waiting.shift();
    }
    this.#arm();
  }
}

/** The `attic` directory beside a data directory. */
export function atticOf(dataDirectory: string): string {
  return join(dirname(dataDirectory), 'attic');
}

const NEEDS_ROOM = ['create', 'write', 'grow'];
const MAY_FAIL = ['write', 'sync', 'create', 'rename', 'sync directory', 'truncate', 'grow'];

interface FileEffects {
  late<T>(attempted: string, path: string, done: DiskDone<T>): DiskDone<T>;
  /** Called before `late`. */
  isLeftOut(attempted: string): boolean;
}

class TroubledFile implements DiskFile {
  readonly #file: DiskFile;
  readonly #effects: FileEffects;

  constructor(file: DiskFile, effects: FileEffects) {
    this.#file = file;
    this.#effects = effects;
  }

  get path(): string {
    return this.#file.path;
  }

  get size(): number {
    return this.#file.size;
  }

  read(position: number, length: number, done: DiskDone<Uint8Array>, room?: Uint8Array): void {
    this.#file.read(position, length, this.#effects.late('read', this.path, done), room);
  }

  write(position: number, bytes: Uint8Array, done: DiskDone): void {
    this.#effect('write', done, (callback) => this.#file.write(position, bytes, callback));
  }

  /** Written in place without a completion, so no fault applies. */
  note(position: number, bytes: Uint8Array, onFailed: (error: DiskError) => void): void {
    this.#file.note(position, bytes, onFailed);
  }

  sync(done: DiskDone): void {
    this.#effect('sync', done, (callback) => this.#file.sync(callback));
  }

  preallocate(size: number, done: DiskDone): void {
    this.#effect('grow', done, (callback) => this.#file.preallocate(size, callback));
  }

  truncate(size: number, done: DiskDone): void {
    this.#effect('truncate', done, (callback) => this.#file.truncate(size, callback));
  }

  close(): void {
    this.#file.close();
  }

  #effect(attempted: string, done: DiskDone, run: (callback: DiskDone) => void): void {
    const isLeftOut = this.#effects.isLeftOut(attempted);
    const callback = this.#effects.late(attempted, this.path, done);
    // An empty read keeps the order of this file's effects.
    if (isLeftOut) this.#file.read(0, 0, (error) => callback(error, undefined));
    else run(callback);
  }
}
