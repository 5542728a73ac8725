import { MEERKAT_VERSION } from '@meerkat/server/version';
import { Command, CommanderError } from 'commander';
import { CATALOG, type CatalogEntry, COMMAND_GROUPS } from './catalog.ts';
import { addServerCommands } from './commands/servers.ts';
import { addConnectionOptions } from './connection/connection-words.ts';
import { examples } from './run/command.ts';
import { CommandExit } from './run/exit-code.ts';
import { PROCESS_IO } from './run/io.ts';
import { ProcessHost } from './run/process-host.ts';

/** Everything but the plain form of `meerkat server`. @returns the code to exit with */
export async function parseCommand(args: readonly string[]): Promise<number> {
  const program = makeProgram();
  const host = new ProcessHost(PROCESS_IO, program);
  const chosen = chosenEntry(args);
  for (const entry of CATALOG) {
    const command = prepare(program.command(entry.name), entry);
    if (entry === chosen) (await entry.load())(command, host);
  }
  let serverExitCode: number | null = null;
  addServerCommands(program, (exitCode) => {
    serverExitCode = exitCode;
  });
  try {
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help and version end the parsing too, with 0.
    return error.exitCode === 0 ? CommandExit.ok : CommandExit.invocation;
  }
  return serverExitCode ?? host.exitCode;
}

/** The program with the options that all commands share, and none of the commands. */
export function makeProgram(): Command {
  const program = new Command('meerkat')
    .description('A coordination service that speaks ZooKeeper, and what people do with one')
    .usage('<command> [options] [arguments]')
    .version(MEERKAT_VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .configureHelp({ showGlobalOptions: true, sortOptions: false })
    .showHelpAfterError('(try "meerkat --help")')
    .exitOverride()
    .optionsGroup('Output:')
    .option('-o, --output <format>', 'table, json, ndjson or fields (MEERKAT_OUTPUT; default table)')
    .option('-q, --quiet', 'no notes and no progress on standard error')
    .option('--no-color', 'no colours (NO_COLOR)')
    .option('--timeout <time>', 'how long one request may take: 500ms, 10s');
  addConnectionOptions(program);
  for (const group of COMMAND_GROUPS) program.commandsGroup(group);
  program.addHelpText('after', examples(EXAMPLES));
  return program;
}

/** The command that the words name: the first one that is no option and no option's value. */
function chosenEntry(args: readonly string[]): CatalogEntry | null {
  // Loading one too many costs some milliseconds, and no word of the command line is misread by it.
  for (const word of args) {
    const entry = CATALOG.find(({ name }) => name === word);
    if (entry !== undefined) return entry;
  }
  return null;
}

/** What every command has before it is defined. */
export function prepare(command: Command, entry: CatalogEntry): Command {
  return command
    .summary(entry.summary)
    .description(`${entry.summary[0]?.toUpperCase()}${entry.summary.slice(1)}.`)
    .helpGroup(entry.group)
    .showHelpAfterError(`(try "meerkat ${entry.name} --help")`)
    .exitOverride();
}

const EXAMPLES = [
  ['meerkat up 3', 'three servers on this machine, from 127.0.0.1:2181 on'],
  ['meerkat ls /', 'the children of the root'],
  ['meerkat server conf/zoo.cfg', 'a server as a ZooKeeper configuration file says'],
] as const;
