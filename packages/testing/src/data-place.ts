import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CoreOptions } from '@meerkat/core';
import type { HostedDisk } from '@meerkat/server';
import { MemoryHost } from './memory-host.ts';

/**
 * Where a test server keeps its data:
 *
 * - `'memory'`: on a disk in memory, which survives `stop` and `kill` and goes with the server;
 * - `'directory'`: in a new directory for temporary files, removed when the server is disposed of;
 * - `{ directory }`: in that directory, created when it is missing and left as it is in the end.
 */
export type Storage = 'memory' | 'directory' | { readonly directory: string };

/** The data of a server through all its lives. */
export interface DataPlace {
  /** Null in memory. */
  readonly directory: string | null;
  /** What the configuration names. */
  readonly dataDirectory: string;
  /** Null for the files of this machine. */
  readonly disk: HostedDisk | null;
  readonly coreDefaults: Partial<CoreOptions>;
  /** While no server runs: only what was synced stays. */
  loseUnsynced(): void;
  /** The server is gone for good. */
  remove(): Promise<void>;
}

export async function openDataPlace(storage: Storage): Promise<DataPlace> {
  if (storage === 'memory') return new MemoryPlace();
  if (storage === 'directory') return new DirectoryPlace(await mkdtemp(join(tmpdir(), 'meerkat-test-')), true);
  return new DirectoryPlace(storage.directory, false);
}

class MemoryPlace implements DataPlace {
  readonly directory = null;
  readonly dataDirectory = 'memory:';
  readonly disk: MemoryHost = new MemoryHost();
  // Old logs would fill the memory.
  readonly coreDefaults = { purgeIntervalMs: 10_000 };

  loseUnsynced(): void {
    this.disk.crash();
  }

  remove(): Promise<void> {
    return Promise.resolve();
  }
}

class DirectoryPlace implements DataPlace {
  readonly directory: string;
  readonly disk = null;
  readonly coreDefaults = {};
  readonly #isTemporary: boolean;

  constructor(directory: string, isTemporary: boolean) {
    this.directory = directory;
    this.#isTemporary = isTemporary;
  }

  get dataDirectory(): string {
    return this.directory;
  }

  loseUnsynced(): void {
    throw new Error('only storage in memory can lose what was not synced: the files of this machine keep it');
  }

  async remove(): Promise<void> {
    if (this.#isTemporary) await rm(this.directory, { recursive: true, force: true });
  }
}
