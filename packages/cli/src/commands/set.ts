import { type Client, NodeExistsError, NoNodeError, type Stat } from '@meerkat/client';
import type { Column } from '../output/column.ts';
import { STAT_COLUMNS, statColumnsOf } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { parseVersion } from '../value/expected-version.ts';
import { addValueOptions, readValue, type ValueWords } from '../value/value-input.ts';

interface Options extends ValueWords {
  readonly stat?: boolean;
  readonly ifVersion?: string;
  readonly create?: boolean;
  readonly parents?: boolean;
}

/** `set`: replaces the data of a znode. */
export const set: DefineCommand = (command, host) => {
  command
    .argument('<path>', 'the znode')
    .argument('[value]', 'its new data, as text; - reads standard input')
    .option('-v, --if-version <n>', 'only if the znode has this version; exit code 13 if it has another')
    .option('--create', 'create the znode if it is missing')
    .option('-p, --parents', 'with --create: make missing parents too')
    .option('-s, --stat', 'print the Stat it has now');
  addValueOptions(command)
    .addHelpText(
      'after',
      examples([
        ['meerkat set /app/config off', 'the text "off"'],
        ['meerkat set /app/config --file config.json --json', 'a file, if it is JSON'],
        ['pg_dump app | meerkat set /app/dump - --gzip', 'what a command prints, packed'],
        ['meerkat set /app/config on --if-version 3', 'unless it was changed since'],
        ["meerkat set /app/flags '' --create", 'empty, new or not'],
      ]),
    )
    .action((path: string, value: string | undefined, options: Options) =>
      host.run((context) => run(context, path, { ...options, value })),
    );
};

async function run(context: Context, text: string, words: Options): Promise<CommandExit> {
  const { report } = context;
  const path = context.resolve(text);
  const version = parseVersion(words.ifVersion);
  if (words.create === true && version !== undefined) {
    throw new InvocationFailure('--create and --if-version exclude each other: a znode that is missing has no version');
  }
  if (words.parents === true && words.create !== true) throw new InvocationFailure('--parents is for --create');
  const data = await readValue(context, words);
  if (data === null) {
    throw new InvocationFailure(`there is no value for ${path}: give it as text, by --file, or - for standard input`);
  }
  const client = await context.connect();
  const stat =
    words.create === true
      ? await setOrCreate(context, client, path, data, words.parents === true)
      : await client.set(path, data, { ...context.call, version });
  if (!report.isForPeople) await report.one(COLUMNS, { path, stat });
  else if (words.stat === true) await report.one(STAT_COLUMNS, stat);
  return CommandExit.ok;
}

/** It may be created or deleted between the attempts: then the other one is tried again. */
async function setOrCreate(
  { call }: Context,
  client: Client,
  path: string,
  data: Uint8Array,
  hasParents: boolean,
): Promise<Stat> {
  for (;;) {
    try {
      return await client.set(path, data, call);
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
    }
    try {
      return (await (hasParents ? client.createParents(path, data, call) : client.create(path, data, call))).stat;
    } catch (error) {
      if (!(error instanceof NodeExistsError)) throw error;
    }
  }
}

interface WasSet {
  readonly path: string;
  readonly stat: Stat;
}

const COLUMNS: readonly Column<WasSet>[] = [
  { name: 'path', value: ({ path }) => path },
  ...statColumnsOf<WasSet>(({ stat }) => stat),
];
