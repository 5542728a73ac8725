/**
 * A disk in memory: deterministic, with the two failure modes of a disk, losing what was not synced and returning
 * errors.
 *
 *     effect requested ─► queue ──deliver()──► performed, and its completion delivered
 *
 * Effects are performed in the order in which they were requested, or as `order` decides, one per `deliver`. Between
 * any two of them the host may end the process (`kill`: what was written stays) or cut the power (`crash`: only what
 * was synced stays, plus any `survivors`). After either, files opened before are dead: they report nothing.
 */
import { type DirectoryEntry, type Disk, type DiskDone, DiskError, type DiskFile, type Random } from '../base/ports.ts';
import type { DiskEffect, DiskObserver, DiskOperation } from './disk-effect.ts';
import { MemoryFile, type Survivors, survives } from './memory-file.ts';
import { OpenMemoryFile } from './open-memory-file.ts';

export type { DiskObserver, DiskOperation } from './disk-effect.ts';

export interface DiskFault {
  readonly operation: DiskOperation;
  /** The system's code: ENOSPC, EIO …. */
  readonly code: string;
  /** How many operations of this kind succeed first. */
  readonly skip?: number;
  /** Only on paths that contain this. */
  readonly path?: string;
  /** Permanent, across process ends and power cuts, until `clearFaults`. Default: once, in the current process. */
  readonly isLasting?: boolean;
}

const NEEDS_ROOM: readonly DiskOperation[] = ['create', 'write', 'preallocate'];

/** Names of a directory: current ones, durable ones, and the changes in between, in order. */
interface MemoryDirectory {
  readonly names: Map<string, MemoryFile>;
  durableNames: Map<string, MemoryFile>;
  changes: ((names: Map<string, MemoryFile>) => void)[];
}

export class MemoryDisk implements Disk {
  readonly #directories: Map<string, MemoryDirectory> = new Map();
  readonly #held: Set<string> = new Set();
  #queue: DiskEffect[] = [];
  /** Index of the effect that `deliver` will perform; −1 until it has been chosen. */
  #chosen = -1;
  /**
   * Chooses the next effect among those that do not wait for another one: the port guarantees an order within an open
   * file only. null: the oldest.
   */
  order: Random | null = null;
  readonly #faults: { fault: DiskFault; skip: number }[] = [];
  /** How many effects of each kind have been performed or have failed. */
  readonly counts: Map<DiskOperation, number> = new Map();
  /** null: none. */
  observer: DiskObserver | null = null;
  /** Files of an earlier process are dead. */
  #life = 0;
  readonly #open: Set<DiskFile> = new Set();

  /* ------------------------------------------------------------------------------------------------- the host ---- */

  get pendingCount(): number {
    return this.#queue.length;
  }

  /**
   * Performs an effect, the oldest unless `order` decides otherwise, and delivers its completion.
   *
   * @returns false without any
   */
  deliver(): boolean {
    const [effect] = this.#queue.splice(this.#choose(), 1);
    this.#chosen = -1;
    if (effect === undefined) return false;
    this.counts.set(effect.operation, (this.counts.get(effect.operation) ?? 0) + 1);
    const fault = this.#nextFault(effect);
    if (fault !== null) this.observer?.onFailed(effect.operation, effect.path);
    effect.run(fault);
    return true;
  }

  /** Kind of the next effect, so that the host can choose its duration; null without any. */
  get nextOperation(): DiskOperation | null {
    return this.#queue[this.#choose()]?.operation ?? null;
  }

  #choose(): number {
    if (this.#chosen >= 0) return this.#chosen;
    this.#chosen = 0;
    if (this.order === null || this.#queue.length < 2 || (this.order.uint32() & 1) === 0) return 0;
    const files = new Set<DiskFile>();
    const first = this.#queue.flatMap(({ file }, index) => {
      if (file === null) return [index];
      if (files.has(file)) return [];
      files.add(file);
      return [index];
    });
    this.#chosen = first[this.order.uint32() % first.length]!;
    return this.#chosen;
  }

  /** Delivers until nothing is left, including effects requested meanwhile. */
  deliverAll(): void {
    while (this.deliver());
  }

  /** Makes a later operation fail, once or permanently. */
  failNext(fault: DiskFault): void {
    this.#faults.push({ fault, skip: fault.skip ?? 0 });
  }

  /**
   * The disk is full: operations that need space fail, until `clearFaults`. Removing, syncing and truncating still
   * work.
   */
  fill(): void {
    for (const operation of NEEDS_ROOM) this.failNext({ operation, code: 'ENOSPC', isLasting: true });
  }

  /** Removes all faults. */
  clearFaults(): void {
    this.#faults.length = 0;
  }

  /** Flips one bit of a file, in its current and its durable content. @returns false when there is no such bit */
  flipBit(path: string, position: number, bit: number): boolean {
    const file = this.#find(path);
    return file !== null && position < file.size && file.flipBit(position, bit);
  }

  /**
   * Ends the process. What was written stays; requested effects are not performed, except that with `random` the first
   * part of a write may be.
   */
  kill(random: Random | null = null): void {
    const next = this.#queue[0];
    if (random !== null) next?.runPart?.(random);
    this.#endLife();
    for (const directory of this.#directories.values()) {
      for (const file of directory.names.values()) file.plannedSize = file.size;
    }
  }

  /** Cuts the power: what was synced stays, of the rest the survivors. Of the changed names a prefix survives. */
  crash(survivors: Survivors = 'nothing'): void {
    this.#endLife();
    for (const directory of this.#directories.values()) {
      const names = directory.durableNames;
      for (const change of directory.changes) {
        if (!survives(survivors)) break;
        change(names);
      }
      directory.names.clear();
      for (const [name, file] of names) directory.names.set(name, file);
      directory.changes = [];
    }
    // A file that has two names, the old and the new one of a rename, is one file.
    const files = new Set([...this.#directories.values()].flatMap((directory) => [...directory.names.values()]));
    for (const file of files) file.crash(survivors);
  }

  /** Paths of the files that the process has not closed, as often as it has opened them. */
  get openPaths(): readonly string[] {
    return [...this.#open].map(({ path }) => path);
  }

  /** The content of a file, or null. For tests: not an effect. */
  peek(path: string): Uint8Array | null {
    const file = this.#find(path);
    return file === null ? null : file.read(0, file.size);
  }

  /** Creates or replaces a file, immediately durable. For tests: not an effect. */
  poke(path: string, bytes: Uint8Array): void {
    const { directory, name } = split(path);
    const file = new MemoryFile();
    file.write(0, bytes);
    file.sync();
    file.plannedSize = file.size;
    const { names, durableNames } = this.#directory(directory);
    names.set(name, file);
    durableNames.set(name, file);
  }

  /** Names of a directory, sorted. For tests: not an effect. */
  names(directory: string): string[] {
    return [...(this.#directories.get(directory)?.names.keys() ?? [])].sort();
  }

  /* -------------------------------------------------------------------------------------------------- the port ---- */

  makeDirectory(path: string, done: DiskDone): void {
    this.#ask('makeDirectory', path, done, () => {
      this.#directory(path);
    });
  }

  list(path: string, done: DiskDone<readonly DirectoryEntry[]>): void {
    this.#ask('list', path, done, () => {
      const directory = this.#directories.get(path);
      if (directory === undefined) throw new DiskError('list', path, 'ENOENT');
      return [...directory.names].map(([name, file]) => ({ name, size: file.size }));
    });
  }

  open(path: string, options: { readonly readOnly: boolean }, done: DiskDone<DiskFile>): void {
    this.#ask('open', path, done, () => {
      const file = this.#find(path);
      if (file === null) throw new DiskError('open', path, 'ENOENT');
      return this.#handle(path, file, options.readOnly);
    });
  }

  create(path: string, done: DiskDone<DiskFile>): void {
    this.#ask('create', path, done, () => {
      let file = this.#find(path);
      if (file === null) {
        file = new MemoryFile();
        const created = file;
        const { directory, name } = split(path);
        this.#change(directory, (names) => names.set(name, created));
      }
      file.truncate(0);
      file.plannedSize = 0;
      return this.#handle(path, file, false);
    });
  }

  rename(source: string, target: string, done: DiskDone): void {
    this.#ask('rename', source, done, () => {
      const file = this.#find(source);
      if (file === null) throw new DiskError('rename', source, 'ENOENT');
      const from = split(source);
      const to = split(target);
      if (from.directory !== to.directory) throw new DiskError('rename', source, 'EXDEV');
      this.#change(from.directory, (names) => {
        names.delete(from.name);
        names.set(to.name, file);
      });
      this.observer?.onRenamed(source, target);
    });
  }

  remove(path: string, done: DiskDone): void {
    this.#ask('remove', path, done, () => {
      if (this.#find(path) === null) throw new DiskError('remove', path, 'ENOENT');
      const { directory, name } = split(path);
      this.#change(directory, (names) => names.delete(name));
    });
  }

  syncDirectory(path: string, done: DiskDone): void {
    this.#ask('syncDirectory', path, done, () => {
      const directory = this.#directories.get(path);
      if (directory === undefined) throw new DiskError('sync', path, 'ENOENT');
      directory.durableNames = new Map(directory.names);
      directory.changes = [];
      this.observer?.onDirectorySynced(path);
    });
  }

  hold(path: string, done: DiskDone): void {
    this.#ask('hold', path, done, () => {
      if (this.#held.has(path)) throw new DiskError('hold', path, 'EBUSY');
      this.#held.add(path);
    });
  }

  release(path: string): void {
    this.#held.delete(path);
  }

  /* ----------------------------------------------------------------------------------------------------------------- */

  #ask<T>(operation: DiskOperation, path: string, done: DiskDone<T>, takePlace: () => T): void {
    this.#queue.push({
      file: null,
      operation,
      path,
      runPart: null,
      run: (fault) => {
        // The port guarantees no value together with an error.
        const nothing = undefined as T;
        if (fault !== null) {
          done(fault, nothing);
          return;
        }
        let value: T;
        try {
          value = takePlace();
        } catch (error) {
          if (!(error instanceof DiskError)) throw error;
          done(error, nothing);
          return;
        }
        done(null, value);
      },
    });
  }

  #handle(path: string, file: MemoryFile, readOnly: boolean): DiskFile {
    const life = this.#life;
    const opened = new OpenMemoryFile(path, file, readOnly, {
      push: (effect) => {
        if (life === this.#life) this.#queue.push(effect);
      },
      onClosed: (closed) => this.#open.delete(closed),
      getObserver: () => this.observer,
    });
    this.#open.add(opened);
    return opened;
  }

  #nextFault(effect: DiskEffect): DiskError | null {
    for (const [i, entry] of this.#faults.entries()) {
      const { operation, code, path } = entry.fault;
      if (operation !== effect.operation || (path !== undefined && !effect.path.includes(path))) continue;
      if (entry.skip-- > 0) continue;
      if (entry.fault.isLasting !== true) this.#faults.splice(i, 1);
      return new DiskError(operation, effect.path, code);
    }
    return null;
  }

  #endLife(): void {
    this.#life++;
    this.#queue = [];
    this.#chosen = -1;
    this.#held.clear();
    this.#open.clear();
    const lasting = this.#faults.filter(({ fault }) => fault.isLasting === true);
    this.#faults.length = 0;
    this.#faults.push(...lasting);
  }

  #directory(path: string): MemoryDirectory {
    let directory = this.#directories.get(path);
    if (directory === undefined) {
      directory = { names: new Map(), durableNames: new Map(), changes: [] };
      this.#directories.set(path, directory);
    }
    return directory;
  }

  #change(path: string, change: (names: Map<string, MemoryFile>) => void): void {
    const directory = this.#directories.get(path);
    if (directory === undefined) throw new DiskError('change', path, 'ENOENT');
    change(directory.names);
    directory.changes.push(change);
  }

  #find(path: string): MemoryFile | null {
    const { directory, name } = split(path);
    return this.#directories.get(directory)?.names.get(name) ?? null;
  }
}

function split(path: string): { directory: string; name: string } {
  const slash = path.lastIndexOf('/');
  return { directory: path.slice(0, slash), name: path.slice(slash + 1) };
}
