import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { logFilesOf, snapshotFilesOf } from '@meerkat/core/files';
import { ArchiveError, systemError } from './archive-error.ts';
import type { ArchiveFiles, ArchiveListing, OpenFile } from './archive-files.ts';

/** The directories of a server, of ours or Apache's, in use or not; or a backup. Nothing is written, held or locked. */
export class DirectoryFiles implements ArchiveFiles {
  readonly snapshotDirectory: string;
  readonly logDirectory: string;

  private constructor(snapshotDirectory: string, logDirectory: string) {
    this.snapshotDirectory = snapshotDirectory;
    this.logDirectory = logDirectory;
  }

  /**
   * @param dataDirectory with or without the `version-2` below it
   * @param dataLogDirectory null: the logs are in the same directory
   * @throws ArchiveError when there is no such directory, or no log and no snapshot in it
   */
  static async open(dataDirectory: string, dataLogDirectory: string | null): Promise<DirectoryFiles> {
    const snapshotDirectory = await versionDirectoryOf(dataDirectory);
    const files = new DirectoryFiles(
      snapshotDirectory,
      dataLogDirectory === null ? snapshotDirectory : await versionDirectoryOf(dataLogDirectory),
    );
    const { logs, snapshots } = await files.list();
    if (logs.length === 0 && snapshots.length === 0) {
      throw new ArchiveError(
        'unusable',
        `${files.place} has neither log.<zxid> nor snapshot.<zxid>: name the dataDir of a server, or a backup`,
      );
    }
    return files;
  }

  get place(): string {
    return this.snapshotDirectory === this.logDirectory
      ? this.snapshotDirectory
      : `${this.snapshotDirectory} and ${this.logDirectory}`;
  }

  list(): Promise<ArchiveListing> {
    return DirectoryFiles.listOf(this.snapshotDirectory, this.logDirectory);
  }

  /** Of directories that may have no such file yet. */
  static async listOf(snapshotDirectory: string, logDirectory: string = snapshotDirectory): Promise<ArchiveListing> {
    const snapshots = snapshotFilesOf(await entriesOf(snapshotDirectory));
    const logs = logFilesOf(await entriesOf(logDirectory));
    return { snapshots, logs, committed: null };
  }

  open(name: string): Promise<OpenFile> {
    return openFile(this.pathOf(name));
  }

  pathOf(name: string): string {
    return join(name.startsWith('log.') ? this.logDirectory : this.snapshotDirectory, name);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** @throws ArchiveError */
export async function openFile(path: string): Promise<OpenFile> {
  try {
    return new LocalFile(path, await open(path, 'r'));
  } catch (error) {
    throw systemError(`cannot open ${path}`, error);
  }
}

class LocalFile implements OpenFile {
  readonly path: string;
  readonly #handle: FileHandle;

  constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.#handle = handle;
  }

  async read(position: number, length: number): Promise<Uint8Array> {
    const bytes = Buffer.allocUnsafe(length);
    let filled = 0;
    try {
      while (filled < length) {
        const { bytesRead } = await this.#handle.read(bytes, filled, length - filled, position + filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
    } catch (error) {
      throw systemError(`cannot read ${this.path} at position ${position + filled}`, error);
    }
    return bytes.subarray(0, filled);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

async function versionDirectoryOf(directory: string): Promise<string> {
  const below = join(directory, 'version-2');
  try {
    return (await stat(below)).isDirectory() ? below : directory;
  } catch {
    return directory;
  }
}

/** Names and sizes; what is removed while it is listed is left out. */
async function entriesOf(directory: string): Promise<{ readonly name: string; readonly size: number }[]> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    throw systemError(`cannot list ${directory}`, error);
  }
  const entries: { name: string; size: number }[] = [];
  for (const name of names) {
    try {
      const found = await stat(join(directory, name));
      if (found.isFile()) entries.push({ name, size: found.size });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw systemError(`cannot inspect ${name}`, error);
    }
  }
  return entries;
}
