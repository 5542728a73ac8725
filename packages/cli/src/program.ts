import { MEERKAT_VERSION } from '@meerkat/server';
import { Command, CommanderError } from 'commander';
import { serve } from './commands/server.ts';
import { type UpWords, up } from './commands/up.ts';
import { COMMANDS_HELP } from './up/command.ts';

/** Everything but the plain form of `meerkat server`: help, version, and what is wrong with the rest. */
export async function parseCommand(args: readonly string[]): Promise<number> {
  let exitCode = 0;
  const program = new Command('meerkat')
    .description('A coordination service that speaks ZooKeeper')
    .version(MEERKAT_VERSION)
    .showHelpAfterError('(try "meerkat --help")')
    .exitOverride();
  program
    .command('server')
    .description('run one server in the foreground')
    .argument('[arguments...]', 'zoo.cfg, or <port> <dataDir> [tickTime] [maxClientCnxns]; nothing for a trial server')
    .showHelpAfterError('(try "meerkat server --help")')
    .exitOverride()
    .addHelpText('after', EXAMPLES)
    .action(async (words: string[]) => {
      exitCode = await serve(words);
    });
  program
    .command('up')
    .description('run an ensemble on this machine, for development')
    .argument('[servers]', 'how many servers', '3')
    .option('--dir <directory>', 'where the servers have their data', 'meerkat-data/up')
    .option('--port <port>', 'the client port of the first server; the others have the next ones', '2181')
    .option('--tick-time <ms>', 'milliseconds of a tick: a silent server is given up after five', '500')
    .showHelpAfterError('(try "meerkat up --help")')
    .exitOverride()
    .addHelpText('after', `\nWhile it runs, it reads ${COMMANDS_HELP}`)
    .action(async (servers: string, options: Omit<UpWords, 'servers'>) => {
      exitCode = await up({ ...options, servers });
    });
  program.addHelpText('after', EXAMPLES);
  try {
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help and version end the parsing too, with 0. A bad command line is exit code 2, as ZooKeeper has it.
    return error.exitCode === 0 ? 0 : 2;
  }
  return exitCode;
}

const EXAMPLES = `
Examples:
  meerkat server                     on 127.0.0.1:2181, data in ./meerkat-data
  meerkat server conf/zoo.cfg        as a ZooKeeper configuration file says
  meerkat server 2181 /var/lib/data  on all addresses, as Apache's server takes it
  meerkat up 3                       three servers on this machine, from 127.0.0.1:2181 on

Environment:
  MEERKAT_LOG=json                   log lines as JSON
  MEERKAT_LOG_LEVEL=debug            debug, info (default), warn or error`;
