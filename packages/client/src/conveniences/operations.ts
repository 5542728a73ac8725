import type { Codec } from '../codec/codec.ts';
import type { Data } from '../data.ts';
import type { Children, Created, Znode } from '../machine/replies.ts';
import type { Stat } from '../machine/stat.ts';
import type { CreateOptions, VersionOptions } from '../operations.ts';
import type { ReadOptions } from '../requester.ts';

/** The client methods that conveniences use. Paths are relative to its chroot. */
export interface Operations {
  /** null while there is none. */
  readonly session: { readonly id: bigint } | null;
  create(path: string, data: Data | undefined, options: CreateOptions): Promise<Created>;
  delete(path: string, options: VersionOptions): Promise<void>;
  exists(path: string, options: ReadOptions): Promise<Stat | null>;
  get<T>(path: string, options: ReadOptions & { readonly codec: Codec<T> }): Promise<Znode<T>>;
  set(path: string, data: Data, options: VersionOptions): Promise<Stat>;
  children(path: string, options: ReadOptions): Promise<Children>;
}
