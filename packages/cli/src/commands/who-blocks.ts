import { type Contender, readClients, readLine, sessionOf } from '../monitoring/contender-line.ts';
import { age } from '../output/age.ts';
import type { Column } from '../output/column.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';

/** `who-blocks`: the line before a lock, an election or a queue: its sequential znodes in their order. */
export const whoBlocks: DefineCommand = (command, host) => {
  command
    .argument('<path>', 'the znode of a lock or an election, below which contenders have their znodes')
    .addHelpText(
      'after',
      `\nThe first one holds it. Of read-write locks and semaphores several of the first may. Where clients are is known of
servers that allow cons. Exit code 1 when there are no contenders.\n${examples([
        ['meerkat who-blocks /locks/job', 'who holds it since when, and who waits'],
        ['meerkat who-blocks /locks/job -o json', 'for a script'],
      ])}`,
    )
    .action((path: string) => host.run((context) => run(context, path)));
};

async function run(context: Context, text: string): Promise<CommandExit> {
  const client = await context.connect();
  const path = context.resolve(text);
  const line = await readLine(context, client, path);
  const clients = await readClients(context);
  for (const contender of line) contender.client = clients.get(sessionOf(contender) ?? '') ?? null;
  const list = await context.report.list(columnsFor(line));
  for (const contender of line) await list.add(contender);
  await list.end();
  if (line.length === 0) context.note(`no contenders at ${path}`);
  return line.length === 0 ? CommandExit.no : CommandExit.ok;
}

function columnsFor(line: readonly Contender[]): readonly Column<Contender>[] {
  return [
    { name: 'place', value: (contender) => line.indexOf(contender) + 1, align: 'right' },
    { name: 'znode', value: ({ name }) => name },
    {
      name: 'session',
      value: (contender) => sessionOf(contender),
      text: (contender) => sessionOf(contender) ?? 'none: not ephemeral',
    },
    { name: 'client', value: ({ client }) => client },
    {
      name: 'since',
      value: ({ stat }) => stat.ctime,
      text: ({ stat }) => age(stat.ctime, Date.now()),
    },
    { name: 'data', value: ({ data }) => data },
  ];
}
