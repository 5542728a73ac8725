import { createWriteStream, existsSync, renameSync, rmSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { createGzip, type Gzip } from 'node:zlib';
import { CommandFailure, fileFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';
import { type Io, writeAll } from '../run/io.ts';

/** Lines are written together from this size on. Characters. */
const CHUNK_LENGTH = 64 * 1024;

export interface LineWriterOptions {
  /** null: standard output. */
  readonly path: string | null;
  readonly isPacked: boolean;
  /** A file that is there already is replaced; otherwise that is refused. */
  readonly overwrites: boolean;
  /** Aborted: a slow reader is not waited for any longer. */
  readonly signal: AbortSignal;
}

/**
 * Writes lines to a file or to standard output, packed if need be. The file has another name until it is whole, so that
 * a part is never taken for the whole.
 */
export class LineWriter implements AsyncDisposable {
  readonly #path: string | null;
  readonly #partPath: string;
  /** The file, or standard output. */
  readonly #sink: Writable;
  readonly #gzip: Gzip | null;
  readonly #signal: AbortSignal;
  #text = '';
  #failure: unknown = null;
  #isEnded = false;

  constructor(io: Io, { path, isPacked, overwrites, signal }: LineWriterOptions) {
    this.#signal = signal;
    this.#path = path;
    this.#partPath = `${path}.part`;
    if (path !== null && !overwrites && existsSync(path)) {
      throw new CommandFailure(CommandExit.file, `${path} is there already: --overwrite replaces it`);
    }
    this.#sink = path === null ? io.stdout : createWriteStream(this.#partPath);
    this.#gzip = isPacked ? createGzip() : null;
    const onError = (error: unknown): void => {
      this.#failure ??= error;
    };
    if (path !== null) this.#sink.on('error', onError);
    this.#gzip?.on('error', onError);
    // Standard output stays open for others.
    this.#gzip?.pipe(this.#sink, { end: path !== null });
  }

  add(line: string): Promise<void> | undefined {
    this.#text += `${line}\n`;
    return this.#text.length < CHUNK_LENGTH ? undefined : this.#flush();
  }

  /** Resolves when everything is where it belongs. @throws CommandFailure when the file cannot be written */
  async end(): Promise<void> {
    await this.#flush();
    if (this.#gzip !== null) {
      this.#gzip.end();
      if (this.#path === null) await finished(this.#gzip, { writable: false });
    } else if (this.#path !== null) this.#sink.end();
    if (this.#path !== null) {
      await finished(this.#sink).catch((error: unknown) => {
        this.#failure ??= error;
      });
      this.#throwFailure();
      try {
        renameSync(this.#partPath, this.#path);
      } catch (error) {
        throw fileFailure(`cannot name the export ${this.#path}`, error);
      }
    }
    this.#isEnded = true;
  }

  /** Leaves nothing of a file that did not become whole. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isEnded) return;
    this.#gzip?.destroy();
    if (this.#path === null) return;
    this.#sink.destroy();
    await finished(this.#sink).catch(() => {});
    rmSync(this.#partPath, { force: true });
  }

  async #flush(): Promise<void> {
    const text = this.#text;
    this.#text = '';
    this.#throwFailure();
    await writeAll(this.#gzip ?? this.#sink, text, this.#signal);
    this.#throwFailure();
  }

  #throwFailure(): void {
    if (this.#failure !== null) throw fileFailure(`cannot write ${this.#path ?? 'standard output'}`, this.#failure);
  }
}
