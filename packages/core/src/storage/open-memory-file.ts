import { type DiskDone, DiskError, type DiskFile, type Random } from '../base/ports.ts';
import type { DiskEffect, DiskObserver, DiskOperation } from './disk-effect.ts';
import type { MemoryFile } from './memory-file.ts';

/** A file of a memory disk, opened by a process. */
export class OpenMemoryFile implements DiskFile {
  readonly path: string;
  readonly #file: MemoryFile;
  readonly #readOnly: boolean;
  readonly #push: (effect: DiskEffect) => void;
  readonly #observer: () => DiskObserver | null;

  constructor(
    path: string,
    file: MemoryFile,
    readOnly: boolean,
    push: (effect: DiskEffect) => void,
    observer: () => DiskObserver | null,
  ) {
    this.path = path;
    this.#file = file;
    this.#readOnly = readOnly;
    this.#push = push;
    this.#observer = observer;
  }

  get size(): number {
    return this.#file.plannedSize;
  }

  read(position: number, length: number, done: DiskDone<Uint8Array>): void {
    this.#ask('read', (error) => done(error, error === null ? this.#file.read(position, length) : new Uint8Array(0)));
  }

  write(position: number, bytes: Uint8Array, done: DiskDone): void {
    const file = this.#file;
    file.plannedSize = Math.max(file.plannedSize, position + bytes.length);
    const take = (part: Uint8Array): void => {
      file.write(position, part);
      this.#observer()?.onWritten(this.path, position, part);
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
        this.#observer()?.onSynced(this.path);
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

  close(): void {
    // Nothing to release; effects requested before are still performed.
  }

  #ask(
    operation: DiskOperation,
    run: (error: DiskError | null) => void,
    runPart: ((random: Random) => void) | null = null,
  ): void {
    const isReadable = operation === 'read' || operation === 'sync';
    const refusal = this.#readOnly && !isReadable ? new DiskError(operation, this.path, 'EBADF') : null;
    this.#push({ file: this, operation, path: this.path, runPart, run: (error) => run(error ?? refusal) });
  }
}
