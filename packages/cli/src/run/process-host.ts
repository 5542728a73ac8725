import type { Command } from 'commander';
import { Paint } from '../output/paint.ts';
import { Report } from '../output/report.ts';
import type { CatalogEntry, CommandHost, RunOptions } from './command.ts';
import { fileFailure } from './command-failure.ts';
import { type CommonWords, makeReport } from './common-words.ts';
import type { Context } from './context.ts';
import { CommandExit } from './exit-code.ts';
import { Interruption } from './interruption.ts';
import { type Io, writeAll } from './io.ts';
import { ProcessContext } from './process-context.ts';
import { isAbortion, reportFailure } from './report-failure.ts';

/** Runs one command as this process, and knows the code to exit with afterwards. */
export class ProcessHost implements CommandHost {
  readonly isShell = false;
  readonly catalog: readonly CatalogEntry[];
  readonly #io: Io;
  readonly #program: Command;
  exitCode: number = CommandExit.ok;

  constructor(io: Io, program: Command, catalog: readonly CatalogEntry[]) {
    this.catalog = catalog;
    this.#io = io;
    this.#program = program;
  }

  async run(work: (context: Context) => Promise<number>, options: RunOptions = {}): Promise<void> {
    using interruption = new Interruption(this.#io, options.takesSigint !== true);
    const words = this.#program.opts<CommonWords>();
    let report = new Report(this.#io, 'table', new Paint(false));
    try {
      report = makeReport(this.#io, words, interruption.signal);
      await using context = new ProcessContext(this.#io, report, words, interruption.signal);
      this.exitCode = await work(context);
    } catch (error) {
      this.exitCode = await this.#report(error, report, interruption);
    }
    // The last write may have failed, and not be reported yet.
    await new Promise((resolve) => setImmediate(resolve));
    if (interruption.outputError !== null) {
      await reportFailure(fileFailure('cannot write the output', interruption.outputError), report, this.#io);
    }
    // What was asked to end has not done all of its work, however well it took it.
    this.exitCode = interruption.exitCode ?? this.exitCode;
  }

  async #report(error: unknown, report: Report, interruption: Interruption): Promise<number> {
    const { exitCode } = interruption;
    if (exitCode === CommandExit.pipeClosed || exitCode === CommandExit.file) return exitCode;
    if (exitCode !== null && isAbortion(error)) {
      if (report.isForPeople) await writeAll(this.#io.stderr, 'meerkat: interrupted\n');
      return exitCode;
    }
    await reportFailure(error, report, this.#io);
    const { explainFailure } = await import('./failure.ts');
    return explainFailure(error).exitCode;
  }
}
