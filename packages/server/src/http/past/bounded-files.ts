import type { Zxid } from '@meerkat/protocol';
import { ArchiveError } from '../../archive/archive-error.ts';
import type { ArchiveFiles, ArchiveListing, OpenFile } from '../../archive/archive-files.ts';

export interface FileBounds {
  /** The last zxid that is applied. */
  readonly committed: Zxid;
  /** What this thread may have in buffers. */
  readonly bufferBytesMax: number;
  bufferBytes(): number;
}

/** Files of a server that runs, read as long as what is made of them fits into memory. */
export class BoundedFiles implements ArchiveFiles {
  /** Reading has ended because there was too much. */
  isExceeded = false;
  readonly #files: ArchiveFiles;
  readonly #bounds: FileBounds;

  constructor(files: ArchiveFiles, bounds: FileBounds) {
    this.#files = files;
    this.#bounds = bounds;
  }

  get place(): string {
    return this.#files.place;
  }

  async list(): Promise<ArchiveListing> {
    return { ...(await this.#files.list()), committed: this.#bounds.committed };
  }

  async open(name: string): Promise<OpenFile> {
    const file = await this.#files.open(name);
    const close = (): Promise<void> => file.close();
    return {
      path: file.path,
      read: (position, length) => {
        this.#check();
        return file.read(position, length);
      },
      close,
      [Symbol.asyncDispose]: close,
    };
  }

  pathOf(name: string): string {
    return this.#files.pathOf(name);
  }

  close(): Promise<void> {
    return this.#files.close();
  }

  #check(): void {
    const { bufferBytes, bufferBytesMax } = this.#bounds;
    if (bufferBytes() <= bufferBytesMax) return;
    this.isExceeded = true;
    throw new ArchiveError('unusable', 'the tree takes more memory than there is for it');
  }
}
