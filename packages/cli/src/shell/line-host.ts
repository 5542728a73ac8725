import { isZooKeeperError, type ZooKeeperCode } from '@meerkat/client';
import type { Command } from 'commander';
import { Paint } from '../output/paint.ts';
import { Report } from '../output/report.ts';
import type { CatalogEntry } from '../run/command.ts';
import { type CommonWords, makeReport } from '../run/common-words.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { explainFailure } from '../run/failure.ts';
import { writeAll } from '../run/io.ts';
import { isAbortion, reportFailure } from '../run/report-failure.ts';
import type { ShellCommandHost, ShellState } from './shell-command.ts';
import { ShellContext } from './shell-context.ts';

/** Runs one line of the shell, and knows how it ended. */
export class LineHost implements ShellCommandHost {
  readonly isShell = true;
  readonly catalog: readonly CatalogEntry[];
  readonly shell: ShellState;
  readonly #program: Command;
  readonly #place: LinePlace;
  readonly #signal: AbortSignal;
  exitCode: number = CommandExit.ok;

  constructor(
    shell: ShellState,
    catalog: readonly CatalogEntry[],
    program: Command,
    place: LinePlace,
    signal: AbortSignal,
  ) {
    this.shell = shell;
    this.catalog = catalog;
    this.#program = program;
    this.#place = place;
    this.#signal = signal;
  }

  async run(work: (context: Context) => Promise<number>): Promise<void> {
    const { shell } = this;
    const { io } = shell;
    const words = mergedWords(shell.words, this.#program.opts<CommonWords>());
    let report = new Report(io, 'table', new Paint(false));
    try {
      report = makeReport(io, words, this.#signal);
      const keepsSlash = this.#place.command === 'create';
      this.exitCode = await work(new ShellContext(shell, report, words, this.#signal, keepsSlash));
    } catch (error) {
      if (this.#signal.aborted && isAbortion(error)) {
        this.exitCode = CommandExit.interrupted;
        return;
      }
      const { exitCode, message } = explainFailure(error);
      this.exitCode = exitCode;
      if (!report.isForPeople) return reportFailure(error, report, io);
      const paint = Paint.for(io.stderr, io, words.color !== false);
      await writeAll(io.stderr, `${this.#place.prefix}${paint.bad(inShellWords(message))}${zkCliWords(error)}\n`);
    }
  }
}

/** Which line it is. */
export interface LinePlace {
  readonly command: string;
  /** Of messages on standard error: where the line is, unless it was typed. */
  readonly prefix: string;
}

/** What a line says goes before what the shell was started with. */
function mergedWords(shell: CommonWords, line: CommonWords): CommonWords {
  return { ...shell, ...line, color: shell.color !== false && line.color !== false };
}

/** Advice for a command line; here other commands do it. */
function inShellWords(message: string): string {
  return message
    .replace('--auth gives credentials', '"addauth" gives credentials')
    .replace(/(?<!rm )-r deletes them too/, '"rm -r" deletes them too');
}

/** What zkCli says in this case, which people and scripts look for. */
function zkCliWords(error: unknown): string {
  if (!isZooKeeperError(error) || error.path === null) return '';
  const words = ZKCLI_WORDS[error.code];
  return words === undefined ? '' : ` (${words}${error.path})`;
}

const ZKCLI_WORDS: Readonly<Partial<Record<ZooKeeperCode, string>>> = {
  NONODE: 'Node does not exist: ',
  NODEEXISTS: 'Node already exists: ',
  NOTEMPTY: 'Node not empty: ',
  NOAUTH: 'Insufficient permission : ',
  BADVERSION: 'version No is not valid : ',
  INVALIDACL: 'Acl is not valid : ',
  NOCHILDRENFOREPHEMERALS: 'Ephemerals cannot have children: ',
  QUOTAEXCEEDED: 'Quota has exceeded : ',
  NOWATCHER: 'No such watcher for ',
};
