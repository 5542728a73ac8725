import { lagOf, readStates, type ServerState } from '../monitoring/server-state.ts';
import type { Column } from '../output/column.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';

/** Milliseconds for a server that says nothing, unless --timeout says otherwise. */
export const ANSWER_MS = 3000;

/** `status`: a line for each server of the service, ours or Apache's. */
export const status: DefineCommand = (command, host) => {
  command
    .addHelpText(
      'after',
      `\nEvery server of --server is asked srvr, which every server answers.\n${examples([
        ['meerkat status --server zk1,zk2,zk3', 'who leads, who is behind, who is slow'],
        ['meerkat status --profile prod -o json', 'for a script'],
      ])}`,
    )
    .action(() => host.run(run));
};

async function run(context: Context): Promise<CommandExit> {
  const { report, timeoutMs = ANSWER_MS } = context;
  const states = await readStates(await context.servers(), timeoutMs, context.signal);
  const list = await report.list(columnsFor(states, context));
  for (const state of states) await list.add(state);
  await list.end();
  if (states.every(({ role }) => role === null)) return CommandExit.unreachable;
  return states.every(({ problem }) => problem === null) ? CommandExit.ok : CommandExit.no;
}

function columnsFor(states: readonly ServerState[], { report: { paint } }: Context): readonly Column<ServerState>[] {
  return [
    { name: 'server', value: ({ server }) => server.name },
    {
      name: 'role',
      value: ({ role }) => role,
      text: ({ role }) => (role === null ? paint.bad('no answer') : role === 'looking' ? paint.notable(role) : role),
    },
    { name: 'version', value: ({ version }) => version },
    { name: 'zxid', value: ({ zxid }) => (zxid === null ? null : `0x${zxid.toString(16)}`) },
    { name: 'lag', value: (state) => lagOf(state, states), align: 'right' },
    { name: 'latencyAvgMs', value: ({ latencyAverage }) => latencyAverage, align: 'right' },
    { name: 'latencyMaxMs', value: ({ latencyMax }) => latencyMax, align: 'right' },
    { name: 'connections', value: ({ connections }) => connections, align: 'right' },
    { name: 'outstanding', value: ({ outstanding }) => outstanding, align: 'right' },
    { name: 'znodes', value: ({ znodes }) => znodes, align: 'right' },
    { name: 'problem', value: ({ problem }) => problem },
  ];
}
