import type { DiskObserver, DiskOperation } from '@meerkat/core';
import type { VirtualServer } from '../virtual-server.ts';

export type DiskEffect = Extract<DiskOperation, 'write' | 'sync' | 'rename' | 'syncDirectory'>;

/** A story waits for an operation on a server's disk. */
export interface DiskWatch {
  readonly server: VirtualServer;
  readonly operation: DiskEffect;
  readonly path: string;
  readonly onDone: () => void;
}

/** Observes what takes place on a server's disk, after the checkers. */
export class DiskEar implements DiskObserver {
  readonly #server: VirtualServer;
  readonly #judge: DiskObserver | null;
  readonly #watches: DiskWatch[];

  constructor(server: VirtualServer, judge: DiskObserver | null, watches: DiskWatch[]) {
    this.#server = server;
    this.#judge = judge;
    this.#watches = watches;
  }

  onWritten(path: string, position: number, bytes: Uint8Array): void {
    this.#judge?.onWritten(path, position, bytes);
    this.#hear('write', path);
  }

  onSynced(path: string): void {
    this.#judge?.onSynced(path);
    this.#hear('sync', path);
  }

  onRenamed(source: string, target: string): void {
    this.#judge?.onRenamed(source, target);
    this.#hear('rename', target);
  }

  onDirectorySynced(path: string): void {
    this.#judge?.onDirectorySynced(path);
    this.#hear('syncDirectory', path);
  }

  onFailed(operation: DiskOperation, path: string): void {
    this.#judge?.onFailed(operation, path);
  }

  #hear(operation: DiskEffect, path: string): void {
    const watches = this.#watches;
    for (let i = watches.length - 1; i >= 0; i--) {
      const watch = watches[i]!;
      if (watch.server !== this.#server || watch.operation !== operation || !path.includes(watch.path)) continue;
      watches.splice(i, 1);
      watch.onDone();
    }
  }
}

/** Operations that have completed on a server's disk, or failed. */
export function effectsOf({ disk }: VirtualServer): number {
  let sum = 0;
  for (const count of disk.counts.values()) sum += count;
  return sum;
}
