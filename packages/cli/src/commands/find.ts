import { nameOf } from '@meerkat/client';
import type { Column } from '../output/column.ts';
import { byteCount, localTime, statColumnsOf } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import type { CommandExit } from '../run/exit-code.ts';
import { parseWholeNumber } from '../run/whole-number.ts';
import { type FindWords, makeCondition } from '../tree/find-conditions.ts';
import { globMatcher } from '../tree/glob.ts';
import { expandPaths } from '../tree/path-arguments.ts';
import { Survey } from '../tree/survey.ts';
import type { Visited } from '../tree/tree-walk.ts';

interface Options extends FindWords {
  readonly depth?: string;
  readonly prune?: readonly string[];
  readonly stat?: boolean;
  readonly null?: boolean;
}

/** `find`: the paths of znodes for which something holds. */
export const find: DefineCommand = (command, host) => {
  command
    .argument('[paths...]', 'where to begin; patterns too', [host.isShell ? '.' : '/'])
    .optionsGroup('Conditions, all of which must hold:')
    .option('--name <pattern>', 'the name is like it: "lock-*"; repeated: like one of them', collect)
    .option('--path <pattern>', 'the whole path is like it: "/app/**/config"; repeated: like one of them', collect)
    .option('--regex <expression>', 'a part of the path matches it')
    .option('-i, --ignore-case', 'for --name, --path and --regex')
    .option('--ephemeral', 'it goes with a session')
    .option('--persistent', 'it does not')
    .option('--owner <session>', 'it goes with this session: 0x100000a1b2c0001')
    .option('--newer <time>', 'its data changed within this time: 30s, 10m, 2h, 1d')
    .option('--older <time>', 'its data have not changed within this time')
    .option('--larger <size>', 'it has more data: 512, 10k, 1M')
    .option('--smaller <size>', 'it has less data')
    .option('--empty', 'it has no data')
    .option('--leaf', 'it has no children')
    .optionsGroup('Options:')
    .option('--depth <levels>', 'go down so many levels (default: to the leaves)')
    .option('--prune <pattern>', 'leave out what has this path or name, and everything below; repeatable', collect)
    .option('-s, --stat', 'version, size, children and last change of each')
    .option('-0, --null', 'a zero byte behind each path instead of a line end, for xargs -0')
    .addHelpText(
      'after',
      examples([
        ['meerkat find /app --name "lock-*"', 'by name'],
        ['meerkat find / --larger 100k -s', 'what has much data, with sizes'],
        ['meerkat find / --ephemeral --older 1d', 'ephemeral and unchanged for a day'],
        ['meerkat find / --owner 0x100000a1b2c0001', 'what goes when this session ends'],
        ['meerkat find / --prune /zookeeper --leaf --empty', 'without children and data'],
        ['meerkat find /tmp --older 7d -0 | xargs -0 meerkat rm', 'delete what was found'],
      ]),
    )
    .action((texts: string[], options: Options) => host.run((context) => search(context, texts, options)));
};

async function search(context: Context, texts: readonly string[], options: Options): Promise<CommandExit> {
  const { report } = context;
  if (options.null === true && !(report.isForPeople && options.stat !== true)) {
    throw new InvocationFailure('-0 prints paths alone: give neither -o nor -s');
  }
  const isWanted = makeCondition(options, Date.now());
  const isPruned = options.prune === undefined ? {} : { isLeftOut: pruner(options.prune) };
  const depthMax = options.depth === undefined ? {} : { depthMax: parseWholeNumber(options.depth, '--depth') };
  const client = await context.connect();
  const paths = await expandPaths(context, client, texts);
  const survey = new Survey(context, client);
  const isPlain = report.isForPeople && options.stat !== true;
  const list = isPlain ? null : await report.list(options.stat === true ? STAT : PLAIN);
  const end = options.null === true ? '\0' : '\n';
  using progress = context.progress();
  for await (const visited of survey.walk(paths, progress, { ...depthMax, ...isPruned })) {
    if (!isWanted(visited)) continue;
    progress.clear();
    if (list === null) await report.write(`${visited.path}${end}`);
    else await list.add(visited);
  }
  await list?.end();
  return survey.end();
}

/** @param patterns of paths; one without "/" of names */
function pruner(patterns: readonly string[]): (path: string) => boolean {
  const matchers = patterns.map((pattern) => {
    const isMatch = globMatcher(pattern);
    return pattern.includes('/') ? isMatch : (path: string) => isMatch(nameOf(path));
  });
  return (path) => matchers.some((isMatch) => isMatch(path));
}

function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

const PLAIN: readonly Column<Visited>[] = [{ name: 'path', value: ({ path }) => path }];

const STAT: readonly Column<Visited>[] = [
  ...PLAIN,
  { name: 'version', align: 'right', only: 'table', value: ({ stat }) => stat.version },
  { name: 'size', align: 'right', only: 'table', value: ({ stat }) => byteCount(stat.dataLength) },
  { name: 'children', align: 'right', only: 'table', value: ({ stat }) => stat.numChildren },
  { name: 'modified', only: 'table', value: ({ stat }) => localTime(stat.mtime) },
  { name: '', only: 'table', value: ({ stat }) => (stat.isEphemeral ? 'ephemeral' : '') },
  ...statColumnsOf<Visited>(({ stat }) => stat).map((column) => ({ ...column, only: 'data' as const })),
];
