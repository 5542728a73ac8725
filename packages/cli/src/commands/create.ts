import {
  type Client,
  type Created,
  type CreateOptions,
  NodeExistsError,
  NoNodeError,
  type Stat,
  UnimplementedError,
} from '@meerkat/client';
import { parseTtl } from '../connection/duration.ts';
import type { Column } from '../output/column.ts';
import { statColumnsOf } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { ACL_SYNTAX, parseAclText } from '../value/acl-text.ts';
import { addValueOptions, readValue, type ValueWords } from '../value/value-input.ts';

interface Options extends ValueWords {
  readonly sequential?: boolean;
  readonly ephemeral?: boolean;
  readonly container?: boolean;
  readonly ttl?: string;
  readonly parents?: boolean;
  readonly acl?: string;
  readonly orSet?: boolean;
  readonly hold?: boolean;
  readonly while?: string;
}

/** `create`: a znode, and on demand its parents. */
export const create: DefineCommand = (command, host) => {
  command
    .argument('<path>', 'the znode; with -s, what comes before the number')
    .argument('[value]', 'its data, as text; - reads standard input; none: empty')
    .argument('[acl]', 'as --acl, for fingers that know zkCli')
    .option('-s, --sequential', 'append a number that no sibling had before')
    .option('-e, --ephemeral', 'it goes with the session: at once, unless --hold or --while')
    .option('-c, --container', 'the service deletes it some time after its last child')
    .option('-t, --ttl <time>', 'the service deletes it when unchanged and childless for so long: 30s, 5000 (ms)')
    .option('-p, --parents', 'make missing parents too, with the same ACL')
    .option('--acl <acl>', `${ACL_SYNTAX} (default open)`)
    .option('--or-set', 'if it exists already, set its data');
  if (!host.isShell) {
    command
      .option('--hold', 'with -e: keep session and znode until Ctrl-C')
      .option('--while <command>', 'with -e: keep them while this line of the shell runs, and exit as it does');
  }
  addValueOptions(command)
    .addHelpText(
      'after',
      examples([
        ['meerkat create /app/config on', 'a znode that holds "on"'],
        ['meerkat create -p /app/a/b', 'with all parents that are missing'],
        ['meerkat create /app/logo --file logo.png', 'the bytes of a file'],
        ['job=$(meerkat create -s /queue/job- "$text")', 'prints /queue/job-0000000007'],
        ["meerkat create -e /live/me --while './serve 80'", 'there as long as the program runs'],
        ['meerkat create /secret x --acl creator --auth digest:ann:pw', 'for ann only'],
      ]),
    )
    .action((path: string, value: string | undefined, acl: string | undefined, options: Options) =>
      host.run((context) => run(context, path, { ...options, value, ...(acl === undefined ? {} : { zkCliAcl: acl }) })),
    );
};

interface Words extends Options {
  readonly zkCliAcl?: string;
}

interface Made {
  readonly path: string;
  readonly stat: Stat;
  readonly isCreated: boolean;
}

async function run(context: Context, text: string, words: Words): Promise<number> {
  checkTogether(words);
  const path = context.resolve(text);
  const aclText = words.acl ?? words.zkCliAcl;
  const shape = {
    mode:
      words.ephemeral === true ? ('ephemeral' as const) : words.container === true ? ('container' as const) : undefined,
    sequential: words.sequential,
    ttlMs: words.ttl === undefined ? undefined : parseTtl(words.ttl),
    acl: aclText === undefined ? undefined : parseAclText(aclText),
    hasParents: words.parents === true,
  };
  const data = (await readValue(context, words)) ?? new Uint8Array(0);
  const client = await context.connect();
  const made = words.orSet === true ? await createOrSet(context, client, path, data, shape) : await createNew();
  await print(context, made);
  if (words.ephemeral !== true || context.isShell) return CommandExit.ok;
  if (words.hold !== true && words.while === undefined) {
    context.note(`${made.path} is ephemeral and goes now, with the session of this command; --hold keeps it`);
    return CommandExit.ok;
  }
  const { holdZnode } = await import('./create-hold.ts');
  return holdZnode(context, client, made.path, words.while ?? null);

  async function createNew(): Promise<Made> {
    return { ...(await send(context, client, path, data, shape)), isCreated: true };
  }
}

type Shape = CreateOptions & { readonly hasParents: boolean };

async function send(context: Context, client: Client, path: string, data: Uint8Array, shape: Shape): Promise<Created> {
  const { hasParents, ...options } = { ...shape, ...context.call };
  try {
    return await (hasParents
      ? client.createParents(path, data, { ...options, parentAcl: shape.acl })
      : client.create(path, data, options));
  } catch (error) {
    if (!(error instanceof UnimplementedError)) throw error;
    const what = shape.ttlMs === undefined ? 'such znodes' : 'znodes with a time to live';
    const fix = shape.ttlMs === undefined ? '' : ' (Apache ZooKeeper: zookeeper.extendedTypesEnabled=true)';
    throw new CommandFailure(
      CommandExit.unsupported,
      `cannot create ${path}: the servers are too old for ${what}, or have them switched off${fix}`,
      error,
    );
  }
}

/** It may be created or deleted between the attempts: then the other one is tried again. */
async function createOrSet(
  context: Context,
  client: Client,
  path: string,
  data: Uint8Array,
  shape: Shape,
): Promise<Made> {
  for (;;) {
    try {
      return { ...(await send(context, client, path, data, shape)), isCreated: true };
    } catch (error) {
      if (!(error instanceof NodeExistsError)) throw error;
    }
    try {
      return { path, stat: await client.set(path, data, context.call), isCreated: false };
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
    }
  }
}

function checkTogether(words: Words): void {
  if (words.acl !== undefined && words.zkCliAcl !== undefined) {
    throw new InvocationFailure('there are two ACLs, an argument and --acl; give one of them');
  }
  const refusals: readonly (readonly [boolean, string])[] = [
    [words.container === true && words.sequential === true, 'a container (-c) cannot be sequential (-s)'],
    [words.container === true && words.ephemeral === true, 'a znode is a container (-c) or ephemeral (-e), not both'],
    [words.container === true && words.ttl !== undefined, 'a znode is a container (-c) or has a --ttl, not both'],
    [words.ephemeral === true && words.ttl !== undefined, 'a znode is ephemeral (-e) or has a --ttl, not both'],
    [words.orSet === true && words.sequential === true, '--or-set: a sequential znode (-s) is always a new one'],
    [words.orSet === true && words.ephemeral === true, '--or-set: a znode that exists would not become ephemeral (-e)'],
    [(words.hold === true || words.while !== undefined) && words.ephemeral !== true, '--hold and --while are for -e'],
  ];
  for (const [isRefused, message] of refusals) if (isRefused) throw new InvocationFailure(message);
}

async function print({ report, isShell }: Context, made: Made): Promise<void> {
  if (!report.isForPeople) await report.one(COLUMNS, made);
  else await report.line(isShell ? `Created ${made.path}` : made.path);
}

const COLUMNS: readonly Column<Made>[] = [
  { name: 'path', value: ({ path }) => path },
  { name: 'created', value: ({ isCreated }) => isCreated },
  ...statColumnsOf<Made>(({ stat }) => stat),
];
