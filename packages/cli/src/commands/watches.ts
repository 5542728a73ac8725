import { type Held, parseHeld } from '@meerkat/console/monitoring';
import { askAll } from '../monitoring/ask-all.ts';
import type { Column } from '../output/column.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { ANSWER_MS } from './status.ts';

interface Options {
  readonly session?: string;
}

/** `watches`: which session watches which znodes. */
export const watches: DefineCommand = (command, host) => {
  command
    .option('--session <id>', 'those of one session, as 0x100001b82e40000')
    .addHelpText(
      'after',
      `\nServers have to allow wchc. Each server knows the watches of its own clients: name all of them. Watches for children alone are not listed.\n${examples(
        [
          ['meerkat watches --server zk1,zk2,zk3', 'which session watches which znodes'],
          ['meerkat watches --session 0x100001b82e40000', 'of one session'],
        ],
      )}`,
    )
    .action((options: Options) => host.run((context) => run(context, options)));
};

async function run(context: Context, { session }: Options): Promise<CommandExit> {
  const all = await askAll(context, 'wchc', context.timeoutMs ?? ANSWER_MS, parseHeld);
  const found = all.filter((item) => session === undefined || item.session === session);
  const list = await context.report.list(COLUMNS);
  for (const item of found.toSorted((a, b) => (a.path < b.path ? -1 : 1))) await list.add(item);
  await list.end();
  return CommandExit.ok;
}

const COLUMNS: readonly Column<Held>[] = [
  { name: 'path', value: ({ path }) => path },
  { name: 'session', value: (item) => item.session },
  { name: 'server', value: ({ server }) => server },
];
