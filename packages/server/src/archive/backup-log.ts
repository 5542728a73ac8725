/** The log of a backup: entries are appended as they stood in the log of the server, and are durable after `sync`. */
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { LOG_HEADER_BYTES, logHeader, logName, type ZxidFile } from '@meerkat/core/files';
import { ZXID_NONE, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import { ArchiveError, systemError } from './archive-error.ts';
import { openFile } from './directory-files.ts';
import { classifyEnd, type LogEntry, scanLog } from './log-scan.ts';
import { syncDirectory } from './sync-directory.ts';
import { writeWhole } from './write-whole.ts';

/** Bytes of a file after which the next one is begun. */
const FILE_BYTES_MAX = 64 * 1024 * 1024;

interface WrittenFile {
  readonly path: string;
  readonly handle: FileHandle;
  /** Its header names its predecessor, and it has no gaps. */
  readonly isOurs: boolean;
  size: number;
}

/** What a batch begins with. */
export interface FirstTxn {
  readonly zxid: Zxid;
  /** Whether a server of ours wrote its file. */
  readonly isOurs: boolean;
  /** The txn before it. */
  readonly before: Zxid;
}

export class BackupLog {
  readonly #directory: string;
  #file: WrittenFile | null = null;
  #last: Zxid;
  #lastMs: number | null;
  /** Of what is synced: a batch that could not be written is copied again from here on. */
  #durable: { readonly last: Zxid; readonly lastMs: number | null };
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;

  /**
   * Reads to its end what a backup has, and cuts what a crash of this program has torn: the server still has it.
   *
   * @throws ArchiveError `damaged` when something was changed behind the back of this program
   */
  static async open(directory: string, logs: readonly ZxidFile[]): Promise<BackupLog> {
    const newest = logs.at(-1);
    if (newest === undefined) return new BackupLog(directory, ZXID_NONE, null);
    const path = join(directory, newest.name);
    let last: Zxid = (newest.zxid - 1) as Zxid;
    let lastMs: number | null = null;
    let isOurs = false;
    await using opened = await openFile(path);
    const scanned = await scanLog(opened, {
      onHeader: (before) => {
        isOurs = before !== null;
      },
      onEntry: ({ zxid, timeMs }) => {
        last = zxid;
        lastMs = timeMs;
        return true;
      },
    });
    if (scanned.entries === 0 && (await classifyEnd(opened, LOG_HEADER_BYTES, last)).bytes === 0) {
      // Begun, and nothing written: perhaps not even its header, which is synced before anything else.
      await remove(path);
      return await BackupLog.open(directory, logs.slice(0, -1));
    }
    const { judgement } = await classifyEnd(opened, scanned.position, last);
    const fault = scanned.headerFault ?? (judgement.kind === 'rotten' ? judgement.reason : null);
    if (fault !== null) {
      throw new ArchiveError(
        'damaged',
        `${path} at position ${scanned.position}: ${fault}. "meerkat log repair" cuts it there, and what is missing is copied again; or ` +
          'begin a new backup in another directory',
      );
    }
    const log = new BackupLog(directory, last, lastMs);
    await log.#continue(path, scanned.position, isOurs, judgement.kind === 'torn');
    return log;
  }

  private constructor(directory: string, last: Zxid, lastMs: number | null) {
    this.#directory = directory;
    this.#last = last;
    this.#lastMs = lastMs;
    this.#durable = { last, lastMs };
  }

  /** The last txn, synced or not; ZXID_NONE when there is none. */
  get last(): Zxid {
    return this.#last;
  }

  /** When that was made, milliseconds. */
  get lastMs(): number | null {
    return this.#lastMs;
  }

  /** The next entry starts a new file, because its predecessor is missing or unknown. */
  async startAfter(zxid: Zxid): Promise<void> {
    await this.close();
    this.#last = zxid;
    this.#durable = { last: zxid, lastMs: this.#lastMs };
  }

  /** Takes an entry; its bytes are copied. */
  add(entry: LogEntry): void {
    this.#pending.push(Uint8Array.from(entry.bytes));
    this.#pendingBytes += entry.end - entry.position;
    this.#last = entry.zxid;
    this.#lastMs = entry.timeMs;
  }

  /**
   * Writes and syncs what was added; after an error the log ends where it ended before.
   */
  async sync(first: FirstTxn): Promise<void> {
    if (this.#pendingBytes === 0) return;
    const bytes = Buffer.concat(this.#pending, this.#pendingBytes);
    this.#pending = [];
    this.#pendingBytes = 0;
    try {
      await this.#write(bytes, first);
    } catch (error) {
      ({ last: this.#last, lastMs: this.#lastMs } = this.#durable);
      throw error;
    }
    this.#durable = { last: this.#last, lastMs: this.#lastMs };
  }

  async close(): Promise<void> {
    const { handle } = this.#file ?? {};
    this.#file = null;
    await handle?.close();
  }

  async #write(bytes: Uint8Array, first: FirstTxn): Promise<void> {
    if (this.#file !== null && (this.#file.size >= FILE_BYTES_MAX || this.#file.isOurs !== first.isOurs)) {
      await this.close();
    }
    this.#file ??= await this.#begin(first);
    const { handle, path } = this.#file;
    try {
      await writeWhole(handle, bytes, this.#file.size);
      await handle.datasync();
    } catch (error) {
      // A reader stops at half a batch, so the next one must not stand behind it.
      await handle.truncate(this.#file.size).catch(() => {});
      throw systemError(`cannot write the backup ${path}: it has everything up to the txn before`, error);
    }
    this.#file.size += bytes.length;
  }

  async #begin({ zxid, isOurs, before }: FirstTxn): Promise<WrittenFile> {
    const path = join(this.#directory, logName(zxid));
    let handle: FileHandle | null = null;
    try {
      handle = await open(path, 'w+');
      const header = isOurs ? logHeader(before) : apachesHeader();
      await writeWhole(handle, header, 0);
      await handle.sync();
      await syncDirectory(this.#directory);
      return { path, handle, isOurs, size: LOG_HEADER_BYTES };
    } catch (error) {
      await handle?.close().catch(() => {});
      throw systemError(`cannot begin ${path}`, error);
    }
  }

  async #continue(path: string, size: number, isOurs: boolean, isTorn: boolean): Promise<void> {
    try {
      const handle = await open(path, 'r+');
      this.#file = { path, handle, isOurs, size };
      if (!isTorn) return;
      await handle.truncate(size);
      await handle.sync();
    } catch (error) {
      throw systemError(`cannot write ${path}`, error);
    }
  }
}

/** Names no predecessor, so that a reader accepts the gaps that Apache's servers leave. */
function apachesHeader(): Uint8Array {
  const header = logHeader(ZXID_ZERO);
  header.fill(0, 8);
  return header;
}

async function remove(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    throw systemError(`cannot remove ${path}, which has nothing in it`, error);
  }
}
