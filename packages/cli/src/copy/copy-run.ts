import { setTimeout as delay } from 'node:timers/promises';
import { isZooKeeperError, parentOf } from '@meerkat/client';
import type { Column } from '../output/column.ts';
import { count } from '../output/stat-columns.ts';
import { CommandFailure } from '../run/command-failure.ts';
import { confirm } from '../run/confirmation.ts';
import type { Context, Located } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { explainFailure } from '../run/failure.ts';
import { COPY_COLUMNS, type CopyResult, CopyTally, describeCounts } from './copy-tally.ts';
import { type Policy, plan, type Step } from './plan.ts';
import { absolutePath } from './tree-entry.ts';
import type { TreeEntries } from './tree-pairs.ts';
import { selectFromService, type TreeSelection } from './tree-selection.ts';
import { TreeWriter, type WriteStep } from './tree-writer.ts';

/** What is to be copied where, and how. */
export interface CopyJob {
  /** `copy` or `import`. */
  readonly verb: 'copy' | 'import';
  /** As it is named to people. */
  readonly source: string;
  /** Reads the source from its beginning; called once for each pass. */
  readonly readSource: () => TreeEntries;
  readonly target: Located;
  readonly selection: TreeSelection;
  readonly policy: Policy;
  /** Makes the ancestors of the target. */
  readonly makesParents: boolean;
  readonly isDryRun: boolean;
  /** Goes through all of the source before anything is changed, also when there is nothing yet to be overwritten. */
  readonly surveysAlways: boolean;
  /** Does not ask. */
  readonly isSure: boolean;
  readonly verifies: boolean;
}

/** How often a pass is begun again that others or a lost connection have upset. */
const PASSES_MAX = 5;
/** How long writes in flight may take when others have failed, or Ctrl-C was pressed. Milliseconds. */
const SETTLE_MS = 3000;
/** What is to be written is kept in memory up to this; beyond it is read again. Bytes. */
const AGREED_BYTES_MAX = 64 * 1024 * 1024;
/** What a step takes besides data, roughly. Bytes. */
const STEP_BYTES = 500;
/** Paths that a message names. */
const NAMED_MAX = 5;

/** Copies a tree, and says how it went. @returns the exit code */
export async function runCopy(context: Context, job: CopyJob): Promise<CommandExit> {
  const run = new CopyRun(context, job);
  if (job.isDryRun) return run.rehearse();
  await run.prepare();
  if (run.isNeeded) {
    if (!(await run.isAgreed())) {
      context.note('nothing was done');
      return CommandExit.no;
    }
    await run.carryOut();
  }
  return run.conclude();
}

class CopyRun {
  readonly #context: Context;
  readonly #job: CopyJob;
  /** Of the last time that everything was looked at. */
  #tally: CopyTally = new CopyTally();
  /** What is to be written, as it was found and agreed to; null when it is found out while writing. */
  #agreed: readonly Step[] | null = null;
  /** What has happened, over all passes. */
  readonly #written: Record<WriteStep['action'], number> = { create: 0, change: 0, finish: 0, replace: 0, delete: 0 };
  #lastWritten = '';
  /** All that has happened is in `#written`. */
  #isCertain = true;

  constructor(context: Context, job: CopyJob) {
    this.#context = context;
    this.#job = job;
  }

  /** Says what would be done. */
  async rehearse(): Promise<CommandExit> {
    const { report } = this.#context;
    const { source, target } = this.#job;
    const list = await report.list(stepColumns(target.path));
    for await (const step of this.#plan()) {
      this.#tally.add(step);
      if (step.action !== 'leave') await list.add(step);
    }
    await list.end();
    const { counts } = this.#tally;
    if (report.isForPeople) {
      await report.line(
        `${this.#job.verb} ${source} to ${target.shown}, nothing is done yet: ${describeCounts(counts)}`,
      );
    }
    return counts.conflict > 0 ? CommandExit.nodeExists : CommandExit.ok;
  }

  /** Sees to it that the target can take the copy. Nothing is written to it when it cannot. */
  async prepare(): Promise<void> {
    const { call } = this.#context;
    const { client, path, shown } = this.#job.target;
    const [isThere, hasParent] = await Promise.all([
      client.exists(path, call),
      path === '/' ? true : client.exists(parentOf(path), call),
    ]);
    if (hasParent === null && !this.#job.makesParents) {
      const message = `cannot ${this.#job.verb} to ${shown}: its parent ${parentOf(path)} is not there; --parents makes it`;
      throw new CommandFailure(CommandExit.noNode, message);
    }
    if (isThere !== null || this.#job.surveysAlways) await this.#survey();
    if (hasParent === null) await client.ensurePath(parentOf(path), call);
  }

  /** False when everything was looked at and nothing is to be done: the target is a copy already. */
  get isNeeded(): boolean {
    return this.#tally.total === 0 || this.#tally.writes > 0;
  }

  async isAgreed(): Promise<boolean> {
    const { change, replace, delete: deleted } = this.#tally.counts;
    const harm = [
      ...(change + replace > 0 ? [`overwrite ${count(change + replace)}`] : []),
      ...(deleted > 0 ? [`delete ${count(deleted)}`] : []),
    ];
    if (harm.length === 0 || this.#job.isSure) return true;
    return await confirm(this.#context, `${harm.join(' and ')} znodes of ${this.#job.target.shown}?`);
  }

  /** Writes, and starts over where it has to: what is there already is passed by. */
  async carryOut(): Promise<void> {
    const { call, signal } = this.#context;
    const { client } = this.#job.target;
    try {
      for (let pass = 1; ; pass++) {
        try {
          await this.#pass();
          return;
        } catch (error) {
          if (pass >= PASSES_MAX || signal.aborted || !isUpset(error)) throw error;
          await client.whenConnected(call);
          await client.sync('/', call);
        }
      }
    } catch (error) {
      this.#reportProgress();
      throw error;
    }
  }

  async conclude(): Promise<CommandExit> {
    const { report, call } = this.#context;
    const { source, target, verb } = this.#job;
    let isVerified: boolean | null = null;
    let open = '';
    if (this.#job.verifies && !this.isNeeded) isVerified = true;
    else if (this.#job.verifies) {
      await target.client.sync('/', call);
      open = await this.#verify().catch((error: unknown) => this.#failVerification(error));
      isVerified = open === '';
    }
    const counts = { ...this.#tally.counts, ...this.#written };
    const result: CopyResult = { source, target: target.shown, counts, isDryRun: false, isVerified };
    if (report.isForPeople) {
      const done = verb === 'copy' ? 'copied' : 'imported';
      const verified = isVerified === true ? '; verified: the copy is the same as its source' : '';
      await report.line(`${done} ${source} to ${target.shown}: ${describeCounts(counts)}${verified}`);
    } else {
      await report.one(COPY_COLUMNS, result);
    }
    if (isVerified !== false) return CommandExit.ok;
    const message = `${target.shown} is not the same as ${source}: ${open}; either may have been changed meanwhile: "meerkat diff" shows how, and the same command again copies what is missing`;
    throw new CommandFailure(CommandExit.unverified, message);
  }

  /** What was written is there, although it cannot be read: that has to be said. */
  #failVerification(error: unknown): never {
    if (this.#context.signal.aborted || !isZooKeeperError(error)) throw error;
    const { source, target, verb } = this.#job;
    const done = verb === 'copy' ? 'copied' : 'imported';
    const { exitCode, message } = explainFailure(error);
    const counts = describeCounts({ ...this.#tally.counts, ...this.#written });
    throw new CommandFailure(
      exitCode,
      `${done} ${source} to ${target.shown}: ${counts}; not verified: ${message}`,
      error,
    );
  }

  #plan(): AsyncGenerator<Step, void> {
    const { selection, policy, readSource, target } = this.#job;
    const there = selectFromService(target.client, target.path, selection, this.#context.call, 'is empty');
    return plan(readSource(), there, policy);
  }

  /** Goes through everything once and writes nothing. */
  async #survey(): Promise<void> {
    using progress = this.#context.progress();
    const tally = new CopyTally();
    const conflicts: Step[] = [];
    const steps: Step[] = [];
    let bytes = 0;
    for await (const step of this.#plan()) {
      tally.add(step);
      if (step.action === 'conflict' && conflicts.length <= NAMED_MAX) conflicts.push(step);
      if (step.action !== 'leave' && bytes <= AGREED_BYTES_MAX) {
        bytes += STEP_BYTES + ('entry' in step ? (step.entry.data?.length ?? 0) : 0);
        steps.push(step);
      }
      progress.update(() => `looked at ${count(tally.total)} znodes`);
    }
    this.#tally = tally;
    this.#agreed = bytes <= AGREED_BYTES_MAX ? steps : null;
    if (conflicts.length === 0) return;
    const { shown, path } = this.#job.target;
    const what = describeSteps(conflicts, path, tally.counts.conflict);
    const message = `${shown} has other znodes already: ${what}; --overwrite replaces them, --skip leaves them, --update takes the newer ones; nothing was done`;
    throw new CommandFailure(CommandExit.nodeExists, message);
  }

  async #pass(): Promise<void> {
    const { target, verb } = this.#job;
    using progress = this.#context.progress();
    const agreed = this.#agreed;
    // What upsets this pass has changed the target: the next one looks again.
    this.#agreed = null;
    if (agreed === null) {
      const { delete: deleted } = this.#written;
      this.#tally = new CopyTally();
      // A pass before this one has made them the same.
      this.#tally.counts.same = deleted - this.#writes;
    }
    const tally = this.#tally;
    const writer = new TreeWriter(target.client, target.path, this.#context.call, (path, actions) => {
      for (const action of actions) this.#written[action]++;
      this.#lastWritten = path;
    });
    try {
      for await (const step of agreed ?? this.#plan()) {
        if (agreed === null) tally.add(step);
        progress.update(() => `${verb}: ${count(this.#writes)} znodes written, ${describeRest(agreed, tally)}`);
        if (step.action === 'conflict') throw conflictFailure(step, target);
        if (step.action !== 'leave') await writer.add(step);
      }
      await writer.end();
    } catch (error) {
      await Promise.race([writer.settle(), delay(SETTLE_MS, undefined, { ref: false })]);
      if (writer.isInDoubt) this.#isCertain = false;
      throw error;
    }
  }

  /** @returns what differs; nothing when the copy is one */
  async #verify(): Promise<string> {
    using progress = this.#context.progress();
    const tally = new CopyTally();
    const open: Step[] = [];
    for await (const step of this.#plan()) {
      tally.add(step);
      if (step.action !== 'leave' && open.length <= NAMED_MAX) open.push(step);
      progress.update(() => `verified ${count(tally.total)} znodes`);
    }
    return describeSteps(open, this.#job.target.path, tally.open);
  }

  get #writes(): number {
    return Object.values(this.#written).reduce((sum, number) => sum + number, 0);
  }

  #reportProgress(): void {
    if (this.#writes === 0 && this.#isCertain) return;
    const { verb } = this.#job;
    const number = `${this.#isCertain ? '' : 'at least '}${count(this.#writes)}`;
    const written =
      this.#writes === 0
        ? 'it is not known whether something was written'
        : `${number} znodes are written, the last one is ${this.#lastWritten}`;
    this.#context.note(`${verb}: ${written}; the same command again continues from there`);
  }
}

/** Others have changed the target while it was written, or the connection broke: looking again says what is left to do. */
function isUpset(error: unknown): boolean {
  return isZooKeeperError(error) && UPSETS.has(error.code);
}

const UPSETS: ReadonlySet<string> = new Set([
  ...['CONNECTIONLOSS', 'SESSIONMOVED', 'OPERATIONTIMEOUT', 'REQUESTTIMEOUT'],
  ...['NODEEXISTS', 'NONODE', 'NOTEMPTY'],
]);

function describeRest(agreed: readonly Step[] | null, tally: CopyTally): string {
  return agreed === null ? `${count(tally.total)} looked at` : `of ${count(agreed.length)}`;
}

function conflictFailure({ path }: Step, target: Located): CommandFailure {
  const message = `${absolutePath(target.path, path)} has come to ${target.shown} meanwhile, and differs; --overwrite replaces it`;
  return new CommandFailure(CommandExit.nodeExists, message);
}

/** @param total how many there are, when not all of them are given */
function describeSteps(steps: readonly Step[], root: string, total: number = steps.length): string {
  const named = steps.slice(0, NAMED_MAX).map((step) => {
    const path = absolutePath(root, step.path);
    return 'what' in step ? `${path} (${step.what.join(', ')})` : `${path} (${MISSING_OR_EXTRA[step.action]})`;
  });
  return total > named.length ? `${named.join(', ')} and ${count(total - named.length)} more` : named.join(', ');
}

const MISSING_OR_EXTRA: Readonly<Record<Step['action'], string>> = {
  create: 'missing',
  change: 'differs',
  finish: 'acl',
  replace: 'kind',
  delete: 'too many',
  conflict: 'differs',
  leave: 'the same',
};

function stepColumns(root: string): readonly Column<Step>[] {
  return [
    { name: 'action', value: ({ action }) => action },
    { name: 'path', value: ({ path }) => absolutePath(root, path) },
    {
      name: 'what',
      value: (step) => ('what' in step ? step.what : []),
      text: (step) => ('what' in step ? step.what.join(', ') : ''),
    },
    { name: 'bytes', align: 'right', value: (step) => ('entry' in step ? (step.entry.data?.length ?? 0) : null) },
  ];
}
