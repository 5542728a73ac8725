import { MEERKAT_VERSION } from '@meerkat/server/version';
import { Command } from 'commander';
import { addConnectionOptions } from './connection/connection-words.ts';
import { HELP_LAYOUT } from './help/layout.ts';
import { explainMistakes } from './help/mistake.ts';
import { COMMON_OPTIONS_LINE } from './help/topics.ts';
import { type CatalogEntry, examples } from './run/command.ts';

/** The program with the options that all commands share, and none of the commands. */
export function makeProgram(catalog: readonly CatalogEntry[]): Command {
  const program = new Command('meerkat');
  explainMistakes(program)
    .description('Meerkat: a coordination service that speaks ZooKeeper, and its tools.')
    .usage('<command> [arguments] [options]')
    .version(MEERKAT_VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .configureHelp(HELP_LAYOUT)
    .exitOverride()
    .optionsGroup('Output:')
    .option('-o, --output <format>', 'table, json, ndjson or fields (MEERKAT_OUTPUT; default table)')
    .option('-q, --quiet', 'no notes and no progress on standard error')
    .option('--no-color', 'no colours (NO_COLOR)')
    .option('--timeout <time>', 'how long one request may take: 500ms, 10s (default: no limit)');
  addConnectionOptions(program);
  program.addHelpText('after', `${examples(EXAMPLES)}\n\n${HOW_TO_GO_ON}`);
  program.addHelpText('afterAll', ({ command }) =>
    catalog.some(({ name }) => name === command.name()) ? COMMON_OPTIONS_LINE : '',
  );
  return program;
}

/** What every command has before it is defined. */
export function prepare(command: Command, entry: CatalogEntry): Command {
  return explainMistakes(command)
    .summary(entry.summary)
    .description(`${entry.summary[0]?.toUpperCase()}${entry.summary.slice(1)}.`)
    .helpGroup(entry.group)
    .exitOverride();
}

const EXAMPLES = [
  ['meerkat up 3', 'three servers on this machine, from 127.0.0.1:2181 on'],
  ['meerkat tree /', 'everything that the service has'],
  ['meerkat get /app/config', 'the data of a znode'],
  ['meerkat ls / --server zk1:2181,zk2:2181', 'of another service'],
  ['meerkat shell', 'all of it in one session, with history and completion'],
] as const;

const HOW_TO_GO_ON = `"meerkat <command> --help" explains one command; "meerkat help options" of what all
take: which service (--server, --profile), as whom (--auth, --sasl, --tls), and
how it is printed (-o json). "meerkat help output" and "meerkat help exit-codes" are
for those who write scripts.`;
