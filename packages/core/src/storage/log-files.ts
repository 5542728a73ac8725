/** What log files there are, oldest first: known without asking the disk, for learners that are behind. */
import type { Zxid } from '@meerkat/protocol';
import { logName, type ZxidFile } from './file-names.ts';

export class LogFiles {
  #files: { name: string; zxid: Zxid; size: number }[] = [];

  /** Oldest first. `size` counts header and entries; of files that no start has read since, also what was grown ahead. */
  get files(): readonly ZxidFile[] {
    return this.#files;
  }

  /** @param files oldest first */
  reset(files: readonly ZxidFile[]): void {
    this.#files = files.map(({ name, zxid, size }) => ({ name, zxid, size }));
  }

  onStarted(zxid: Zxid, size: number): void {
    const name = logName(zxid);
    // A file that a crash left before its first entry is created anew.
    this.forget([name]);
    this.#files.push({ name, zxid, size });
  }

  /** The newest file has grown. */
  onWritten(size: number): void {
    const newest = this.#files.at(-1);
    if (newest !== undefined) newest.size = size;
  }

  onRead(name: string, size: number): void {
    const file = this.#files.find((other) => other.name === name);
    if (file !== undefined) file.size = size;
  }

  forget(names: readonly string[]): void {
    this.#files = this.#files.filter(({ name }) => !names.includes(name));
  }

  /** Index of the file that has the entry `zxid`, or would have it; −1 when the log begins later. */
  indexOf(zxid: Zxid): number {
    return this.#files.findLastIndex((file) => file.zxid <= zxid);
  }

  /** Bytes of the file that has `zxid` and of all later ones; Infinity when the log begins later. */
  bytesFrom(zxid: Zxid): number {
    const first = this.indexOf(zxid);
    if (first < 0) return Number.POSITIVE_INFINITY;
    let bytes = 0;
    for (let i = first; i < this.#files.length; i++) bytes += this.#files[i]!.size;
    return bytes;
  }
}
