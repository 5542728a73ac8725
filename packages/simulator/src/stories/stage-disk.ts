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
export class DiskTap implements DiskObserver {
  readonly #server: VirtualServer;
  readonly #observer: DiskObserver | null;
  readonly #watches: DiskWatch[];

  constructor(server: VirtualServer, observer: DiskObserver | null, watches: DiskWatch[]) {
    this.#server = server;
    this.#observer = observer;
    this.#watches = watches;
  }

  onWritten(path: string, position: number, bytes: Uint8Array): void {
    this.#observer?.onWritten(path, position, bytes);
    this.#notify('write', path);
  }

  onSynced(path: string): void {
    this.#observer?.onSynced(path);
    this.#notify('sync', path);
  }

  onRenamed(source: string, target: string): void {
    this.#observer?.onRenamed(source, target);
    this.#notify('rename', target);
  }

  onDirectorySynced(path: string): void {
    this.#observer?.onDirectorySynced(path);
    this.#notify('syncDirectory', path);
  }

  onFailed(operation: DiskOperation, path: string): void {
    this.#observer?.onFailed(operation, path);
  }

  #notify(operation: DiskEffect, path: string): void {
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
