import { statfs } from 'node:fs';
import type { ServerOptions } from './config/options.ts';

type GrowthOptions = Pick<
  ServerOptions,
  'residentBytesMax' | 'diskFreeBytesMin' | 'dataDirectory' | 'dataLogDirectory'
>;

export interface GrowthWatchHost {
  /** Node's own unless given. */
  readonly statfs?: typeof statfs;
  /** Why nothing may grow from now on; null: it may again. */
  onGrowth(refusal: string | null): void;
}

/** Milliseconds between two looks. */
const PERIOD_MS = 1000;
/** What there must be more, or less, before growth is allowed again: it must not flap. */
const SLACK = 1.1;

/**
 * Looks once a second at the memory of this process and at the free room on its disks, and says when nothing may grow any
 * more, long before the kernel or a failed write ends the server.
 */
export class GrowthWatch {
  readonly #options: GrowthOptions;
  readonly #host: GrowthWatchHost;
  #timer: NodeJS.Timeout | null = null;
  #refusal: string | null = null;
  /** A disk has not answered yet. Each question has a thread of Node's pool, which the log needs to write. */
  #isAsking = false;

  constructor(options: GrowthOptions, host: GrowthWatchHost) {
    this.#options = options;
    this.#host = host;
  }

  start(): void {
    const { residentBytesMax, diskFreeBytesMin } = this.#options;
    if (residentBytesMax === 0 && diskFreeBytesMin === 0) return;
    this.#timer = setInterval(() => this.#look(), PERIOD_MS);
    this.#timer.unref();
    this.#look();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #look(): void {
    const { dataDirectory, dataLogDirectory, diskFreeBytesMin } = this.#options;
    const memory = this.#memoryRefusal();
    if (memory !== null || diskFreeBytesMin === 0) {
      this.#report(memory);
      return;
    }
    if (this.#isAsking) return;
    this.#isAsking = true;
    const ask = this.#host.statfs ?? statfs;
    const directories = [...new Set([dataDirectory, dataLogDirectory])];
    let left = directories.length;
    let refusal: string | null = null;
    for (const directory of directories) {
      ask(directory, (error, found) => {
        // A disk that cannot be asked is no reason to refuse; one that fails ends the server by itself.
        if (error === null) refusal ??= this.#diskRefusal(directory, found.bavail * found.bsize);
        if (--left > 0) return;
        this.#isAsking = false;
        // The answer may come late, when memory is short.
        if (this.#timer !== null) this.#report(this.#memoryRefusal() ?? refusal);
      });
    }
  }

  #memoryRefusal(): string | null {
    const { residentBytesMax } = this.#options;
    if (residentBytesMax === 0) return null;
    const bytes = process.memoryUsage.rss();
    const isTooMuch = bytes > (this.#refusal === null ? residentBytesMax : residentBytesMax / SLACK);
    return isTooMuch
      ? `this process takes ${megabytes(bytes)} MiB of memory, and memory.residentBytesMax is ${megabytes(residentBytesMax)} MiB: creates and sets are refused`
      : null;
  }

  #diskRefusal(directory: string, freeBytes: number): string | null {
    const { diskFreeBytesMin } = this.#options;
    const isTooLittle = freeBytes < (this.#refusal === null ? diskFreeBytesMin : diskFreeBytesMin * SLACK);
    return isTooLittle
      ? `${megabytes(freeBytes)} MiB are free on the disk of ${directory}, and disk.freeBytesMin is ${megabytes(diskFreeBytesMin)} MiB: creates and sets are refused until there is more`
      : null;
  }

  #report(refusal: string | null): void {
    if (refusal === null && this.#refusal === null) return;
    this.#refusal = refusal;
    this.#host.onGrowth(refusal);
  }
}

function megabytes(bytes: number): number {
  return Math.floor(bytes / 2 ** 20);
}
