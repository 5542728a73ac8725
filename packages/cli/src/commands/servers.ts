import type { Command } from 'commander';
import { explainMistakes } from '../help/mistake.ts';
import { examples } from '../run/command.ts';
import { COMMANDS_HELP } from '../up/command.ts';
import type { UpWords } from './up.ts';

/** The commands that run servers: they have exit codes of their own, and no connection. */
export function addServerCommands(program: Command, onEnd: (exitCode: number) => void): void {
  explainMistakes(program.command('server'))
    .summary('run one server in the foreground')
    .description('Run one server in the foreground.')
    .helpGroup('Servers:')
    .argument('[arguments...]', 'zoo.cfg, or <port> <dataDir> [tickTime] [maxClientCnxns]; nothing for a trial server')
    .exitOverride()
    .addHelpText('after', SERVER_EXAMPLES)
    .action(async (words: string[]) => {
      const { serve } = await import('./server.ts');
      onEnd(await serve(words));
    });
  explainMistakes(program.command('up'))
    .summary('run an ensemble on this machine, for development')
    .description('Run an ensemble on this machine, for development.')
    .helpGroup('Servers:')
    .argument('[servers]', 'how many servers', '3')
    .option('--dir <directory>', 'where the servers have their data', 'meerkat-data/up')
    .option('--port <port>', 'the client port of the first server; the others have the next ones', '2181')
    .option('--tls', 'TLS for clients and between servers, with certificates made at the start')
    .option('--tick-time <ms>', 'milliseconds of a tick: a silent server is dropped after five', '500')
    .option('--set <key=value>', 'a line of zoo.cfg for all servers; may be repeated', collect, [])
    .exitOverride()
    .addHelpText('after', `${UP_EXAMPLES}\n\nWhile it runs, it reads ${COMMANDS_HELP}`)
    .action(async (servers: string, _options: unknown, command: Command) => {
      const { up } = await import('./up.ts');
      // --tls, wherever it stands, is an option of all commands too.
      onEnd(await up({ ...command.optsWithGlobals<Omit<UpWords, 'servers'>>(), servers }));
    });
}

function collect(value: string, earlier: readonly string[]): readonly string[] {
  return [...earlier, value];
}

const UP_EXAMPLES = examples([
  ['meerkat up', 'three servers, from 127.0.0.1:2181 on, data in ./meerkat-data/up'],
  ['meerkat up 5 --port 3181', 'five, on other ports'],
  ['meerkat up --tls', 'with TLS for clients and between servers'],
  ['meerkat up --set extendedTypesEnabled=true', 'with TTL znodes'],
]);

const SERVER_EXAMPLES = `${examples([
  ['meerkat server', 'on 127.0.0.1:2181, data in ./meerkat-data'],
  ['meerkat server conf/zoo.cfg', 'as a ZooKeeper configuration file says'],
  ['meerkat server 2181 /var/lib/data', "on all addresses, as Apache's server takes it"],
])}

Environment:
  MEERKAT_LOG=json                   log lines as JSON
  MEERKAT_LOG_LEVEL=debug            debug, info (default), warn or error`;
