import type { TreeEntry } from '../copy/tree-entry.ts';
import { addSelectionOptions, type SelectionWords, selectFromService, selectionOf } from '../copy/tree-selection.ts';
import type { Column } from '../output/column.ts';
import { count, hex } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { DirectoryWriter } from '../transfer/export-directory.ts';
import { type ExportOrigin, endLine, headerLine, znodeLine } from '../transfer/export-line.ts';
import { LineWriter } from '../transfer/line-writer.ts';

interface Options extends SelectionWords {
  readonly gzip?: boolean;
  readonly dir?: string;
  readonly overwrite?: boolean;
  /** --no-stat makes it false. */
  readonly stat?: boolean;
}

/** `export`: a tree to a file, standard output or a directory. Called so because `export` is a word of the language. */
export const exportTree: DefineCommand = (command, host) => {
  command
    .argument('<path>', 'the top of the tree: /path, zk://host:port/path or profile:/path')
    .argument('[file]', 'where to; "-" is standard output', '-')
    .option('-z, --gzip', 'pack it; a file that is called .gz is packed anyway')
    .option('--dir <directory>', 'write directories and files instead: a new directory, byte by byte what znodes hold')
    .option('--overwrite', 'replace the file when it is there');
  addSelectionOptions(command, 'leave ACLs out')
    .option('--no-stat', 'leave out what only this service has (zxids, times, versions): equal trees make equal files')
    .addHelpText(
      'after',
      examples([
        ['meerkat export /app app.ndjson', 'a znode a line, with ACLs and Stats'],
        ['meerkat export / backup.ndjson.gz -z', 'everything but /zookeeper, packed'],
        ['meerkat export prod:/app | meerkat import - staging:/app', 'through a pipe'],
        ['meerkat export /app --dir app', 'a directory to look at, or to edit'],
        ['meerkat export /app --no-stat app.ndjson', 'a file to keep under version control'],
      ]),
    )
    .action((path: string, file: string, options: Options) =>
      host.run((context) => exportTo(context, path, file, options)),
    );
};

interface Exported {
  readonly source: string;
  readonly target: string;
  readonly znodes: number;
  readonly zxids: readonly [bigint, bigint];
}

const COLUMNS: readonly Column<Exported>[] = [
  { name: 'source', value: ({ source }) => source },
  { name: 'target', value: ({ target }) => target },
  { name: 'znodes', value: ({ znodes }) => znodes },
  { name: 'zxid', value: ({ zxids }) => hex(zxids[0]) },
  { name: 'endZxid', value: ({ zxids }) => hex(zxids[1]) },
];

async function exportTo(context: Context, text: string, file: string, options: Options): Promise<CommandExit> {
  const { call, io, report } = context;
  const isStandardOutput = file === '-' && options.dir === undefined;
  const isPacked = options.gzip === true || file.endsWith('.gz');
  refuseContradictions(file, options);
  if (isStandardOutput && options.gzip === true && report.isTerminal) {
    throw new InvocationFailure('packed bytes are nothing for a terminal: name a file');
  }
  const { client, path: root, shown } = await context.locate(text);
  const selection = selectionOf(options, true);
  const withStat = options.stat !== false;
  // It asks the leader: changes that were acknowledged by now are in the export.
  await client.sync('/', call);
  const zxid = client.lastZxid;
  const server = client.server;
  const source = server === null ? '' : `${server.host}:${server.port}`;
  const origin: ExportOrigin | null = withStat ? { source, zxid, timeMs: Date.now() } : null;
  const entries = selectFromService(client, root, selection, call, 'fails');
  // A tree that cannot be read leaves no file behind.
  let next: IteratorResult<TreeEntry, void> = await entries.next();
  const target = options.dir ?? (isStandardOutput ? null : file);
  await using writer =
    options.dir === undefined
      ? new LineWriter(io, {
          path: target,
          isPacked,
          overwrites: options.overwrite === true,
          signal: context.signal,
        })
      : null;
  const directory =
    options.dir === undefined ? null : new DirectoryWriter(options.dir, root, origin, selection.withAcl);
  using progress = context.progress();
  let znodes = 0;
  try {
    await writer?.add(headerLine(root, origin));
    for (; next.done !== true; next = await entries.next()) {
      directory?.add(next.value);
      await writer?.add(znodeLine(next.value, withStat));
      znodes++;
      progress.update(() => `exported ${count(znodes)} znodes`);
    }
    const endZxid = withStat ? client.lastZxid : null;
    directory?.end(endZxid);
    await writer?.add(endLine(znodes, endZxid));
    await writer?.end();
  } catch (error) {
    const rest = directory === null ? 'nothing is kept of them' : `${options.dir} is not whole`;
    if (!isStandardOutput) context.note(`export: ${count(znodes)} znodes were read; ${rest}`);
    throw error;
  } finally {
    await entries.return();
  }
  if (target === null) return CommandExit.ok;
  const exported: Exported = { source: shown, target, znodes, zxids: [zxid, client.lastZxid] };
  if (report.isForPeople) await report.line(`exported ${count(znodes)} znodes of ${shown} to ${target}`);
  else await report.one(COLUMNS, exported);
  return CommandExit.ok;
}

function refuseContradictions(file: string, { dir, gzip }: Options): void {
  if (dir === undefined) return;
  if (file !== '-') throw new InvocationFailure(`choose one: the file ${file} or the directory ${dir}`);
  if (gzip === true) throw new InvocationFailure('-z packs files, not directories');
}
