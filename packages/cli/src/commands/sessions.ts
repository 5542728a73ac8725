import { type ConnectionLine, parseConnections } from '@meerkat/console/monitoring';
import type { EndWords } from '../draining/end-session.ts';
import { askAll } from '../monitoring/ask-all.ts';
import { age } from '../output/age.ts';
import type { Column } from '../output/column.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { ANSWER_MS } from './status.ts';

/** `sessions`: who is connected to which server; `sessions end`: ends one of them. */
export const sessions: DefineCommand = (command, host) => {
  command
    .usage('[list]\n       meerkat sessions end <id> [--yes]')
    .argument('[action]', 'list or end; without it, list')
    .argument('[id]', 'end: the session, as the list has it')
    .option('-n, --dry-run', 'end: print what would go with the session, and end nothing')
    .option('-y, --yes', 'end: do not ask')
    .option('--http-port <ports>', 'end: the admin port: one for all servers, or one each with commas (default: 8080)')
    .option('--https', 'end: it speaks TLS: with the --tls options')
    .addHelpText(
      'after',
      `\n${EXPLANATION}\n${examples([
        ['meerkat sessions --server zk1,zk2,zk3', 'every session that is connected'],
        ['meerkat sessions -o json', 'for a script'],
        ['meerkat sessions end 0x1000a3c5f2b0001', 'says what would go with it, and asks'],
      ])}`,
    )
    .action((action: string | undefined, id: string | undefined, words: EndWords) =>
      host.run((context) => run(context, action ?? 'list', id, words)),
    );
};

const EXPLANATION = `Servers have to allow cons (4lw.commands.whitelist) for the list. A session that is ended loses its
ephemerals and watches at once; its client notices when it is told, and may believe until then that it
holds what it held. Ours only, with credentials that have all permissions of the root.`;

async function run(context: Context, action: string, id: string | undefined, words: EndWords): Promise<CommandExit> {
  switch (action) {
    case 'list':
      if (id !== undefined || Object.keys(words).length > 0) {
        throw new InvocationFailure('a session and these options belong to "sessions end"');
      }
      return list(context);
    case 'end':
      if (id === undefined) throw new InvocationFailure('sessions end: expected the id of a session');
      return (await import('../draining/end-session.ts')).endOne(context, id, words);
    default:
      throw new InvocationFailure(`expected list or end, found "${action}"`);
  }
}

async function list(context: Context): Promise<CommandExit> {
  const found = await askAll(context, 'cons', context.timeoutMs ?? ANSWER_MS, parseConnections);
  const listing = await context.report.list(COLUMNS);
  for (const session of found.toSorted((a, b) => a.establishedMs - b.establishedMs)) await listing.add(session);
  await listing.end();
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
