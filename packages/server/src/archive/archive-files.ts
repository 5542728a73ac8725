import type { ZxidFile } from '@meerkat/core/files';
import type { Zxid } from '@meerkat/protocol';

/** The logs and snapshots of a server, wherever they are: a directory, or behind the admin port of a running server. */
export interface ArchiveFiles {
  /** For messages: a directory or URL. */
  readonly place: string;
  list(): Promise<ArchiveListing>;
  /** @throws ArchiveError `missing` when it has been removed meanwhile */
  open(name: string): Promise<OpenFile>;
  /** As people name a file: a path or URL. */
  pathOf(name: string): string;
  close(): Promise<void>;
}

export interface ArchiveListing {
  /** Oldest first, compressed ones included. */
  readonly snapshots: readonly ZxidFile[];
  /** Oldest first. `size` counts what a file was grown ahead. */
  readonly logs: readonly ZxidFile[];
  /**
   * Up to here the log is committed; null when that is not known, as of files. Txns behind it may disappear again: a leader
   * that has not seen them takes them away.
   */
  readonly committed: Zxid | null;
}

/** A file that can be read although it is renamed or removed meanwhile, as far as its place allows it. */
export interface OpenFile extends AsyncDisposable {
  readonly path: string;
  /** Up to `length` bytes; fewer only at the end of the file. The bytes are the receiver's. */
  read(position: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}
