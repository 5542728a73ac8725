/**
 * The epoch files during recovery: read, and raised to match the log.
 *
 * A standalone Apache server has none; written here, they hold what a server of an ensemble would derive from the last
 * zxid, and let it open the directory even after this server has moved on to a later epoch.
 *
 * In an ensemble the last zxid raises `currentEpoch` too: a log is a contiguous part of its epoch's history, and a
 * crash may happen between the first txns of an epoch and the write of the file.
 */
import { epochOf, MAX_EPOCH, type Zxid } from '@meerkat/protocol';
import type { EpochFileName } from '../base/durable.ts';
import { type Disk, DiskError } from '../base/ports.ts';
import { EpochFiles } from './epoch-files.ts';

export interface RecoveredEpochs {
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
}

export interface EpochRecoveryEvents {
  /** The files hold these epochs, durably except for their names. */
  onEpochsRecovered(epochs: RecoveredEpochs): void;
  onEpochsRefused(error: Error): void;
}

export class EpochRecovery {
  readonly #files: EpochFiles;
  readonly #directory: string;
  readonly #isEnsemble: boolean;
  readonly #events: EpochRecoveryEvents;

  constructor(
    disk: Disk,
    { directory, isEnsemble }: { readonly directory: string; readonly isEnsemble: boolean },
    events: EpochRecoveryEvents,
  ) {
    this.#files = new EpochFiles(disk, directory);
    this.#directory = directory;
    this.#isEnsemble = isEnsemble;
    this.#events = events;
  }

  /** @param lastZxid last zxid of the log */
  start(lastZxid: Zxid): void {
    const epoch = Math.max(0, epochOf(lastZxid));
    this.#files.read('acceptedEpoch', (error, accepted) => {
      if (error !== null) return this.#refuse('acceptedEpoch cannot be read', error);
      this.#files.read('currentEpoch', (currentError, current) => {
        if (currentError !== null) return this.#refuse('currentEpoch cannot be read', currentError);
        const fault = this.#isEnsemble ? faultOf(this.#directory, accepted, current, epoch) : null;
        if (fault !== null) return this.#events.onEpochsRefused(fault);
        // acceptedEpoch first, so that it is never behind.
        this.#raise('acceptedEpoch', accepted, Math.max(epoch, current ?? 0), (acceptedEpoch) => {
          this.#raise('currentEpoch', current, epoch, (currentEpoch) => {
            const epochs = { acceptedEpoch: Math.max(acceptedEpoch, currentEpoch), currentEpoch };
            this.#events.onEpochsRecovered(epochs);
          });
        });
      });
    });
  }

  /** Raises an epoch if necessary, durably; `then` receives what the file holds. */
  #raise(name: EpochFileName, found: number | null, epoch: number, then: (epoch: number) => void): void {
    if (found !== null && found >= epoch) {
      then(found);
      return;
    }
    this.#files.write(name, epoch, (error) => {
      if (error === null) then(epoch);
      else this.#refuse(`${name} cannot be written`, error);
    });
  }

  #refuse(attempted: string, cause: Error): void {
    const advice = cause instanceof DiskError ? '' : `. ${this.#isEnsemble ? REJOIN : RECREATE}`;
    this.#events.onEpochsRefused(new Error(`${attempted}: ${cause.message}${advice}`, { cause }));
  }
}

/** Advice for a file with damaged content. */
const REJOIN =
  'The file is damaged, and what this server has promised or entered is unknown. While a majority of the other ' +
  'servers is healthy, empty the directory and let this server rejoin; or restore it from a backup';
const RECREATE = 'The file is damaged: remove it, and this server recreates it from its log';

/** @param epoch that of the log's last zxid */
function faultOf(directory: string, accepted: number | null, current: number | null, epoch: number): Error | null {
  if (current !== null && current > (accepted ?? epoch)) return faultOfOrder(directory, accepted, current);
  const latest = Math.max(accepted ?? 0, current ?? 0);
  return latest > MAX_EPOCH ? faultOfNumber(directory, latest, current ?? epoch) : null;
}

/** Its zxids could not be represented exactly. */
function faultOfNumber(directory: string, found: number, current: number): Error {
  const name = current > MAX_EPOCH ? 'currentEpoch' : 'acceptedEpoch';
  return new Error(
    `${directory}: ${name} holds ${found}, and there is no epoch after ${MAX_EPOCH}: the file is damaged. See ` +
      'docs/zab.md, "A server that stays out", for what to write into it, or copy the directory from a healthy server',
  );
}

function faultOfOrder(directory: string, accepted: number | null, current: number): Error {
  const found = accepted === null ? 'acceptedEpoch is missing' : `acceptedEpoch holds ${accepted}`;
  return new Error(
    `${directory}: ${found} although currentEpoch holds ${current}. A server promises an epoch before it enters it, so ` +
      'one of the two files was lost or comes from elsewhere, and this server might promise an epoch twice. Restore the ' +
      'directory, or, while a majority of the other servers is healthy, empty it and let this server rejoin',
  );
}
