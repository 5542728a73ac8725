import {
  BadVersionError,
  type Client,
  type DeleteProgress,
  NoNodeError,
  type Stat,
  UnimplementedError,
} from '@meerkat/client';
import type { Column } from '../output/column.ts';
import { count, statColumnsOf } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import { confirm } from '../run/confirmation.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { reportFailure } from '../run/report-failure.ts';
import { describePartialDeletion } from '../tree/partial-deletion.ts';
import { pipelined } from '../tree/pipelined.ts';
import { refuseProtected } from '../tree/protection.ts';
import { findTargets, type Targets, topmost } from '../tree/targets.ts';
import { walkTree } from '../tree/tree-walk.ts';
import { parseVersion } from '../value/expected-version.ts';

interface Options {
  readonly recursive?: boolean;
  readonly ifVersion?: string;
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** `rm`: deletes znodes. */
export const rm: DefineCommand = (command, host) => {
  command
    .argument('<paths...>', "the znodes; patterns in quotes: '/app/*/old'")
    .option('-r, --recursive', 'with everything below; asks first, on a terminal')
    .option('-v, --if-version <n>', 'only if the znode has this version; exit code 13 if it has another')
    .option('-f, --force', 'take no offence at what is missing')
    .option('-n, --dry-run', 'print what would be deleted, and delete nothing')
    .option('-y, --yes', 'do not ask')
    .addHelpText(
      'after',
      examples([
        ['meerkat rm /app/old', 'a znode without children'],
        ['meerkat rm /app/config --if-version 3', 'unless it was changed since'],
        ['meerkat rm -r /app', 'a znode with everything below it'],
        ["meerkat rm -rn '/jobs/done-*'", 'what the next one would delete'],
        ["meerkat rm -r '/jobs/done-*'", 'all that match'],
      ]),
    )
    .action((words: string[], options: Options) => host.run((context) => run(context, words, options)));
};

async function run(context: Context, words: readonly string[], options: Options): Promise<CommandExit> {
  const version = parseVersion(options.ifVersion);
  const client = await context.connect();
  const found = await findTargets(context, client, words);
  if (version !== undefined && found.paths.length > 1) {
    throw new InvocationFailure('--if-version is for one znode, not for several');
  }
  if (found.paths.length === 0) {
    if (options.force === true) return CommandExit.ok;
    throw new CommandFailure(CommandExit.noNode, `there is no znode like ${words.join(' ')}: nothing was deleted`);
  }
  for (const path of found.paths) refuseProtected(client, path, 'delete');
  if (options.dryRun === true) return listDoomed(context, client, found.paths, options);
  return options.recursive === true
    ? deleteTrees(context, client, topmost(found.paths), version, options)
    : deleteZnodes(context, client, found, version, options);
}

/* ------------------------------------------------------------------------------------------- without what is below ---- */

interface Deleted {
  readonly path: string;
  /** Znodes, this one included. */
  readonly znodes: number;
}

const COLUMNS: readonly Column<Deleted>[] = [
  { name: 'path', value: ({ path }) => path },
  { name: 'znodes', value: ({ znodes }) => znodes },
];

async function deleteZnodes(
  context: Context,
  client: Client,
  { paths, hasPattern }: Targets,
  version: number | undefined,
  options: Options,
): Promise<CommandExit> {
  if (hasPattern && paths.length > 1 && options.yes !== true) {
    if (!(await confirm(context, `delete ${count(paths.length)} znodes, ${paths[0]} the first?`)))
      return refused(context);
  }
  const { report } = context;
  const list = report.isForPeople ? null : await report.list(COLUMNS);
  const failures: unknown[] = [];
  let deleted = 0;
  // Children before parents, which come first in a pattern that goes deep.
  const sent = pipelined(hasPattern ? paths.toReversed() : paths, async (path) => {
    try {
      await client.delete(path, { ...context.call, version });
      return { path, error: null };
    } catch (error) {
      return { path, error };
    }
  });
  for await (const { path, error } of sent) {
    if (error === null) {
      deleted++;
      await list?.add({ path, znodes: 1 });
    } else if (!(error instanceof NoNodeError && options.force === true)) failures.push(error);
    if (context.signal.aborted) break;
  }
  await list?.end();
  const last = failures.pop();
  if (last === undefined) return CommandExit.ok;
  if (!context.signal.aborted) for (const failure of failures) await reportFailure(failure, report, context.io);
  if (paths.length > 1) context.note(`deleted ${count(deleted)} of ${count(paths.length)} znodes`);
  throw last;
}

/* ----------------------------------------------------------------------------------------------- with what is below ---- */

async function deleteTrees(
  context: Context,
  client: Client,
  paths: readonly string[],
  version: number | undefined,
  options: Options,
): Promise<CommandExit> {
  const { report } = context;
  if (options.yes !== true && context.io.stdin.isTTY === true) {
    const question = await describe(context, client, paths);
    if (question !== null && !(await confirm(context, question))) return refused(context);
  }
  const list = report.isForPeople ? null : await report.list(COLUMNS);
  let deleted = 0;
  for (const path of paths) {
    try {
      if (version !== undefined) await checkVersion(context, client, path, version);
      const znodes = await deleteTree(context, client, path, deleted);
      deleted += znodes;
      await list?.add({ path, znodes });
    } catch (error) {
      if (!(error instanceof NoNodeError && options.force === true)) throw error;
    }
  }
  await list?.end();
  context.note(`deleted ${znodeCount(deleted)}`);
  return CommandExit.ok;
}

/** @param before what was deleted of other trees */
async function deleteTree(context: Context, client: Client, path: string, before: number): Promise<number> {
  let last: DeleteProgress = { deleted: 0, found: 0 };
  using progress = context.progress();
  try {
    return await client.deleteRecursive(path, {
      ...context.call,
      onProgress: (now) => {
        last = now;
        progress.update(() => `deleted ${count(before + now.deleted)} of ${count(before + now.found)} znodes`);
      },
    });
  } catch (error) {
    progress.clear();
    if (last.found > 0 || before > 0) context.note(describePartialDeletion(path, last, before));
    throw error;
  }
}

/** Nothing was deleted yet: a tree is not deleted in one step, so that its version is looked at before the first. */
async function checkVersion({ call }: Context, client: Client, path: string, version: number): Promise<void> {
  const stat = await client.exists(path, call);
  if (stat === null) throw new NoNodeError({ operation: 'delete', path });
  if (stat.version !== version) throw new BadVersionError({ operation: 'delete', path });
}

/** @returns the question; null when there is nothing there, which the deletion reports */
async function describe(context: Context, client: Client, paths: readonly string[]): Promise<string | null> {
  const belows: (number | null)[] = [];
  for await (const below of pipelined(paths, (path) => countBelow(context, client, path))) belows.push(below);
  const known = belows.filter((below) => below !== null);
  if (known.length === 0) return null;
  const sum = known.reduce((total, below) => total + below, 0);
  if (paths.length > 1)
    return `delete ${count(known.length)} znodes, ${paths[0]} the first, and ${count(sum)} below them?`;
  return sum === 0 ? `delete ${paths[0]}?` : `delete ${paths[0]} and ${znodeCount(sum)} below it?`;
}

/** @returns null when the znode is missing */
async function countBelow({ call }: Context, client: Client, path: string): Promise<number | null> {
  try {
    return await client.descendantCount(path, call);
  } catch (error) {
    if (error instanceof NoNodeError) return null;
    // Servers before 3.6 cannot count; what is directly below is better than nothing.
    if (error instanceof UnimplementedError) return (await client.exists(path, call))?.numChildren ?? null;
    throw error;
  }
}

function refused(context: Context): CommandExit {
  context.note('nothing was deleted');
  return CommandExit.no;
}

/* ------------------------------------------------------------------------------------------------------- the dry run ---- */

interface Doomed {
  readonly path: string;
  readonly stat: Stat;
}

const DOOMED_COLUMNS: readonly Column<Doomed>[] = [
  { name: 'path', value: ({ path }) => path },
  ...statColumnsOf<Doomed>(({ stat }) => stat),
];

async function listDoomed(
  context: Context,
  client: Client,
  paths: readonly string[],
  options: Options,
): Promise<CommandExit> {
  const { report, call } = context;
  const list = report.isForPeople ? null : await report.list(DOOMED_COLUMNS);
  const isRecursive = options.recursive === true;
  let doomed = 0;
  let hasChildren: string | null = null;
  for (const path of isRecursive ? topmost(paths) : paths) {
    try {
      for await (const visited of walkTree(client, path, { ...call, ...(isRecursive ? {} : { depthMax: 0 }) })) {
        doomed++;
        if (!isRecursive && visited.children.length > 0) hasChildren ??= path;
        await (list === null ? report.line(visited.path) : list.add(visited));
      }
    } catch (error) {
      if (!(error instanceof NoNodeError && options.force === true)) throw error;
    }
  }
  await list?.end();
  if (hasChildren !== null) context.note(`${hasChildren} has children: without -r it would not be deleted`);
  context.note(`${znodeCount(doomed)} would be deleted; nothing was`);
  return CommandExit.ok;
}

function znodeCount(znodes: number): string {
  return `${count(znodes)} ${znodes === 1 ? 'znode' : 'znodes'}`;
}
