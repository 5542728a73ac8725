import { MEERKAT_VERSION } from '@meerkat/server/version';
import { Command, CommanderError } from 'commander';
import { CATALOG, type CatalogEntry } from './catalog.ts';
import { addServerCommands } from './commands/servers.ts';
import { addConnectionOptions } from './connection/connection-words.ts';
import { HELP_LAYOUT } from './help/layout.ts';
import { tellMistakes } from './help/mistake.ts';
import { addHelpCommand, COMMON_OPTIONS_LINE } from './help/topics.ts';
import { examples } from './run/command.ts';
import { CommandExit } from './run/exit-code.ts';
import { flush, type Io, PROCESS_IO } from './run/io.ts';
import { ProcessHost } from './run/process-host.ts';

/** Everything but the plain form of `meerkat server`. @returns the code to exit with */
export async function parseCommand(args: readonly string[], io: Io = PROCESS_IO): Promise<number> {
  const program = makeProgram();
  const host = new ProcessHost(io, program);
  for (const entry of CATALOG) {
    const command = prepare(program.command(entry.name, { hidden: entry.isHidden === true }), entry);
    // Loading one too many, because a value has its name, costs some milliseconds.
    if (args.includes(entry.name)) (await entry.load())(command, host);
  }
  let serverExitCode: number | null = null;
  addServerCommands(program, (exitCode) => {
    serverExitCode = exitCode;
  });
  addHelpCommand(program);
  let isPipeClosed = false;
  // Help may be read by a pager that is left. Whoever runs a command listens as well, and knows what it means for it.
  const onOutputError = ({ code }: NodeJS.ErrnoException): void => {
    if (code === 'EPIPE') isPipeClosed = true;
  };
  for (const stream of [io.stdout, io.stderr]) stream.on('error', onOutputError);
  try {
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help and version end the parsing too, with 0.
    host.exitCode = error.exitCode === 0 ? CommandExit.ok : CommandExit.invocation;
  }
  if (serverExitCode !== null) return serverExitCode;
  if (!ENDED_EARLY.includes(host.exitCode)) await flushBoth(io);
  // The error of the last write is told in a later turn.
  await new Promise((resolve) => setImmediate(resolve));
  for (const stream of [io.stdout, io.stderr]) stream.off('error', onOutputError);
  return isPipeClosed && host.exitCode === CommandExit.ok ? CommandExit.pipeClosed : host.exitCode;
}

/** Nobody waits for a slow reader then. */
const ENDED_EARLY: readonly number[] = [CommandExit.interrupted, CommandExit.terminated, CommandExit.pipeClosed];

/** The process ends behind this, and takes with it what a pipe has not taken. */
async function flushBoth({ stdout, stderr }: Io): Promise<void> {
  await flush(stdout);
  await flush(stderr);
}

/** The program with the options that all commands share, and none of the commands. */
export function makeProgram(): Command {
  const program = new Command('meerkat');
  tellMistakes(program)
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
    .option('--timeout <time>', 'how long one request may take: 500ms, 10s (default: for ever)');
  addConnectionOptions(program);
  program.addHelpText('after', `${examples(EXAMPLES)}\n\n${HOW_TO_GO_ON}`);
  program.addHelpText('afterAll', ({ command }) => (isOfCatalog(command) ? COMMON_OPTIONS_LINE : ''));
  return program;
}

/** What every command has before it is defined. */
export function prepare(command: Command, entry: CatalogEntry): Command {
  return tellMistakes(command)
    .summary(entry.summary)
    .description(`${entry.summary[0]?.toUpperCase()}${entry.summary.slice(1)}.`)
    .helpGroup(entry.group)
    .exitOverride();
}

function isOfCatalog(command: Command): boolean {
  return CATALOG.some(({ name }) => name === command.name());
}

const EXAMPLES = [
  ['meerkat up 3', 'three servers on this machine, from 127.0.0.1:2181 on'],
  ['meerkat tree /', 'everything that the service has'],
  ['meerkat get /app/config', 'the data of a znode'],
  ['meerkat ls / --server zk1:2181,zk2:2181', 'of another service'],
  ['meerkat shell', 'all of it in one session, with history and completion'],
] as const;

const HOW_TO_GO_ON = `"meerkat <command> --help" tells of one command; "meerkat help options" of what all
take: which service (--server, --profile), as whom (--auth, --sasl, --tls), and
how it is printed (-o json). "meerkat help output" and "meerkat help exit-codes" are
for those who write scripts.`;
