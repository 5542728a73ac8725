import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { CommandFailure, fileFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import type { ExportFile } from './export-reader.ts';

/**
 * Standard input as a file that can be read twice: an import looks at every line before it changes anything. Others cannot
 * read it, and it goes when it is disposed of.
 */
export class Spool implements Disposable {
  readonly file: ExportFile;
  readonly #directory: string;

  static async fill({ io, signal }: Context): Promise<Spool> {
    if (io.stdin.isTTY === true) {
      throw new CommandFailure(
        CommandExit.invocation,
        'an export is expected on standard input, and that is a terminal',
      );
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
