import type { Stat } from '@meerkat/client';
import { addPastOptions, inPast } from '../archive/past-words.ts';
import type { PastWords } from '../archive/words.ts';
import type { Column } from '../output/column.ts';
import type { Paint } from '../output/paint.ts';
import { byteCount, count, statColumnsOf } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import type { Context } from '../run/context.ts';
import type { CommandExit } from '../run/exit-code.ts';
import { parseWholeNumber } from '../run/whole-number.ts';
import { expandPaths } from '../tree/path-arguments.ts';
import { Survey } from '../tree/survey.ts';
import { type Drawn, TreeDrawing, type TreeLimits } from '../tree/tree-drawing.ts';
import type { Visited } from '../tree/tree-walk.ts';

interface Options extends PastWords {
  readonly depth?: string;
  readonly max?: string;
  readonly size?: boolean;
  readonly counts?: boolean;
}

/** `tree`: what is below znodes, drawn. */
export const tree: DefineCommand = (command, host) => {
  command
    .argument('[paths...]', 'where to begin; patterns too', [host.isShell ? '.' : '/'])
    .option('-L, --depth <levels>', 'go down so many levels (default: to the leaves)')
    .option('-m, --max <children>', 'draw at most so many children of each znode (default: all)')
    .option('-s, --size', 'the size of the data')
    .option('-c, --counts', 'how many children each znode has');
  addPastOptions(command, host);
  command
    .addHelpText(
      'after',
      examples([
        ['meerkat tree /app', 'everything below /app'],
        ['meerkat tree -L 2 -c', 'two levels from the root, with counts of children'],
        ['meerkat tree -m 5 -s /brokers', 'five children of each, with sizes'],
        ['meerkat tree /app -o ndjson', 'an object a line: path, depth and Stat'],
        ['meerkat tree /app --at "1h ago" --dir /backup/zk', 'as it was an hour ago, of a backup'],
      ]),
    )
    .action((texts: string[], options: Options) =>
      host.run((context) => inPast(context, options, (past) => draw(past, texts, options))),
    );
};

async function draw(context: Context, texts: readonly string[], options: Options): Promise<CommandExit> {
  const { report } = context;
  const limits: TreeLimits = {
    depthMax: options.depth === undefined ? Number.POSITIVE_INFINITY : parseWholeNumber(options.depth, '-L'),
    childrenMax: options.max === undefined ? Number.POSITIVE_INFINITY : parseWholeNumber(options.max, '-m', 1),
  };
  const client = await context.connect();
  const paths = await expandPaths(context, client, texts);
  const survey = new Survey(context, client);
  using progress = context.progress();
  if (!report.isForPeople) {
    const list = await report.list(COLUMNS);
    for await (const visited of survey.walk(paths, progress, limits)) await list.add(visited);
    await list.end();
    return survey.end();
  }
  const drawing = new TreeDrawing<Labelled>(limits, labeller(report.paint, limits, options));
  let ephemeral = 0;
  let bytes = 0;
  const onRefused = (path: string, depth: number): void => {
    progress.clear();
    void report.write(drawing.add({ path, depth, children: [], stat: null }));
  };
  for await (const visited of survey.walk(paths, progress, { ...limits, onRefused })) {
    if (visited.stat.isEphemeral) ephemeral++;
    bytes += visited.stat.dataLength;
    progress.clear();
    await report.write(drawing.add(visited));
  }
  await report.write(drawing.end());
  const ephemerals = ephemeral === 0 ? '' : `, ${count(ephemeral)} of them ephemeral`;
  await report.line(`\n${znodes(survey.znodes)}${ephemerals}, ${byteCount(bytes)} of data`);
  return survey.end();
}

function znodes(number: number): string {
  return number === 1 ? '1 znode' : `${count(number)} znodes`;
}

/** A znode; one that may not be read has no Stat. */
type Labelled = Drawn & { readonly stat: Stat | null };

function labeller(
  paint: Paint,
  { depthMax }: TreeLimits,
  { size, counts }: Options,
): (drawn: Labelled, text: string) => string {
  return ({ depth, children, stat }, text) => {
    if (stat === null) return `${text}  ${paint.dim('(may not be read)')}`;
    const isCut = depth >= depthMax && children.length > 0;
    const marks = [
      ...(stat.isEphemeral ? ['ephemeral'] : []),
      ...(size === true ? [byteCount(stat.dataLength)] : []),
      ...((counts === true && children.length > 0) || isCut ? [childCount(children.length)] : []),
    ];
    const name = stat.numChildren > 0 ? paint.parent(text) : text;
    return marks.length === 0 ? name : `${name}  ${paint.dim(`(${marks.join(', ')})`)}`;
  };
}

function childCount(number: number): string {
  return number === 1 ? '1 child' : `${count(number)} children`;
}

const COLUMNS: readonly Column<Visited>[] = [
  { name: 'path', value: ({ path }) => path },
  { name: 'depth', value: ({ depth }) => depth },
  ...statColumnsOf<Visited>(({ stat }) => stat),
];
