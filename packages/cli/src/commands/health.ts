import { findProblems, type HealthFinding, readStates } from '../monitoring/server-state.ts';
import type { Column } from '../output/column.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { ANSWER_MS } from './status.ts';

/** `health`: whether all is well, for people and for scripts. */
export const health: DefineCommand = (command, host) => {
  command
    .addHelpText(
      'after',
      `\nExit code 0 when every server serves, one of them leads, and none is far behind or slow; 1 when not; 3 when none answers.\n${examples(
        [
          ['meerkat health --server zk1,zk2,zk3', 'a line for each server, and one for each thing that is wrong'],
          ['meerkat health --profile prod || page-somebody', 'in a script'],
        ],
      )}`,
    )
    .action(() => host.run(run));
};

async function run(context: Context): Promise<CommandExit> {
  const { report, timeoutMs = ANSWER_MS } = context;
  const states = await readStates(await context.servers(), timeoutMs, context.signal);
  const findings = findProblems(states);
  const list = await report.list(columnsFor(context));
  for (const finding of findings) await list.add(finding);
  await list.end();
  if (states.every(({ role }) => role === null)) return CommandExit.unreachable;
  return findings.every(({ isOk }) => isOk) ? CommandExit.ok : CommandExit.no;
}

function columnsFor({ report: { paint } }: Context): readonly Column<HealthFinding>[] {
  return [
    { name: 'server', value: ({ server }) => server },
    { name: 'ok', value: ({ isOk }) => isOk, text: ({ isOk }) => (isOk ? paint.good('ok') : paint.bad('wrong')) },
    { name: 'finding', value: ({ text }) => text },
  ];
}
