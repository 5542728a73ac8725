import { type Client, joinPath, NoAuthError, nameOf, type Stat } from '@meerkat/client';
import { addPastOptions, inPast } from '../archive/past-words.ts';
import type { PastWords } from '../archive/words.ts';
import type { Column } from '../output/column.ts';
import { byteCount, localTime, statColumnsOf } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import type { Context } from '../run/context.ts';
import type { CommandExit } from '../run/exit-code.ts';
import { expandPaths } from '../tree/path-arguments.ts';
import { pipelined } from '../tree/pipelined.ts';
import { Survey } from '../tree/survey.ts';

interface Options extends PastWords {
  readonly recursive?: boolean;
  readonly stat?: boolean;
  readonly watch?: boolean;
}

/** `ls`: the children of znodes. */
export const ls: DefineCommand = (command, host) => {
  command
    .argument('[paths...]', 'the parents; patterns too', [host.isShell ? '.' : '/'])
    .option('-R, --recursive', 'everything below as well, one path a line, parents first')
    .option('-s, --stat', 'version, size, children and last change of each');
  if (host.isShell) command.option('-w, --watch', 'report when a child is created or deleted, once');
  addPastOptions(command, host);
  command
    .addHelpText(
      'after',
      examples([
        ['meerkat ls', 'the children of the root'],
        ['meerkat ls -s /brokers', 'with versions and sizes'],
        ["meerkat ls '/brokers/*'", 'what is below each of its children'],
        ['meerkat ls -R /app -o ndjson', 'everything below /app, an object a line'],
        ['meerkat ls -R /app --at 14:05', 'as it was at five past two'],
      ]),
    )
    .action((paths: string[], options: Options) =>
      host.run((context) => inPast(context, options, (past) => list(past, paths, options))),
    );
};

interface Listed {
  readonly path: string;
  /** null when it was not asked for, or the znode may not be read. */
  readonly stat: Stat | null;
}

async function list(context: Context, texts: readonly string[], options: Options): Promise<CommandExit> {
  const { report } = context;
  const client = await context.connect();
  const columns = columnsOf(options);
  const isPlain = report.isForPeople && options.stat !== true;
  const listing = isPlain ? null : await report.list(columns);
  const print = (listed: Listed): Promise<void> | undefined =>
    listing === null ? report.line(shown(listed, options)) : listing.add(listed);
  const paths = await expandPaths(context, client, texts);
  const survey = new Survey(context, client);
  if (options.recursive === true) {
    using progress = context.progress();
    for await (const visited of survey.walk(paths, progress)) {
      progress.clear();
      await print(visited);
    }
  } else {
    for (const [index, path] of paths.entries()) {
      if (report.isForPeople && paths.length > 1) {
        await report.line(`${index === 0 ? '' : '\n'}${report.paint.bold(`${path}:`)}`);
      }
      for await (const listed of childrenBelow(context, client, path, options)) await print(listed);
    }
  }
  await listing?.end();
  return survey.end();
}

async function* childrenBelow(
  context: Context,
  client: Client,
  path: string,
  options: Options,
): AsyncGenerator<Listed> {
  const { call } = context;
  const names = await childrenOf(context, client, path, options);
  const paths = names.toSorted().map((name) => joinPath(path, name));
  if (options.stat !== true) {
    for (const child of paths) yield { path: child, stat: null };
    return;
  }
  const look = async (child: string): Promise<Listed | null> => {
    try {
      const stat = await client.exists(child, call);
      return stat === null ? null : { path: child, stat };
    } catch (error) {
      // Newer servers hide the Stat without READ permission; the name is known from the parent.
      if (error instanceof NoAuthError) return { path: child, stat: null };
      throw error;
    }
  };
  for await (const listed of pipelined(paths, look)) if (listed !== null) yield listed;
}

async function childrenOf(
  context: Context,
  client: Client,
  path: string,
  options: Options,
): Promise<readonly string[]> {
  if (options.watch !== true) return (await client.children(path, context.call)).children;
  const { children, changed } = await client.children(path, { ...context.call, watch: true });
  context.leaveWatch(changed);
  return children;
}

function shown({ path }: Listed, options: Options): string {
  return options.recursive === true ? path : nameOf(path);
}

function columnsOf(options: Options): readonly Column<Listed>[] {
  const isRecursive = options.recursive === true;
  const place: readonly Column<Listed>[] = [
    { name: 'path', value: ({ path }) => path, ...(isRecursive ? {} : { only: 'data' }) },
    { name: 'name', value: ({ path }) => nameOf(path), ...(isRecursive ? { only: 'data' } : {}) },
  ];
  if (options.stat !== true) return place;
  const data = statColumnsOf<Listed>(({ stat }) => stat).map((column) => ({ ...column, only: 'data' as const }));
  return [...place, ...PEOPLES_STAT, ...data];
}

const PEOPLES_STAT: readonly Column<Listed>[] = [
  peoples('version', 'right', ({ version }) => String(version)),
  peoples('size', 'right', ({ dataLength }) => byteCount(dataLength)),
  peoples('children', 'right', ({ numChildren }) => String(numChildren)),
  peoples('modified', 'left', ({ mtime }) => localTime(mtime)),
  peoples('', 'left', ({ isEphemeral }) => (isEphemeral ? 'ephemeral' : '')),
];

function peoples(name: string, align: 'left' | 'right', text: (stat: Stat) => string): Column<Listed> {
  return { name, align, only: 'table', value: ({ stat }) => (stat === null ? '' : text(stat)) };
}
