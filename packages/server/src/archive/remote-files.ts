import type { ConnectionOptions } from 'node:tls';
import { logFilesOf, snapshotFilesOf } from '@meerkat/core/files';
import { parseZxid } from '@meerkat/protocol';
import { ArchiveError } from './archive-error.ts';
import type { ArchiveFiles, ArchiveListing, OpenFile } from './archive-files.ts';
import { askHttp, describeHttpFailure, type HttpAnswer, jsonOf } from './ask-http.ts';

export interface RemoteFilesOptions {
  /** Where the commands of the admin port are: `http://127.0.0.1:8080/commands`. */
  readonly url: string;
  /** The header Authorization: `digest ann:secret`, or `ip`. */
  readonly authorization: string;
  /** For a URL of https; left out: the authorities of this machine. */
  readonly tls?: ConnectionOptions;
  readonly signal: AbortSignal;
}

/** How long a server may take for the beginning of an answer. Milliseconds. */
const ANSWER_MS = 30_000;

/** The logs and snapshots of a running server of ours, through the command `archive` of its admin port. */
export class RemoteFiles implements ArchiveFiles {
  readonly #options: RemoteFilesOptions;

  constructor(options: RemoteFilesOptions) {
    this.#options = options;
  }

  get place(): string {
    return this.#options.url;
  }

  async list(): Promise<ArchiveListing> {
    const listed = jsonOf(await this.request({})) as Listed;
    if (typeof listed.error === 'string') throw this.#refused(listed.error);
    const files = listed.files ?? [];
    return {
      snapshots: snapshotFilesOf(files),
      logs: logFilesOf(files),
      committed: parseZxid((listed.last_zxid ?? '').replace(/^0x/, '')),
    };
  }

  open(name: string): Promise<OpenFile> {
    const close = (): Promise<void> => Promise.resolve();
    return Promise.resolve({
      path: this.pathOf(name),
      read: async (position, length) => this.#read(name, position, length),
      close,
      [Symbol.asyncDispose]: close,
    });
  }

  pathOf(name: string): string {
    return `${this.#options.url}/archive?file=${name}`;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** @throws ArchiveError */
  async request(query: Readonly<Record<string, string>>): Promise<HttpAnswer> {
    const { url, authorization, tls, signal } = this.#options;
    let answer: HttpAnswer;
    try {
      answer = await askHttp(`${url}/archive?${new URLSearchParams(query)}`, {
        headers: { authorization },
        signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
        ...(tls === undefined ? {} : { tls }),
      });
    } catch (error) {
      signal.throwIfAborted();
      throw new ArchiveError(
        'unreachable',
        `the admin port ${url} does not answer: ${describeHttpFailure(error)}; --admin host:port names another one, --dir a directory on this machine`,
        error,
      );
    }
    if (answer.status === 200) return answer;
    if (answer.status === 404)
      throw new ArchiveError('missing', `${url} no longer has ${query['file'] ?? 'the command archive'}`);
    const { error = null } = jsonOf(answer) as Listed;
    throw this.#refused(error ?? `HTTP ${answer.status}`);
  }

  async #read(name: string, position: number, length: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let filled = 0;
    while (filled < length) {
      const { body, headers, ...answer } = await this.request({
        file: name,
        from: String(position + filled),
        length: String(length - filled),
      });
      if (!(headers['content-type'] ?? '').startsWith('application/octet-stream')) {
        const { error = null } = jsonOf({ ...answer, headers, body }) as Listed;
        throw this.#refused(error ?? 'it answers something else than a file');
      }
      const zeros = Number(headers['trailing_zeros'] ?? 0);
      parts.push(body);
      if (zeros > 0) parts.push(new Uint8Array(zeros));
      filled += body.length + zeros;
      if (headers['file_end'] === 'true') break;
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts, filled);
  }

  #refused(reason: string): ArchiveError {
    const { url } = this.#options;
    if (reason.startsWith('Unknown command')) {
      return new ArchiveError(
        'unusable',
        `${url}: the server has no command "archive": it is Apache's, or an older one. No command of Apache's servers gives their logs, and "snapshot", from 3.9 on, one state only: read its directories on its own host (--dir, --log-dir)`,
      );
    }
    const isPassing = reason.includes('not currently serving');
    const what = isPassing
      ? ''
      : '; --auth digest:user:password names who has every permission of the root, as the command snapshot asks for';
    return new ArchiveError(isPassing ? 'unreachable' : 'unusable', `${url} refuses: ${reason}${what}`);
  }
}

interface Listed {
  readonly files?: readonly { readonly name: string; readonly size: number }[];
  readonly last_zxid?: string;
  readonly error?: string | null;
}
