import { type Client, NoNodeError } from '@meerkat/client';
import type { Column } from '../output/column.ts';
import { byteCount, count } from '../output/stat-columns.ts';
import { parseBytesLimit, parseCountLimit } from '../quota/byte-words.ts';
import { NO_LIMITS, type QuotaLimits } from '../quota/quota-text.ts';
import { changeQuota, findQuota, type Quota, quotasBelow, readQuota } from '../quota/quotas.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';

/** A string where a word came behind it: with `remove` that is a path. */
export interface QuotaOptions {
  readonly count?: string | true;
  readonly bytes?: string | true;
  readonly hardCount?: string | true;
  readonly hardBytes?: string | true;
}

/** `quota`: how many znodes and bytes there may be at and below a znode. */
export const quota: DefineCommand = (command, host) => {
  command
    .usage(
      '[show] [paths...]\n       meerkat quota set <path> -n 1000 -B 10M\n       meerkat quota remove <path> [-n] [-b] [-N] [-B]',
    )
    .argument('[action]', 'show, set or remove; without it, show')
    .argument('[paths...]', 'the znodes; none: all that have a quota')
    .option('-n, --count [znodes]', 'soft limit of znodes, the one at the top included; none takes it away')
    .option('-b, --bytes [bytes]', 'soft limit of the bytes of data: 5000, 64K, 10M')
    .option('-N, --hard-count [znodes]', 'hard limit of znodes')
    .option('-B, --hard-bytes [bytes]', 'hard limit of bytes')
    .addHelpText(
      'after',
      `\n${EXPLANATION}\n${examples([
        ['meerkat quota', 'all quotas, with what is in use'],
        ['meerkat quota set /app -n 1000 -B 10M', 'warn above 1,000 znodes, refuse more than 10 MiB'],
        ['meerkat quota show /app/a/b', 'the quota that a znode counts to'],
        ['meerkat quota remove /app -n', 'one of its limits'],
        ['meerkat quota remove /app', 'all of them'],
      ])}`,
    )
    .action((action: string | undefined, paths: string[], options: QuotaOptions) =>
      host.run((context) => runQuota(context, action === undefined ? [] : [action, ...paths], options)),
    );
};

const EXPLANATION = `Servers with enforceQuota=true in their zoo.cfg refuse what goes beyond a hard limit, and
warn in their log beyond a soft one; others only count. What is below a znode with a quota
counts to that quota, so that none lies within another.`;

/** Also what setquota and delquota of the shell do. @param words the action and its paths */
export async function runQuota(
  context: Context,
  words: readonly string[],
  options: QuotaOptions,
): Promise<CommandExit> {
  const client = await context.connect();
  if (client.chroot !== '') {
    throw new InvocationFailure(
      `quotas are in /zookeeper/quota, outside of the chroot ${client.chroot}: connect without it and name whole paths`,
    );
  }
  const [action, ...rest] = words;
  switch (action) {
    case 'set':
      return setLimits(context, client, thePath(context, rest, 'set'), options);
    case 'remove':
      return removeLimits(context, client, rest, options);
    default: {
      if (Object.keys(options).length > 0)
        throw new InvocationFailure('limits are given to "quota set" or "quota remove"');
      const paths = action === 'show' ? rest : words;
      return show(
        context,
        client,
        paths.map((path) => context.resolve(path)),
      );
    }
  }
}

async function show(context: Context, client: Client, paths: readonly string[]): Promise<CommandExit> {
  const { report, call } = context;
  const found: Quota[] = [];
  const missing: string[] = [];
  if (paths.length === 0) {
    for await (const one of quotasBelow(client, '/', call)) found.push(one);
  }
  for (const path of paths) {
    const governing = await findQuota(client, path, call);
    if (governing === null) missing.push(path);
    else {
      if (governing.path !== path) context.note(`${path} counts to the quota of ${governing.path}`);
      if (!found.some((one) => one.path === governing.path)) found.push(governing);
    }
  }
  await print(context, found);
  if (report.isForPeople && paths.length === 0 && found.length === 0) context.note('there are no quotas');
  for (const path of missing) context.note(`there is no quota at ${path} or above it`);
  return missing.length > 0 ? CommandExit.no : CommandExit.ok;
}

async function setLimits(context: Context, client: Client, path: string, options: QuotaOptions): Promise<CommandExit> {
  const { call } = context;
  const given = givenLimits(options);
  if (Object.keys(given).length === 0) {
    throw new InvocationFailure(
      'there is no limit to set: -n and -b are soft ones of znodes and bytes, -N and -B hard ones',
    );
  }
  if (path === '/')
    throw new InvocationFailure('a quota of the root is never counted or enforced; name what is below it');
  if (`${path}/`.startsWith('/zookeeper/'))
    throw new InvocationFailure(`${path} belongs to the service: it takes no quota`);
  if ((await client.exists(path, call)) === null) throw new NoNodeError({ operation: 'set', path });
  await refuseNesting(context, client, path);
  const changed = await changeQuota(client, path, (limits) => ({ ...limits, ...given }), call);
  if (changed === null) context.note(`${path} has no limits, and so no quota`);
  else await print(context, [changed]);
  context.note('limits are kept by servers with enforceQuota=true in their zoo.cfg; others only count');
  return CommandExit.ok;
}

/** What lies below two quotas counts to the inner one alone: that is surprising, and zkCli refuses it as well. */
async function refuseNesting({ call }: Context, client: Client, path: string): Promise<void> {
  const outer = await findQuota(client, path, call);
  if (outer !== null && outer.path !== path && outer.path !== '/') throw nested(path, outer.path, 'above');
  for await (const inner of quotasBelow(client, path, call)) {
    if (inner.path !== path) throw nested(path, inner.path, 'below');
  }
}

function nested(path: string, other: string, where: string): CommandFailure {
  return new CommandFailure(
    CommandExit.badArguments,
    `cannot set a quota of ${path}: ${other} ${where} it has one, and what counts to the inner quota does not count to ` +
      `the outer; "quota remove ${other}" takes it away`,
  );
}

async function removeLimits(
  context: Context,
  client: Client,
  rest: readonly string[],
  options: QuotaOptions,
): Promise<CommandExit> {
  const { call, report } = context;
  // `quota remove -n /app`: the path looks like the value of the option.
  const values = Object.values(options).filter((value) => typeof value === 'string');
  const path = thePath(context, [...values, ...rest], 'remove');
  const chosen = Object.keys(options).map((option) => LIMIT_OF[option as keyof QuotaOptions]);
  if ((await readQuota(client, path, call)) === null) {
    throw new CommandFailure(CommandExit.no, `${path} has no quota of its own ("quota show" says which it counts to)`);
  }
  const changed = await changeQuota(
    client,
    path,
    (limits) =>
      chosen.length === 0 ? NO_LIMITS : { ...limits, ...Object.fromEntries(chosen.map((key) => [key, null])) },
    call,
  );
  if (changed !== null) await print(context, [changed]);
  else if (!report.isForPeople) await print(context, []);
  return CommandExit.ok;
}

const LIMIT_OF: Readonly<Record<keyof QuotaOptions, keyof QuotaLimits>> = {
  count: 'countSoft',
  bytes: 'bytesSoft',
  hardCount: 'countHard',
  hardBytes: 'bytesHard',
};

function givenLimits(options: QuotaOptions): Partial<QuotaLimits> {
  const limits: Partial<Record<keyof QuotaLimits, number | null>> = {};
  for (const [option, key] of Object.entries(LIMIT_OF) as [keyof QuotaOptions, keyof QuotaLimits][]) {
    const text = options[option];
    if (text === undefined) continue;
    const origin = FLAGS[option];
    if (text === true) throw new InvocationFailure(`${origin}: expected a limit, such as 1000`);
    limits[key] =
      option === 'count' || option === 'hardCount' ? parseCountLimit(text, origin) : parseBytesLimit(text, origin);
  }
  return limits;
}

const FLAGS: Readonly<Record<keyof QuotaOptions, string>> = {
  count: '-n',
  bytes: '-b',
  hardCount: '-N',
  hardBytes: '-B',
};

function thePath(context: Context, words: readonly string[], action: string): string {
  const [word, ...more] = words;
  if (word === undefined || more.length > 0) throw new InvocationFailure(`"quota ${action}" is for one path`);
  return context.resolve(word);
}

async function print(context: Context, quotas: readonly Quota[]): Promise<void> {
  const { report } = context;
  const shown = (usage: string, isOver: boolean): string => (isOver ? report.paint.bad(usage) : usage);
  const list = await report.list<Quota>([
    { name: 'path', value: ({ path }) => path },
    {
      ...people('znodes'),
      text: ({ usage, limits }) =>
        usage === null ? '?' : shown(count(usage.count), isOver(usage.count, limits.countSoft, limits.countHard)),
    },
    { ...people('soft'), text: ({ limits }) => limitText(limits.countSoft, count) },
    { ...people('hard'), text: ({ limits }) => limitText(limits.countHard, count) },
    {
      ...people('data'),
      text: ({ usage, limits }) =>
        usage === null ? '?' : shown(byteCount(usage.bytes), isOver(usage.bytes, limits.bytesSoft, limits.bytesHard)),
    },
    { ...people('soft'), text: ({ limits }) => limitText(limits.bytesSoft, byteCount) },
    { ...people('hard'), text: ({ limits }) => limitText(limits.bytesHard, byteCount) },
    ...DATA_COLUMNS,
  ]);
  for (const one of quotas) await list.add(one);
  await list.end();
}

const DATA_COLUMNS: readonly Column<Quota>[] = [
  { name: 'count', only: 'data', value: ({ usage }) => usage?.count ?? null },
  { name: 'countSoft', only: 'data', value: ({ limits }) => limits.countSoft },
  { name: 'countHard', only: 'data', value: ({ limits }) => limits.countHard },
  { name: 'bytes', only: 'data', value: ({ usage }) => usage?.bytes ?? null },
  { name: 'bytesSoft', only: 'data', value: ({ limits }) => limits.bytesSoft },
  { name: 'bytesHard', only: 'data', value: ({ limits }) => limits.bytesHard },
];

function people(name: string): Column<Quota> {
  return { name, align: 'right', only: 'table', value: () => null };
}

function limitText(limit: number | null, format: (value: number) => string): string {
  return limit === null ? '–' : format(limit);
}

function isOver(usage: number, soft: number | null, hard: number | null): boolean {
  const most = hard ?? soft;
  return most !== null && usage > most;
}
