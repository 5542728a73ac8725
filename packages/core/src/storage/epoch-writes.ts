/** Writes of the epoch files, one at a time. */

import type { Durable, EpochFileName } from '../base/durable.ts';
import type { Disk, DiskError } from '../base/ports.ts';
import { EpochFiles } from './epoch-files.ts';

export interface EpochWritesEvents {
  onEpochWritten(name: EpochFileName, epoch: Durable<number>): void;
  /** Nothing more is written. */
  onEpochFailed(name: EpochFileName, error: DiskError): void;
  /** The answer to `close`. */
  onEpochsClosed(): void;
}

interface EpochWrite {
  readonly name: EpochFileName;
  readonly epoch: number;
}

export class EpochWrites {
  readonly #files: EpochFiles;
  readonly #events: EpochWritesEvents;
  readonly #waiting: EpochWrite[] = [];
  #isWriting = false;
  #isClosed = false;

  constructor(disk: Disk, directory: string, events: EpochWritesEvents) {
    this.#files = new EpochFiles(disk, directory);
    this.#events = events;
  }

  /** True while a write is in progress. */
  get isBusy(): boolean {
    return this.#isWriting;
  }

  write(name: EpochFileName, epoch: number): void {
    if (this.#isClosed) return;
    this.#waiting.push({ name, epoch });
    if (!this.#isWriting) this.#writeNext();
  }

  /** Drops writes that have not begun; `onEpochsClosed` follows, after the one in progress if there is one. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.length = 0;
  }

  #writeNext(): void {
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#isWriting = true;
    const { name, epoch } = next;
    this.#files.write(name, epoch, (error, durable) => {
      this.#isWriting = false;
      if (error !== null) {
        this.close();
        this.#events.onEpochFailed(name, error);
      } else if (durable !== null && !this.#isClosed) {
        this.#events.onEpochWritten(name, durable);
      }
      if (this.#isClosed) this.#events.onEpochsClosed();
      else if (!this.#isWriting) this.#writeNext();
    });
  }
}
