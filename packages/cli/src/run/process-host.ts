import type { Command } from 'commander';
import type { ConnectionWords } from '../connection/connection-words.ts';
import { parseDuration } from '../connection/duration.ts';
import { Paint } from '../output/paint.ts';
import { parseFormat, Report } from '../output/report.ts';
import type { CommandHost, RunOptions } from './command.ts';
import { fileFailure } from './command-failure.ts';
import type { Context } from './context.ts';
import { CommandExit } from './exit-code.ts';
import { Interruption } from './interruption.ts';
import { type Io, writeAll } from './io.ts';
import { ProcessContext } from './process-context.ts';

/** The options that every command has besides those of the connection. */
export interface CommonWords extends ConnectionWords {
  readonly output?: string;
  readonly timeout?: string;
  readonly quiet?: boolean;
  /** --no-color makes it false. */
  readonly color?: boolean;
}

/** Runs one command as this process, and knows the code to exit with afterwards. */
export class ProcessHost implements CommandHost {
  readonly isShell = false;
  readonly #io: Io;
  readonly #program: Command;
  exitCode: number = CommandExit.ok;

  constructor(io: Io, program: Command) {
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
      this.exitCode = await this.#tell(error, report, interruption);
    }
    // The last write may have failed, and not be reported yet.
    await new Promise((resolve) => setImmediate(resolve));
    if (interruption.outputError !== null) {
      await tellFailure(fileFailure('cannot write the output', interruption.outputError), report, this.#io);
    }
    // What was asked to end has not done all of its work, however well it took it.
    this.exitCode = interruption.exitCode ?? this.exitCode;
  }

  async #tell(error: unknown, report: Report, interruption: Interruption): Promise<number> {
    const { exitCode } = interruption;
    if (exitCode === CommandExit.pipeClosed || exitCode === CommandExit.file) return exitCode;
    if (exitCode !== null && isAbortion(error)) {
      if (report.isForPeople) await writeAll(this.#io.stderr, 'meerkat: interrupted\n');
      return exitCode;
    }
    await tellFailure(error, report, this.#io);
    const { explainFailure } = await import('./failure.ts');
    return explainFailure(error).exitCode;
  }
}

/** A failure on standard error: a line for people, an object for scripts that read JSON. */
export async function tellFailure(error: unknown, report: Report, io: Io): Promise<void> {
  // It loads the client, which what does not fail may not need.
  const { explainFailure } = await import('./failure.ts');
  const { exitCode, code, message, path } = explainFailure(error);
  const isJson = report.format === 'json' || report.format === 'ndjson';
  const text = isJson ? JSON.stringify({ error: { code, exitCode, path, message } }) : `meerkat: ${message}`;
  await writeAll(io.stderr, `${text}\n`);
}

/** It ended because it was told to. */
export function isAbortion(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || ('code' in error && error.code === 'ABORTED'));
}

/** As the command line, else the environment, wants it. */
export function makeReport(io: Io, words: CommonWords, signal: AbortSignal): Report {
  const fromEnvironment = io.env['MEERKAT_OUTPUT'];
  const format =
    words.output !== undefined
      ? parseFormat(words.output, '-o')
      : fromEnvironment === undefined || fromEnvironment === ''
        ? 'table'
        : parseFormat(fromEnvironment, 'MEERKAT_OUTPUT');
  return new Report(io, format, Paint.for(io.stdout, io, words.color !== false), signal);
}

/** How long one request may take. */
export function timeoutOf(words: CommonWords): number | undefined {
  return words.timeout === undefined ? undefined : parseDuration(words.timeout, '--timeout');
}
