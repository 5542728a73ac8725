import { adminTls, credentialsOf } from '../archive/source.ts';
import { parsePorts } from '../draining/admin-ports.ts';
import { askAdmin, excessOf } from '../draining/admin-request.ts';
import { readStates } from '../monitoring/server-state.ts';
import type { Column } from '../output/column.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { ANSWER_MS } from './status.ts';

interface Words {
  readonly httpPort: string;
  readonly https?: boolean;
  readonly dryRun?: boolean;
}

interface Shed {
  readonly server: string;
  readonly connections: number;
  readonly closed: number;
}

/** `rebalance`: clients leave the servers that have more than others. */
export const rebalance: DefineCommand = (command, host) => {
  command
    .option('--http-port <ports>', 'the admin port: one for all servers, or one each with commas', '8080')
    .option('--https', 'it speaks TLS: with the --tls options')
    .option('--dry-run', 'say how many would move')
    .addHelpText(
      'after',
      `\nA server with more connections than its share closes as many as it has too many; their clients connect again, with
their sessions, to any server of their connect strings. Needed after a rolling restart. Ours only.\n${examples([
        ['meerkat rebalance --profile prod --dry-run', 'how uneven it is'],
        ['meerkat rebalance --profile prod', 'once; again if chance has been unfair'],
      ])}`,
    )
    .action((words: Words) => host.run((context) => run(context, words)));
};

async function run(context: Context, { httpPort, https = false, dryRun = false }: Words): Promise<CommandExit> {
  const { timeoutMs = ANSWER_MS, signal, report } = context;
  const servers = await context.servers();
  const ports = parsePorts(httpPort);
  const states = await readStates(servers, timeoutMs, signal);
  const away = states.find(({ problem }) => problem !== null);
  if (away !== undefined) {
    const exit = states.every(({ role }) => role === null) ? CommandExit.unreachable : CommandExit.no;
    throw new CommandFailure(exit, `nothing was done: ${away.problem}`);
  }
  // Of each the question was a connection, too.
  const counts = states.map(({ connections }) => Math.max(0, connections - 1));
  const excess = excessOf(counts);
  const credentials = await credentialsOf(context);
  const tls = https ? await adminTls(context) : null;
  const list = await report.list(COLUMNS);
  for (const [i, server] of servers.entries()) {
    const count = excess[i] ?? 0;
    const port = ports[i] ?? ports.at(-1) ?? 8080;
    if (count > 0 && !dryRun)
      await askAdmin(`shed?count=${count}`, { server, port, tls, credentials, timeoutMs, signal });
    await list.add({ server: server.name, connections: counts[i] ?? 0, closed: count });
  }
  await list.end();
  return CommandExit.ok;
}

const COLUMNS: readonly Column<Shed>[] = [
  { name: 'server', value: ({ server }) => server },
  { name: 'connections', value: ({ connections }) => connections, align: 'right' },
  { name: 'closed', value: ({ closed }) => closed, align: 'right' },
];
