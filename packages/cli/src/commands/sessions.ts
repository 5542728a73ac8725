import { type ConnectionLine, parseConnections } from '@meerkat/console/monitoring';
import { askAll } from '../monitoring/ask-all.ts';
import { age } from '../output/age.ts';
import type { Column } from '../output/column.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { ANSWER_MS } from './status.ts';

/** `sessions`: who is connected to which server. */
export const sessions: DefineCommand = (command, host) => {
  command
    .addHelpText(
      'after',
      `\nServers have to allow cons (4lw.commands.whitelist).\n${examples([
        ['meerkat sessions --server zk1,zk2,zk3', 'every session that is connected'],
        ['meerkat sessions -o json', 'for a script'],
      ])}`,
    )
    .action(() => host.run(run));
};

async function run(context: Context): Promise<CommandExit> {
  const found = await askAll(context, 'cons', context.timeoutMs ?? ANSWER_MS, parseConnections);
  const list = await context.report.list(COLUMNS);
  for (const session of found.toSorted((a, b) => a.establishedMs - b.establishedMs)) await list.add(session);
  await list.end();
  return CommandExit.ok;
}

const COLUMNS: readonly Column<ConnectionLine>[] = [
  { name: 'session', value: ({ session }) => session },
  { name: 'client', value: ({ client }) => client },
  { name: 'server', value: ({ server }) => server },
  {
    name: 'connected',
    value: ({ establishedMs }) => establishedMs,
    text: ({ establishedMs }) => age(establishedMs, Date.now()),
  },
  { name: 'timeoutMs', value: ({ timeoutMs }) => timeoutMs, align: 'right' },
  { name: 'lastOperation', value: ({ operation }) => operation },
  { name: 'latencyAvgMs', value: ({ latencyAverageMs }) => latencyAverageMs, align: 'right' },
  { name: 'latencyMaxMs', value: ({ latencyMaxMs }) => latencyMaxMs, align: 'right' },
];
