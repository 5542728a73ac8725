import { type DiskDone, DiskError, type DiskFile, type Random } from '../base/ports.ts';
import type { DiskEffect, DiskObserver, DiskOperation } from './disk-effect.ts';
import type { MemoryFile } from './memory-file.ts';

/** What an open file uses of its disk. */
export interface FileHost {
  push(effect: DiskEffect): void;
  onClosed(file: DiskFile): void;
  getObserver(): DiskObserver | null;
}

/** A file of a memory disk, opened by a process. Throws when it is used after `close`. */
export class OpenMemoryFile implements DiskFile {
  readonly path: string;
  readonly #file: MemoryFile;
  readonly #readOnly: boolean;
  readonly #host: FileHost;
  #isClosed = false;

  constructor(path: string, file: MemoryFile, readOnly: boolean, host: FileHost) {
    this.path = path;
    this.#file = file;
    this.#readOnly = readOnly;
    this.#host = host;
  }

  get size(): number {
    return this.#file.plannedSize;
  }

  read(position: number, length: number, done: DiskDone<Uint8Array>, room?: Uint8Array): void {
    // The system may write there from now on.
    room?.fill(GARBAGE);
    this.#ask('read', (error) => {
      const bytes = error === null ? this.#file.read(position, length) : new Uint8Array(0);
      if (room !== undefined && bytes.length <= room.length) {
        room.set(bytes);
        done(error, room.subarray(0, bytes.length));
      } else done(error, bytes);
    });
  }

  write(position: number, bytes: Uint8Array, done: DiskDone): void {
    const file = this.#file;
    file.plannedSize = Math.max(file.plannedSize, position + bytes.length);
    const take = (part: Uint8Array): void => {
      file.write(position, part);
      this.#host.getObserver()?.onWritten(this.path, position, part);
    };
    this.#ask(
      'write',
      (error) => {
        // A disk that becomes full writes the first part.
        take(error === null ? bytes : bytes.subarray(0, bytes.length >> 1));
        done(error);
      },
      (random) => take(bytes.subarray(0, random.uint32() % (bytes.length + 1))),
    );
  }

  note(position: number, bytes: Uint8Array, onFailed: (error: DiskError) => void): void {
    this.write(position, bytes.slice(), (error) => {
      if (error !== null) onFailed(error);
    });
  }

  sync(done: DiskDone): void {
    this.#ask('sync', (error) => {
      if (error === null) {
        this.#file.sync();
        this.#host.getObserver()?.onSynced(this.path);
      } else this.#file.loseDirtyPages();
      done(error);
    });
  }

  preallocate(size: number, done: DiskDone): void {
    this.#file.plannedSize = Math.max(this.#file.plannedSize, size);
    this.#ask('preallocate', (error) => {
      if (error === null) this.#file.grow(size);
      done(error);
    });
  }

  truncate(size: number, done: DiskDone): void {
    this.#file.plannedSize = size;
    this.#ask('truncate', (error) => {
      if (error === null) this.#file.truncate(size);
      done(error);
    });
  }

  /** Effects requested before are still performed. */
  close(): void {
    this.#isClosed = true;
    this.#host.onClosed(this);
  }

  #ask(
    operation: DiskOperation,
    run: (error: DiskError | null) => void,
    runPart: ((random: Random) => void) | null = null,
  ): void {
    if (this.#isClosed) throw new Error(`${operation} of ${this.path}, which is closed`);
    const isReadable = operation === 'read' || operation === 'sync';
    const refusal = this.#readOnly && !isReadable ? new DiskError(operation, this.path, 'EBADF') : null;
    this.#host.push({ file: this, operation, path: this.path, runPart, run: (error) => run(error ?? refusal) });
  }
}

const GARBAGE = 0xdb;
