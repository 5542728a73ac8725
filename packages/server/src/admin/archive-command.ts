import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { FilePart } from '../http/messages.ts';
import { type AdminAuthorization, type Caller, NOT_SERVING, type Refusal } from './authorization.ts';
import { type Fields, JsonFields, JsonList } from './java-json.ts';

export interface ArchiveCommandParts {
  readonly isEnabled: boolean;
  readonly authorization: AdminAuthorization;
  readonly snapshotDirectory: string;
  readonly logDirectory: string;
  isServing(): boolean;
  /** Of the last applied txn, which no leader truncates. */
  lastZxid(): number;
}

export type ArchiveAnswer = Refusal | { readonly fields: Fields } | { readonly path: string; readonly part: FilePart };

/** Bytes of one answer. */
const PART_BYTES_MAX = 4 * 1024 * 1024;
/** So no other file of the directories, and none outside of them, can be named. */
const NAME = /^(?:log\.[0-9a-f]{1,16}|snapshot\.[0-9a-f]{1,16}(?:\.gz|\.snappy)?)$/;

/**
 * The admin command `archive`, which is not one of ZooKeeper's: lists logs and snapshots, and gives parts of them, to backups and
 * to tools that look at the past. Who may ask is decided as for `snapshot`. The files are read by the HTTP thread.
 *
 *     GET …/archive                               the files, and the last zxid that is applied
 *     GET …/archive?file=log.1&from=0&length=65536
 */
export class ArchiveCommand {
  readonly #parts: ArchiveCommandParts;

  constructor(parts: ArchiveCommandParts) {
    this.#parts = parts;
  }

  async run(query: Readonly<Record<string, string>>, caller: Caller): Promise<ArchiveAnswer> {
    const refusal = this.#parts.authorization.refusalOf(caller, NOT_SERVING);
    if (refusal !== null) return refusal;
    if (!this.#parts.isServing()) return NOT_SERVING;
    if (!this.#parts.isEnabled) return { status: 503, error: 'admin.snapshot.enabled=false' };
    const { file } = query;
    return file === undefined ? this.#list() : this.#partOf(file, query);
  }

  #partOf(file: string, query: Readonly<Record<string, string>>): ArchiveAnswer {
    const from = Number(query['from'] ?? 0);
    const length = Number(query['length'] ?? PART_BYTES_MAX);
    if (!NAME.test(file) || !isCount(from) || !isCount(length)) {
      return { status: 400, error: 'expected file=log.<zxid> or snapshot.<zxid>, from=<byte>, length=<bytes>' };
    }
    const directory = file.startsWith('log.') ? this.#parts.logDirectory : this.#parts.snapshotDirectory;
    return { path: join(directory, file), part: { from, length: Math.min(length, PART_BYTES_MAX) } };
  }

  async #list(): Promise<ArchiveAnswer> {
    // Read before the files are listed, so that they contain all txns up to here.
    const lastZxid = this.#parts.lastZxid();
    const { snapshotDirectory, logDirectory } = this.#parts;
    const files = await filesOf(snapshotDirectory);
    if (logDirectory !== snapshotDirectory) files.push(...(await filesOf(logDirectory)));
    const list = files.map(({ name, size }) => {
      return new JsonFields([
        ['name', name],
        ['size', size],
      ]);
    });
    return {
      fields: [
        ['last_zxid', `0x${lastZxid.toString(16)}`],
        ['files', new JsonList(list)],
      ],
    };
  }
}

async function filesOf(directory: string): Promise<{ readonly name: string; readonly size: number }[]> {
  const files: { name: string; size: number }[] = [];
  for (const name of await readdir(directory)) {
    if (!NAME.test(name)) continue;
    // One that was purged meanwhile is not listed.
    const found = await stat(join(directory, name)).catch(() => null);
    if (found !== null) files.push({ name, size: found.size });
  }
  return files;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
