/**
 * `acceptedEpoch` and `currentEpoch`: the epochs that this server has promised and entered (QuorumPeer).
 *
 * ASCII decimal without a newline, written under another name, synced, renamed, and the directory synced, before a
 * `Durable` epoch is created. A standalone Apache server neither reads nor writes them; one of an ensemble creates
 * missing ones from the epoch of its last zxid, and does not start when that zxid is of a later epoch than
 * `currentEpoch`.
 */

import { type Durable, type EpochFileName, onDisk } from '../base/durable.ts';
import type { Disk, DiskError } from '../base/ports.ts';

const EPOCH_TEXT = /^\s*(\d{1,16})\s*$/;
/** Longer than any epoch. */
const READ_BYTES = 64;

export class EpochFiles {
  readonly #disk: Disk;
  readonly #directory: string;

  /** @param directory that of the snapshots (`dataDir/version-2`) */
  constructor(disk: Disk, directory: string) {
    this.#disk = disk;
    this.#directory = directory;
  }

  /** Reads one file; null when it is missing. Content that is not a number is an error. */
  read(name: EpochFileName, done: (error: Error | null, epoch: number | null) => void): void {
    const path = `${this.#directory}/${name}`;
    this.#disk.open(path, { readOnly: true }, (error, file) => {
      if (error !== null) return error.code === 'ENOENT' ? done(null, null) : done(error, null);
      file.read(0, READ_BYTES, (readError, bytes) => {
        file.close();
        if (readError !== null) return done(readError, null);
        const text = String.fromCharCode(...bytes);
        const digits = EPOCH_TEXT.exec(text)?.[1];
        const epoch = Number(digits);
        if (digits === undefined || !Number.isSafeInteger(epoch)) {
          return done(new Error(`${path} holds ${JSON.stringify(text)} instead of an epoch in decimal digits`), null);
        }
        done(null, epoch);
      });
    });
  }

  /** Replaces one file, atomically: after an error it is the old one or the new one. */
  write(
    name: EpochFileName,
    epoch: number,
    done: (error: DiskError | null, durable: Durable<number> | null) => void,
  ): void {
    const path = `${this.#directory}/${name}`;
    const temporaryPath = `${path}.tmp`;
    const bytes = new TextEncoder().encode(String(epoch));
    const disk = this.#disk;
    let failure: DiskError | null = null;
    const note = (error: DiskError | null): void => {
      failure ??= error;
    };
    disk.create(temporaryPath, (createError, file) => {
      if (createError !== null) return done(createError, null);
      file.write(0, bytes, note);
      file.sync((syncError) => {
        note(syncError);
        file.close();
        if (failure !== null) return done(failure, null);
        disk.rename(temporaryPath, path, (renameError) => {
          if (renameError !== null) return done(renameError, null);
          disk.syncDirectory(this.#directory, (directoryError) => {
            if (directoryError !== null) return done(directoryError, null);
            done(null, onDisk(epoch));
          });
        });
      });
    });
  }
}
