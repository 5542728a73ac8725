import {
  type Acl,
  BadVersionError,
  type Client,
  type ClientInfo,
  NoNodeError,
  Perm,
  type Stat,
  UnimplementedError,
} from '@meerkat/client';
import { accessOf, describeIdentities, describePerms, describeWho } from '../acl/access.ts';
import { type AclChange, adding, isSameAcl, removing } from '../acl/acl-change.ts';
import type { Column } from '../output/column.ts';
import { count, STAT_COLUMNS, statColumnsOf } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import { confirm } from '../run/confirmation.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { expandPaths } from '../tree/path-arguments.ts';
import { pipelined } from '../tree/pipelined.ts';
import { walkTree } from '../tree/tree-walk.ts';
import { ACL_SYNTAX, formatAclText, formatEntry, parseAclText } from '../value/acl-text.ts';
import { parseVersion } from '../value/expected-version.ts';

interface Options {
  readonly stat?: boolean;
  readonly ifVersion?: string;
  readonly recursive?: boolean;
  readonly yes?: boolean;
}

/** `acl`: who may do what with a znode. */
export const acl: DefineCommand = (command, host) => {
  command
    .usage('[get] <paths...>\n       meerkat acl set|add|remove <path> <acl>')
    .argument('[action]', 'get, set, add or remove; without it, get')
    .argument('[words...]', `paths; to set, add and remove a path and an ACL: ${ACL_SYNTAX}`)
    .option('-s, --stat', 'print the Stat too')
    .option('-v, --if-version <n>', 'only if the ACL has this version (aversion); exit code 13 if it has another')
    .option('-R, --recursive', 'the ACLs of everything below as well')
    .option('-y, --yes', 'do not ask')
    .addHelpText(
      'after',
      `\n${EXPLANATION}\n${examples([
        ['meerkat acl /app', 'who may do what, and what we may'],
        ['meerkat acl set /app world:anyone:r,auth::cdrwa', 'all read; who runs this does everything'],
        ['meerkat acl add /app password:ann:secret:rw', 'one more, by a password'],
        ['meerkat acl remove /app digest:ann', 'one less'],
        ['meerkat acl remove -R /app world:anyone:wd', 'some permissions, in a whole tree'],
      ])}`,
    )
    .action((action: string | undefined, words: string[], options: Options) =>
      host.run((context) => run(context, action === undefined ? [] : [action, ...words], options)),
    );
};

const EXPLANATION = `Permissions: c create children, d delete children, r read, w write, a set the ACL.
Schemes: world:anyone, digest:user:hash, ip:address, ip:network/bits, x509:name, sasl:user,
auth: (who runs this), password:user:password (a digest whose hash is made here).
An ACL is not inherited: what is below a znode has ACLs of its own.`;

async function run(context: Context, words: readonly string[], options: Options): Promise<CommandExit> {
  const [action, ...rest] = words;
  switch (action) {
    case 'set': {
      const [path, text] = pathAndAcl(context, rest, action);
      const entries = parseAclText(text);
      return change(context, path, () => entries, options, entries);
    }
    case 'add': {
      const [path, text] = pathAndAcl(context, rest, action);
      return change(context, path, adding(text), options, null);
    }
    case 'remove': {
      const [path, text] = pathAndAcl(context, rest, action);
      return change(context, path, removing(text), options, null);
    }
    default:
      return show(context, action === 'get' ? rest : words, options);
  }
}

function pathAndAcl(context: Context, words: readonly string[], action: string): readonly [string, string] {
  const [path, text, ...more] = words;
  if (path === undefined || text === undefined || more.length > 0) {
    throw new InvocationFailure(`"acl ${action}" takes a path and an ACL, such as "acl ${action} /app world:anyone:r"`);
  }
  return [context.resolve(path), text];
}

/* -------------------------------------------------------------------------------------------------------------- get ---- */

interface ShownEntry {
  readonly path: string;
  readonly entry: Acl;
  readonly stat: Stat;
}

const ENTRY_COLUMNS: readonly Column<ShownEntry>[] = [
  { name: 'path', only: 'data', value: ({ path }) => path },
  { name: 'scheme', only: 'data', value: ({ entry }) => entry.scheme },
  { name: 'id', only: 'data', value: ({ entry }) => entry.id },
  {
    name: 'perms',
    only: 'data',
    value: ({ entry }) => formatEntry(entry).slice(formatEntry(entry).lastIndexOf(':') + 1),
  },
  { name: 'entry', only: 'table', value: ({ entry }) => formatEntry(entry) },
  { name: 'who', only: 'table', value: ({ entry }) => describeWho(entry) },
  { name: 'may', only: 'table', value: ({ entry }) => describePerms(entry.perms) },
];

const AVERSION: Column<ShownEntry> = { name: 'aversion', only: 'data', value: ({ stat }) => stat.aversion };

async function show(context: Context, words: readonly string[], options: Options): Promise<CommandExit> {
  const { report, call } = context;
  if (words.length === 0) throw new InvocationFailure('"acl" takes the path of a znode, such as "acl /app"');
  const client = await context.connect();
  const paths = await expandPaths(context, client, words);
  const identities = report.isForPeople ? await identitiesOf(context, client) : null;
  const stats = statColumnsOf<ShownEntry>(({ stat }) => stat).map((column) => ({ ...column, only: 'data' as const }));
  const columns = [...ENTRY_COLUMNS, ...(options.stat === true ? stats : [AVERSION])];
  let list = report.isForPeople ? null : await report.list(columns);
  let isFirst = true;
  const read = (path: string) => unlessGone(path, paths, async () => ({ path, ...(await client.getAcl(path, call)) }));
  const all = await everyPath(context, client, paths, options);
  for await (const found of pipelined(all, read)) {
    if (found === null) continue;
    const { path, acl: entries, stat } = found;
    const isOne = all.length === 1;
    if (report.isForPeople) {
      if (!isOne) await report.line(`${isFirst ? '' : '\n'}${report.paint.bold(`${path}:`)}`);
      list = await report.list(columns);
    }
    for (const entry of entries) await list?.add({ path, entry, stat });
    if (!report.isForPeople) continue;
    isFirst = false;
    await list?.end();
    if (options.stat === true) await report.one(STAT_COLUMNS, stat);
    if (identities !== null) await report.line(`${isOne ? '\n' : ''}${describeAccess(entries, identities)}`);
  }
  if (!report.isForPeople) await list?.end();
  return CommandExit.ok;
}

function describeAccess(entries: readonly Acl[], identities: readonly ClientInfo[]): string {
  const { perms, dependsOnPassword } = accessOf(entries, identities);
  const condition = dependsOnPassword ? ', if the password is right' : '';
  return `you are ${describeIdentities(identities)}: you may ${describePerms(perms)}${condition}`;
}

/** @returns null from servers before 3.7, which cannot tell */
async function identitiesOf({ call }: Context, client: Client): Promise<readonly ClientInfo[] | null> {
  try {
    return await client.whoAmI(call);
  } catch (error) {
    if (error instanceof UnimplementedError) return null;
    throw error;
  }
}

/* ------------------------------------------------------------------------------------------------- set, add, remove ---- */

interface Changed {
  readonly path: string;
  readonly acl: readonly Acl[];
  readonly stat: Stat;
}

const CHANGED_COLUMNS: readonly Column<Changed>[] = [
  { name: 'path', value: ({ path }) => path },
  { name: 'acl', value: ({ acl: entries }) => formatAclText(entries) },
  ...statColumnsOf<Changed>(({ stat }) => stat),
];

/** @param whole what the ACLs become, when what they are does not matter; null when it does */
async function change(
  context: Context,
  path: string,
  makeAcl: AclChange,
  options: Options,
  whole: readonly Acl[] | null,
): Promise<CommandExit> {
  const { report } = context;
  const version = parseVersion(options.ifVersion);
  const isRecursive = options.recursive === true;
  if (isRecursive && version !== undefined) throw new InvocationFailure('--if-version is for one znode: not with -R');
  const client = await context.connect();
  const paths = await everyPath(context, client, [path], options);
  const doubts = [
    ...(paths.length > 1 ? [`change the ACLs of ${count(paths.length)} znodes`] : []),
    ...(whole !== null && !hasAdmin(whole)
      ? ['leave no identity that may set the ACL again, except the super user']
      : []),
  ];
  if (doubts.length > 0 && options.yes !== true && !(await confirm(context, `${doubts.join(' and ')}?`))) {
    context.note('nothing was changed');
    return CommandExit.no;
  }
  const list = report.isForPeople ? null : await report.list(CHANGED_COLUMNS);
  using progress = context.progress();
  let done = 0;
  let changed = 0;
  let last: Stat | null = null;
  // From the leaves up, so that an ACL which shuts us out does it behind us.
  const sent = pipelined(paths.toReversed(), (one) =>
    unlessGone(one, [path], () =>
      whole === null ? changeOne(context, client, one, makeAcl, version) : setOne(context, client, one, whole, version),
    ),
  );
  try {
    for await (const result of sent) {
      done++;
      progress.update(() => `${count(done)} of ${count(paths.length)} ACLs`);
      if (result === null) continue;
      changed++;
      last = result.stat;
      await list?.add(result);
      if (whole === null && !hasAdmin(result.acl))
        context.note(`only the super user may set the ACL of ${result.path} again`);
    }
  } catch (error) {
    progress.clear();
    if (paths.length > 1) context.note(`changed ${count(changed)} ACLs of ${count(paths.length)}`);
    throw error;
  }
  await list?.end();
  if (isRecursive) context.note(`changed ${count(changed)} ACLs of ${count(paths.length)}`);
  else if (changed === 0) context.note(`the ACL of ${path} says so already: nothing was changed`);
  if (report.isForPeople && options.stat === true && !isRecursive && last !== null)
    await report.one(STAT_COLUMNS, last);
  return CommandExit.ok;
}

async function setOne(
  { call }: Context,
  client: Client,
  path: string,
  entries: readonly Acl[],
  version: number | undefined,
): Promise<Changed> {
  return { path, acl: entries, stat: await client.setAcl(path, entries, { ...call, version }) };
}

const ATTEMPTS_MAX = 5;

/** @returns null when there is nothing to change */
async function changeOne(
  { call }: Context,
  client: Client,
  path: string,
  makeAcl: AclChange,
  version: number | undefined,
): Promise<Changed | null> {
  for (let attempt = 1; ; attempt++) {
    const { acl: before, stat } = await client.getAcl(path, call);
    if (version !== undefined && version !== stat.aversion) throw new BadVersionError({ operation: 'setAcl', path });
    const after = makeAcl(before);
    if (isSameAcl(before, after)) return null;
    if (after.length === 0) {
      throw new CommandFailure(
        CommandExit.invalidAcl,
        `cannot remove all entries of the ACL of ${path}: an ACL has at least one; "acl set" gives another`,
      );
    }
    try {
      return { path, acl: after, stat: await client.setAcl(path, after, { ...call, version: stat.aversion }) };
    } catch (error) {
      // It was changed in between: apply to what it is now.
      if (!(error instanceof BadVersionError) || version !== undefined || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

/** A znode found below a named one may be deleted before its turn. @returns null then */
async function unlessGone<T>(path: string, named: readonly string[], work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NoNodeError && !named.includes(path)) return null;
    throw error;
  }
}

function hasAdmin(entries: readonly Acl[]): boolean {
  return entries.some(({ perms }) => (perms & Perm.admin) !== 0);
}

/** Parents before their children. */
async function everyPath(
  context: Context,
  client: Client,
  paths: readonly string[],
  options: Options,
): Promise<readonly string[]> {
  if (options.recursive !== true) return paths;
  const found: string[] = [];
  for (const path of paths) {
    for await (const visited of walkTree(client, path, context.call)) found.push(visited.path);
  }
  return found;
}
