import type { Column } from '../output/column.ts';
import { byteCount, count } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import type { CommandExit } from '../run/exit-code.ts';
import { parseWholeNumber } from '../run/whole-number.ts';
import { expandPaths } from '../tree/path-arguments.ts';
import { SubtreeTotals, type Totals } from '../tree/subtree-totals.ts';
import { Survey } from '../tree/survey.ts';

interface Options {
  readonly depth: string;
  readonly sort: string;
  readonly top?: string;
  readonly bytes?: boolean;
}

/** `du`: how much data and how many znodes subtrees have. */
export const du: DefineCommand = (command, host) => {
  command
    .argument('[paths...]', 'subtrees; patterns too', [host.isShell ? '.' : '/'])
    .option('-d, --depth <levels>', 'report subtrees so many levels down; 0: the paths alone', '1')
    .option('--sort <by>', `the largest first by ${SORTS.join(', ')}, or by path`, 'size')
    .option('-n, --top <number>', 'report so many at most (default: all)')
    .option('-b, --bytes', 'sizes in bytes')
    .addHelpText(
      'after',
      `\nsize is the data of a znode and all below it, own is its own data.\n${examples([
        ['meerkat du', 'the children of the root, the largest first'],
        ['meerkat du /app -d 2 -n 10', 'the ten largest, two levels down'],
        ['meerkat du --sort znodes', 'where most znodes are'],
        ["meerkat du -d 0 '/app/*' -o json", 'sizes in bytes, for a script'],
      ])}`,
    )
    .action((texts: string[], options: Options) => host.run((context) => sumUp(context, texts, options)));
};

const SORTS = ['size', 'own', 'znodes', 'ephemerals'] as const;

async function sumUp(context: Context, texts: readonly string[], options: Options): Promise<CommandExit> {
  const compare = orderOf(options.sort);
  const top = options.top === undefined ? undefined : parseWholeNumber(options.top, '--top', 1);
  const totals = new SubtreeTotals(parseWholeNumber(options.depth, '--depth'));
  const client = await context.connect();
  const paths = await expandPaths(context, client, texts);
  const survey = new Survey(context, client);
  using progress = context.progress();
  for await (const visited of survey.walk(paths, progress)) totals.add(visited);
  progress.clear();
  const list = await context.report.list(columnsOf(options.bytes === true));
  for (const item of totals.kept.sort(compare).slice(0, top)) await list.add(item);
  await list.end();
  return survey.end();
}

/** Among equals the order of the walk stays: parents first, then by name. */
function orderOf(text: string): (a: Totals, b: Totals) => number {
  switch (text) {
    case 'size':
      return (a, b) => b.bytes - a.bytes;
    case 'own':
      return (a, b) => b.own - a.own;
    case 'znodes':
      return (a, b) => b.znodes - a.znodes;
    case 'ephemerals':
      return (a, b) => b.ephemerals - a.ephemerals;
    case 'path':
      return () => 0;
    default:
      throw new InvocationFailure(`--sort: expected one of ${SORTS.join(', ')}, path, found "${text}"`);
  }
}

function columnsOf(isExact: boolean): readonly Column<Totals>[] {
  const shown = isExact ? count : byteCount;
  return [
    { name: 'path', only: 'data', value: ({ path }) => path },
    { name: 'size', align: 'right', value: ({ bytes }) => bytes, text: ({ bytes }) => shown(bytes) },
    { name: 'own', align: 'right', value: ({ own }) => own, text: ({ own }) => shown(own) },
    { name: 'znodes', align: 'right', value: ({ znodes }) => znodes, text: ({ znodes }) => count(znodes) },
    {
      name: 'ephemerals',
      align: 'right',
      value: ({ ephemerals }) => ephemerals,
      text: (totals) => count(totals.ephemerals),
    },
    { name: 'path', only: 'table', value: ({ path }) => path },
  ];
}
