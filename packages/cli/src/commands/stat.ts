import { NoNodeError, type Stat } from '@meerkat/client';
import { addPastOptions, inPast } from '../archive/past-words.ts';
import type { PastWords } from '../archive/words.ts';
import type { Column } from '../output/column.ts';
import { STAT_COLUMNS } from '../output/stat-columns.ts';
import { statPageColumns } from '../output/stat-page.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import type { Context } from '../run/context.ts';
import type { CommandExit } from '../run/exit-code.ts';
import { eachZnode } from '../tree/each-znode.ts';
import { expandPaths, isOnePath } from '../tree/path-arguments.ts';

interface Options extends PastWords {
  readonly watch?: boolean;
}

/** `stat`: what the service knows about znodes besides their data. */
export const stat: DefineCommand = (command, host) => {
  command.argument('<paths...>', 'znodes, or patterns such as "/app/*/config"');
  if (host.isShell) command.option('-w, --watch', 'report when one is created, changed or deleted, once');
  addPastOptions(command, host);
  command
    .addHelpText(
      'after',
      examples([
        ['meerkat stat /app', 'versions, times and sizes'],
        ["meerkat stat '/app/*' -o ndjson", 'of each child, an object a line'],
        ['meerkat stat /app -o json | jq .version', 'one field, for a script'],
        ['meerkat stat /app --dir /backup/zk', 'of the newest state of a backup'],
      ]),
    )
    .action((texts: string[], options: Options) =>
      host.run((context) => inPast(context, options, (past) => printStats(past, texts, options))),
    );
};

interface Found {
  readonly path: string;
  readonly stat: Stat;
}

async function printStats(context: Context, texts: readonly string[], options: Options): Promise<CommandExit> {
  const { report } = context;
  const client = await context.connect();
  const paths = await expandPaths(context, client, texts);
  const isOne = isOnePath(texts);
  const read = async (path: string): Promise<Found> => {
    const found = options.watch === true ? await watched(path) : await client.exists(path, context.call);
    if (found === null) throw new NoNodeError({ operation: 'exists', path });
    return { path, stat: found };
  };
  const watched = async (path: string): Promise<Stat | null> => {
    const { stat: found, changed } = await client.exists(path, { ...context.call, watch: true });
    context.leaveWatch(changed);
    return found;
  };
  if (report.isForPeople) {
    const columns = statPageColumns(Date.now());
    let isFirst = true;
    return eachZnode(context, paths, read, async ({ path, stat: found }) => {
      if (!isOne) await report.line(`${isFirst ? '' : '\n'}${report.paint.bold(`${path}:`)}`);
      isFirst = false;
      await report.one(columns, found);
    });
  }
  if (isOne) return eachZnode(context, paths, read, (found) => report.one(COLUMNS, found));
  const list = await report.list(COLUMNS);
  const exitCode = await eachZnode(context, paths, read, (found) => list.add(found));
  await list.end();
  return exitCode;
}

const COLUMNS: readonly Column<Found>[] = [
  { name: 'path', value: ({ path }) => path },
  ...STAT_COLUMNS.map(({ name, value }): Column<Found> => ({ name, value: (found) => value(found.stat) })),
];
