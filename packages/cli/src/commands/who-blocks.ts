import { type Client, NoNodeError, type Stat } from '@meerkat/client';
import { askWord, NoAnswerError } from '../monitoring/four-letter-word.ts';
import { parseConnections } from '../monitoring/holders.ts';
import { age } from '../output/age.ts';
import type { Column } from '../output/column.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { ANSWER_MS } from './status.ts';

/** `who-blocks`: the line before a lock, an election or a queue: its sequential znodes in their order. */
export const whoBlocks: DefineCommand = (command, host) => {
  command
    .argument('<path>', 'the znode of a lock or an election, below which contenders have their znodes')
    .addHelpText(
      'after',
      `\nThe first one holds it. Of read-write locks and semaphores several of the first may. Where clients are is known of
servers that allow cons. Exit code 1 when nobody stands there.\n${examples([
        ['meerkat who-blocks /locks/job', 'who holds it since when, and who waits'],
        ['meerkat who-blocks /locks/job -o json', 'for a script'],
      ])}`,
    )
    .action((path: string) => host.run((context) => run(context, path)));
};

interface Contender {
  readonly name: string;
  readonly sequence: number;
  readonly stat: Stat;
  readonly data: string;
  client: string | null;
}

async function run(context: Context, text: string): Promise<CommandExit> {
  const client = await context.connect();
  const path = context.resolve(text);
  const line = await readLine(context, client, path);
  const clients = await readClients(context);
  for (const contender of line) contender.client = clients.get(sessionOf(contender) ?? '') ?? null;
  const list = await context.report.list(columnsFor(line));
  for (const contender of line) await list.add(contender);
  await list.end();
  if (line.length === 0) context.note(`nobody stands at ${path}`);
  return line.length === 0 ? CommandExit.no : CommandExit.ok;
}

async function readLine({ call }: Context, client: Client, path: string): Promise<Contender[]> {
  const { children } = await client.children(path, call);
  const found = await Promise.all(
    children.flatMap((name) => {
      const [, digits] = /(\d{10})$/.exec(name) ?? [];
      if (digits === undefined) return [];
      return [readContender(name, Number(digits))];
    }),
  );
  return found.filter((contender) => contender !== null).toSorted((a, b) => a.sequence - b.sequence);

  async function readContender(name: string, sequence: number): Promise<Contender | null> {
    try {
      const { data, stat } = await client.get(`${path === '/' ? '' : path}/${name}`, call);
      return { name, sequence, stat, data: shown(data), client: null };
    } catch (error) {
      // It has left meanwhile.
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }
}

/** Addresses by session; of those servers that say so. */
async function readClients(context: Context): Promise<ReadonlyMap<string, string>> {
  if (context.isShell) return new Map();
  const servers = await context.servers();
  const found = await Promise.all(
    servers.map(async (server) => {
      try {
        return parseConnections(
          server.name,
          await askWord(server, 'cons', context.timeoutMs ?? ANSWER_MS, context.signal),
        );
      } catch (error) {
        if (error instanceof NoAnswerError) return [];
        throw error;
      }
    }),
  );
  return new Map(found.flat().map(({ session, client }) => [session, client]));
}

function sessionOf({ stat }: Contender): string | null {
  const owner = BigInt.asUintN(64, stat.ephemeralOwner);
  return owner === 0n ? null : `0x${owner.toString(16)}`;
}

/** What contenders write into their znodes is text mostly: a host, a process. */
function shown(data: Uint8Array | null): string {
  const text = new TextDecoder().decode(data ?? new Uint8Array());
  return text.replace(/\p{Cc}+/gu, ' ').slice(0, 60);
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
