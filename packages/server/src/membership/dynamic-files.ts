import type { Disk, DiskDone, DiskError, DiskFile, MembershipStore } from '@meerkat/core';
import { formatMembership, formatZxid, type Membership } from '@meerkat/protocol';
import { editStaticFile, formatDynamicFile, listsMembers } from './static-file.ts';

export interface DynamicFilesOptions {
  readonly serverId: number;
  /** Absolute path of zoo.cfg. */
  readonly staticFile: string;
  /** Gives a file that was just created, and is empty, the permissions of another one. */
  readonly copyMode?: (source: string, target: string) => void;
}

/**
 * The files of the dynamic configuration, beside zoo.cfg (QuorumPeerConfig).
 *
 *     zoo.cfg.dynamic.100000003   the committed membership of that version
 *     zoo.cfg                     names it: dynamicConfigFile=…
 *     zoo.cfg.dynamic.next        what is proposed and not committed; for people and for Apache's server
 *     zoo.cfg.bak                 zoo.cfg as it was while it listed the members itself
 *
 * Each is written beside its place, synced and renamed, in this order: the membership, then what names it. So wherever the
 * machine ends, zoo.cfg is whole and names a whole file. Files of older versions stay. All have the permissions of zoo.cfg.
 */
export class DynamicFiles implements MembershipStore {
  readonly #disk: Disk;
  readonly #options: DynamicFilesOptions;
  /** The version that zoo.cfg names, as far as this life has written it. */
  #named: number | null = null;

  constructor(disk: Disk, options: DynamicFilesOptions) {
    this.#disk = disk;
    this.#options = options;
  }

  keep(committed: Membership, proposed: Membership | null, done: (error: Error | null) => void): void {
    const steps: Step[] = [];
    if (committed.version > 0 && committed.version !== this.#named) {
      const dynamicFile = this.#path(formatZxid(committed.version));
      steps.push(
        (next) => this.#replace(dynamicFile, formatDynamicFile(committed), next),
        (next) => this.#nameIn(dynamicFile, committed, next),
        (next) => {
          this.#named = committed.version;
          next(null);
        },
      );
    }
    const nextFile = this.#path('next');
    if (proposed !== null) steps.push((next) => this.#replace(nextFile, `${formatMembership(proposed)}\n`, next));
    else steps.push((next) => this.#removeIfThere(nextFile, next));
    runSteps(steps, done);
  }

  #path(suffix: string): string {
    return `${this.#options.staticFile}.dynamic.${suffix}`;
  }

  #nameIn(dynamicFile: string, { members }: Membership, done: (error: DiskError | null) => void): void {
    const { staticFile, serverId } = this.#options;
    const saysClientPort = members.some((member) => member.serverId === serverId && member.client !== null);
    this.#read(staticFile, (readError, text) => {
      if (readError !== null) {
        done(readError);
        return;
      }
      const edited = editStaticFile(text, dynamicFile, saysClientPort);
      const steps: Step[] = [(next) => this.#replace(staticFile, edited, next)];
      if (listsMembers(text)) steps.unshift((next) => this.#replace(`${staticFile}.bak`, text, next));
      runSteps(steps, done);
    });
  }

  #read(path: string, done: DiskDone<string>): void {
    this.#disk.open(path, { readOnly: true }, (openError, file) => {
      if (openError !== null) {
        done(openError, '');
        return;
      }
      file.read(0, file.size, (error, bytes) => {
        file.close();
        done(error, error === null ? new TextDecoder().decode(bytes) : '');
      });
    });
  }

  #replace(path: string, text: string, done: (error: DiskError | null) => void): void {
    const temporary = `${path}.tmp`;
    this.#disk.create(temporary, (createError, file) => {
      if (createError !== null) {
        done(createError);
        return;
      }
      this.#options.copyMode?.(this.#options.staticFile, temporary);
      writeDurably(file, text, (error) => {
        if (error !== null) {
          done(error);
          return;
        }
        this.#disk.rename(temporary, path, (renameError) => {
          if (renameError !== null) done(renameError);
          else this.#disk.syncDirectory(directoryOf(path), (syncError) => done(syncError));
        });
      });
    });
  }

  #removeIfThere(path: string, done: (error: DiskError | null) => void): void {
    this.#disk.remove(path, (error) => done(error?.code === 'ENOENT' ? null : error));
  }
}

type Step = (next: (error: DiskError | null) => void) => void;

/** One after the other, until one fails. */
function runSteps(steps: readonly Step[], done: (error: DiskError | null) => void): void {
  const [first, ...rest] = steps;
  if (first === undefined) {
    done(null);
    return;
  }
  first((error) => {
    if (error === null) runSteps(rest, done);
    else done(error);
  });
}

function writeDurably(file: DiskFile, text: string, done: (error: DiskError | null) => void): void {
  file.write(0, new TextEncoder().encode(text), (writeError) => {
    if (writeError !== null) {
      file.close();
      done(writeError);
      return;
    }
    file.sync((error) => {
      file.close();
      done(error);
    });
  });
}

function directoryOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash <= 0 ? '/' : path.slice(0, slash);
}
