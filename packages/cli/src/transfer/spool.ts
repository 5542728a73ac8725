import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import type { ExportFile } from './export-reader.ts';

/**
 * Standard input as a file that can be read twice: an import looks at every line before it changes anything. Others cannot
 * read it, and it goes when it is disposed of.
 */
export class Spool implements Disposable {
  readonly file: ExportFile;
  readonly #directory: string;

  static async fill({ io, signal, isShell }: Context): Promise<Spool> {
    // In the shell, typed lines come in there.
    if (isShell || io.stdin.isTTY === true) {
      throw new InvocationFailure('standard input is a terminal: name a file');
    }
    const spool = new Spool();
    try {
      await pipeline(io.stdin, createWriteStream(spool.file.path, { mode: 0o600 }), { signal });
      return spool;
    } catch (error) {
      spool[Symbol.dispose]();
      if (signal.aborted) throw error;
      throw fileFailure(`cannot keep standard input in ${spool.file.path}`, error);
    }
  }

  private constructor() {
    this.#directory = mkdtempSync(join(tmpdir(), 'meerkat-import-'));
    this.file = { name: 'standard input', path: join(this.#directory, 'export') };
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
