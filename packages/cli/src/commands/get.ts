import type { Client, Stat, Znode } from '@meerkat/client';
import { addPastOptions, inPast } from '../archive/past-words.ts';
import type { PastWords } from '../archive/words.ts';
import type { Column } from '../output/column.ts';
import { STAT_COLUMNS } from '../output/stat-columns.ts';
import { statPageColumns } from '../output/stat-page.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import type { CommandExit } from '../run/exit-code.ts';
import { eachZnode } from '../tree/each-znode.ts';
import { expandPaths, isOnePath } from '../tree/path-arguments.ts';
import {
  formatValue,
  jsonFrom,
  parseValueForm,
  showValue,
  textFrom,
  VALUE_FORMS,
  type ValueForm,
} from '../value/show-value.ts';
import { type ValueRecord, valueRecord } from '../value/value-record.ts';

interface Options extends PastWords {
  readonly stat?: boolean;
  readonly as?: string;
  readonly base64?: boolean;
  readonly hexdump?: boolean;
  readonly watch?: boolean;
}

/** `get`: the data of znodes. */
export const get: DefineCommand = (command, host) => {
  command
    .argument('<paths...>', 'znodes, or patterns such as "/app/*/config"')
    .option('-s, --stat', 'the Stat of each behind its data')
    .option('--as <form>', `how data are shown: ${VALUE_FORMS.join(', ')} (default auto)`)
    .option('-b, --base64', '--as base64')
    .option('-x, --hexdump', '--as hexdump');
  if (host.isShell) command.option('-w, --watch', 'report when the data change, once');
  addPastOptions(command, host);
  command
    .addHelpText(
      'after',
      `\n${FORMS_HELP}\n${examples([
        ['meerkat get /app/config', 'the data; JSON is laid out and gzip unpacked on a terminal'],
        ['meerkat get /app/logo > logo.png', 'the exact bytes into a file'],
        ["meerkat get '/app/*/config'", 'of several, each under its path'],
        ['meerkat get -s /app/config', 'with version, times and owner'],
        ['meerkat get /app/config --as json | jq .port', 'JSON for another program, unpacked'],
        ['meerkat get /app/config -o json', 'an object with path, data, encoding and stat'],
        ['meerkat get /app/config --at 0x10000a5b3', 'as it was behind a txn'],
      ])}`,
    )
    .action((texts: string[], options: Options) =>
      host.run((context) => inPast(context, options, (past) => printData(past, texts, options))),
    );
};

const FORMS_HELP = `By default a terminal gets what is best to read, and a pipe or file the exact
bytes of a single znode. raw is exact always; text and json unpack gzip and
refuse other data.`;

interface Found {
  readonly path: string;
  readonly data: Uint8Array;
  readonly stat: Stat;
}

async function printData(context: Context, texts: readonly string[], options: Options): Promise<CommandExit> {
  const { report } = context;
  const form = formOf(options);
  if (!report.isForPeople) return printRecords(context, texts, form, options);
  const client = await context.connect();
  const paths = await expandPaths(context, client, texts);
  if (isOnePath(texts) && options.stat !== true) {
    const read = reader(context, client, options);
    return eachZnode(context, paths, read, ({ path, data }) => {
      if (data.length === 0 && report.isTerminal) context.note(`${path} has no data`);
      // In the shell something follows always: the next prompt, or what the next line of a script prints.
      return naming(path, () =>
        context.isShell ? report.write(formatValue(data, form)) : showValue(data, form, report),
      );
    });
  }
  const read = async (path: string): Promise<Found & { readonly shown: string | Uint8Array }> => {
    const found = await reader(context, client, options)(path);
    return { ...found, shown: naming(path, () => formatValue(found.data, form)) };
  };
  // Nothing is put between exact bytes, unless the Stat was asked for.
  const hasHeaders = !isOnePath(texts) && form !== 'raw';
  const columns = statPageColumns(Date.now());
  let isFirst = true;
  return eachZnode(context, paths, read, async ({ path, stat, shown }) => {
    if (hasHeaders) await report.line(`${isFirst ? '' : '\n'}${report.paint.bold(`${path}:`)}`);
    isFirst = false;
    await report.write(shown);
    if (options.stat === true) await report.one(columns, stat);
  });
}

/** @returns reads one znode */
function reader(context: Context, client: Client, options: Options): (path: string) => Promise<Found> {
  const get = async (path: string): Promise<Znode> => {
    if (options.watch !== true) return client.get(path, context.call);
    const { data, stat, changed } = await client.get(path, { ...context.call, watch: true });
    context.leaveWatch(changed);
    return { data, stat };
  };
  return async (path) => ({ path, ...(await get(path)) });
}

/** A failure that says what the data are not says whose data they are as well. */
function naming<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    throw new CommandFailure(error.exitCode, `${path}: ${error.message}`, error.cause);
  }
}

/* ------------------------------------------------------------------------------------------- for programs ---- */

type FoundRecord = Found & { readonly record: ValueRecord };

async function printRecords(
  context: Context,
  texts: readonly string[],
  form: ValueForm,
  options: Options,
): Promise<CommandExit> {
  const { report } = context;
  const makeRecord = recordMaker(form);
  const client = await context.connect();
  const paths = await expandPaths(context, client, texts);
  const readOne = reader(context, client, options);
  const read = async (path: string): Promise<FoundRecord> => {
    const found = await readOne(path);
    return { ...found, record: naming(path, () => makeRecord(found.data)) };
  };
  const columns = report.format === 'fields' ? [...RECORD_COLUMNS, ...FLAT_STAT] : [...RECORD_COLUMNS, NESTED_STAT];
  if (isOnePath(texts)) return eachZnode(context, paths, read, (found) => report.one(columns, found));
  const list = await report.list(columns);
  const exitCode = await eachZnode(context, paths, read, (found) => list.add(found));
  await list.end();
  return exitCode;
}

function recordMaker(form: ValueForm): (data: Uint8Array) => ValueRecord {
  switch (form) {
    case 'auto':
    case 'raw':
      return valueRecord;
    case 'base64':
      return (data) => ({ data: Buffer.from(data).toString('base64'), encoding: 'base64' });
    case 'text':
    case 'json':
      return (data) => ({ data: form === 'text' ? textFrom(data) : jsonFrom(data), encoding: 'utf8' });
    case 'hex':
    case 'hexdump':
      throw new InvocationFailure(`--as ${form} is for people; -o json, ndjson and fields have text or base64`);
  }
}

const RECORD_COLUMNS: readonly Column<FoundRecord>[] = [
  { name: 'path', value: ({ path }) => path },
  { name: 'data', value: ({ record }) => record.data },
  { name: 'encoding', value: ({ record }) => record.encoding },
];

const NESTED_STAT: Column<FoundRecord> = {
  name: 'stat',
  value: ({ stat }) => Object.fromEntries(STAT_COLUMNS.map(({ name, value }) => [name, value(stat)])),
};

const FLAT_STAT: readonly Column<FoundRecord>[] = STAT_COLUMNS.map(({ name, value }) => ({
  name,
  value: ({ stat }) => value(stat),
}));

function formOf({ as, base64, hexdump }: Options): ValueForm {
  const asked: readonly ValueForm[] = [
    ...(as === undefined ? [] : [parseValueForm(as, '--as')]),
    ...(base64 === true ? ['base64' as const] : []),
    ...(hexdump === true ? ['hexdump' as const] : []),
  ];
  if (asked.length > 1) throw new InvocationFailure('--as, -b and -x say how data are shown: give one of them');
  return asked[0] ?? 'auto';
}
