import { type Client, NoAuthError, type NoNodeError, parentOf } from '@meerkat/client';
import type { Progress } from '../output/progress.ts';
import { count } from '../output/stat-columns.ts';
import { CommandFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { explainFailure } from '../run/failure.ts';
import { reportFailure } from '../run/report-failure.ts';
import { type Visited, type WalkOptions, walkTree } from './tree-walk.ts';

const REFUSED_NAMED_MAX = 3;

/**
 * A walk through trees for a command that reads them: it shows progress, reports what is missing or may not be read and
 * continues behind it, and says how far it came when it is interrupted.
 */
export class Survey {
  readonly #context: Context;
  readonly #client: Client;
  #znodes = 0;
  readonly #refused: string[] = [];
  #exitCode: CommandExit = CommandExit.ok;

  constructor(context: Context, client: Client) {
    this.#context = context;
    this.#client = client;
  }

  /** How many were visited so far. */
  get znodes(): number {
    return this.#znodes;
  }

  /**
   * @param paths those below others are visited with these, once
   * @param progress to be cleared before anything is printed
   * @throws NoNodeError when there is one path, and nothing there
   */
  async *walk(paths: readonly string[], progress: Progress, options: WalkOptions = {}): AsyncGenerator<Visited, void> {
    const { call, signal, report } = this.#context;
    const missing: NoNodeError[] = [];
    const onMissing = (error: NoNodeError): void => {
      if (paths.length === 1) throw error;
      missing.push(error);
    };
    try {
      const onRefused = (path: string, depth: number): void => {
        this.#refused.push(path);
        options.onRefused?.(path, depth);
      };
      const walk = walkTree(this.#client, withoutNested(paths), { ...options, ...call, onMissing, onRefused });
      for await (const visited of walk) {
        this.#znodes++;
        yield visited;
        progress.update(() => `${count(this.#znodes)} znodes`);
      }
    } catch (error) {
      progress.clear();
      if (isInterrupted(signal) && report.isForPeople)
        this.#context.note(`stopped after ${count(this.#znodes)} znodes`);
      throw error;
    }
    progress.clear();
    for (const error of missing) await this.#fail(error);
  }

  /** Says what could not be read. @returns how to end, unless the command has something else to say */
  async end(): Promise<CommandExit> {
    if (this.#refused.length > 0) {
      const named = this.#refused.slice(0, REFUSED_NAMED_MAX).join(', ');
      const others = this.#refused.length - REFUSED_NAMED_MAX;
      const which = others > 0 ? `${named} and ${count(others)} others` : named;
      const message = `cannot read ${which}, nor what is below: the ACL does not allow it; "acl" shows it, --auth gives credentials`;
      const cause = new NoAuthError({ operation: 'children', path: this.#refused[0] ?? null });
      await this.#fail(new CommandFailure(CommandExit.noAuth, message, cause));
    }
    return this.#exitCode;
  }

  async #fail(error: Error): Promise<void> {
    await reportFailure(error, this.#context.report, this.#context.io);
    if (this.#exitCode === CommandExit.ok) this.#exitCode = explainFailure(error).exitCode;
  }
}

/** By the user, not by the end of the reader of the output. */
function isInterrupted({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason instanceof Error && reason.message === 'interrupted';
}

/** Each only once: what lies below another path is visited with it. */
function withoutNested(paths: readonly string[]): readonly string[] {
  const known = new Set(paths);
  const isBelowOther = (path: string): boolean => {
    for (let above = parentOf(path); above !== ''; above = parentOf(above)) if (known.has(above)) return true;
    return false;
  };
  return paths.filter((path) => !isBelowOther(path));
}
