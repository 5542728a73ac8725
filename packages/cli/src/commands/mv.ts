import { type Client, joinPath, NoNodeError, nameOf, parentOf } from '@meerkat/client';
import { parseLocation } from '../connection/location.ts';
import { isBelow } from '../copy/tree-entry.ts';
import type { Column } from '../output/column.ts';
import { count } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import { confirm } from '../run/confirmation.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { refuseProtected } from '../tree/protection.ts';
import { findTargets, topmost } from '../tree/targets.ts';
import { moveAtOnce, moveInSteps, surveyMove, targetExists } from '../tree/tree-move.ts';

interface Options {
  readonly parents?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** `mv`: trees to other places of the same service. */
export const mv: DefineCommand = (command, host) => {
  command
    .usage('[options] <source> [sources...] <target>')
    .argument('<source>', 'what is moved, with everything below it; may be several, and patterns')
    .argument('<target...>', 'what it is called then; with "/" at its end: into it, under its own name')
    .option('-p, --parents', 'make missing parents of the target')
    .option('-n, --dry-run', 'print what would be moved where, and move nothing')
    .option('-y, --yes', 'do not ask')
    .addHelpText(
      'after',
      `${examples([
        ['meerkat mv /app/config /app/config.old', 'one znode'],
        ['meerkat mv /app /archive/2026/app -p', 'a tree, to where nothing is yet'],
        ["meerkat mv '/jobs/done-*' /archive/", 'into a znode, under the same names'],
      ])}${WHAT_IS_LOST}`,
    )
    .action((source: string, rest: string[], options: Options) =>
      host.run((context) => move(context, [source, ...rest.slice(0, -1)], rest.at(-1) ?? '', options)),
    );
};

const WHAT_IS_LOST = `

What fits into one request moves in one transaction. Larger trees are copied, compared, and deleted
where they were: others see both for a while. The service knows nothing of moving: versions, times and zxids
start over; ephemeral znodes cannot be moved; containers and znodes with a time to live become plain
ones, because clients cannot see that they are. To another service: cp.`;

interface Move {
  readonly from: string;
  readonly to: string;
  readonly znodes: number;
  /** In one transaction. */
  readonly isAtomic: boolean;
}

const COLUMNS: readonly Column<Move>[] = [
  { name: 'from', value: ({ from }) => from },
  { name: 'to', value: ({ to }) => to },
  { name: 'znodes', value: ({ znodes }) => znodes },
  { name: 'atomic', value: ({ isAtomic }) => isAtomic },
];

async function move(
  context: Context,
  words: readonly string[],
  target: string,
  options: Options,
): Promise<CommandExit> {
  for (const word of [...words, target]) refuseOtherService(word);
  const client = await context.connect();
  const { paths } = await findTargets(context, client, words);
  const sources = topmost(paths);
  const isInto = target.endsWith('/');
  if (sources.length === 0) {
    throw new CommandFailure(CommandExit.noNode, `there is no znode like ${words.join(' ')}: nothing was moved`);
  }
  if (sources.length > 1 && !isInto) {
    throw new InvocationFailure(`several znodes are moved into another one: write "${target}/"`);
  }
  const goal = context.resolve(target.replace(/(?<!^)\/+$/, ''));
  const moves: Move[] = [];
  for (const from of sources) {
    refuseProtected(client, from, 'move');
    moves.push(await planMove(context, client, from, isInto ? joinPath(goal, nameOf(from)) : goal, options));
  }
  const { report } = context;
  if (options.dryRun !== true && !(await agree(context, moves, options))) {
    context.note('nothing was moved');
    return CommandExit.no;
  }
  const list = report.isForPeople && options.dryRun !== true ? null : await report.list(COLUMNS);
  for (const planned of moves) {
    const done = options.dryRun === true ? planned : await carryOut(context, client, planned, options);
    await list?.add(done);
  }
  await list?.end();
  if (options.dryRun === true) context.note('nothing was moved');
  return CommandExit.ok;
}

function refuseOtherService(word: string): void {
  if (parseLocation(word).service.kind === 'current') return;
  throw new InvocationFailure(
    `mv works within one service, and ${word} is in another: "cp -r" copies to it, "rm -r" deletes`,
  );
}

async function planMove(context: Context, client: Client, from: string, to: string, options: Options): Promise<Move> {
  const { call } = context;
  if (to === from) throw new InvocationFailure(`${from} is there already: nothing is to be moved`);
  if (isBelow(to, from)) throw new InvocationFailure(`${to} lies below ${from}: a tree cannot be moved into itself`);
  const parent = parentOf(to);
  const [there, parentStat] = await Promise.all([client.exists(to, call), client.exists(parent, call)]);
  if (there !== null) throw targetExists(from, to);
  if (parentStat === null && options.parents !== true) throw new NoNodeError({ operation: 'create', path: to });
  const { znodes, fitsOneRequest } = await surveyMove(client, from, to, call);
  return { from, to, znodes, isAtomic: fitsOneRequest };
}

/** A lone znode that moves in one transaction is no matter to ask about. */
async function agree(context: Context, moves: readonly Move[], options: Options): Promise<boolean> {
  const znodes = moves.reduce((sum, { znodes: some }) => sum + some, 0);
  const isAtomic = moves.every((one) => one.isAtomic);
  if (options.yes === true || (znodes === 1 && isAtomic)) return true;
  const [first] = moves;
  const what =
    moves.length === 1
      ? `${first?.from} and ${count(znodes - 1)} znodes below it to ${first?.to}`
      : `${count(moves.length)} trees, ${count(znodes)} znodes in all`;
  const how = isAtomic ? '' : ', in steps, since they are more than one request';
  return confirm(context, `move ${what}${how}?`);
}

async function carryOut(context: Context, client: Client, planned: Move, options: Options): Promise<Move> {
  const { call } = context;
  const { from, to } = planned;
  if (options.parents === true && parentOf(to) !== '/') await client.ensurePath(parentOf(to), call);
  const atOnce = planned.isAtomic ? await moveAtOnce(client, from, to, call) : null;
  if (atOnce !== null) {
    context.note(`moved ${znodeCount(atOnce)} to ${to} in one transaction; versions and zxids start over`);
    return { ...planned, znodes: atOnce };
  }
  using progress = context.progress();
  const znodes = await moveInSteps(client, from, to, call, (now) => {
    progress.update(() => `${now.step} ${count(now.znodes)} of ${count(planned.znodes)} znodes`);
  });
  progress.clear();
  context.note(
    `moved ${znodeCount(znodes)} to ${to} in steps: copied, compared, deleted; versions and zxids start over`,
  );
  return { ...planned, znodes, isAtomic: false };
}

function znodeCount(znodes: number): string {
  return `${count(znodes)} ${znodes === 1 ? 'znode' : 'znodes'}`;
}
