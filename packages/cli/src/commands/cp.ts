import { type Client, joinPath, nameOf, parentOf } from '@meerkat/client';
import { type CopyJob, runCopy } from '../copy/copy-run.ts';
import { addPolicyOptions, type PolicyWords, policyOf } from '../copy/policy-words.ts';
import { isBelow } from '../copy/tree-entry.ts';
import { addSelectionOptions, type SelectionWords, selectFromService, selectionOf } from '../copy/tree-selection.ts';
import { count } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { CommandFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Context, Located } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { expandGlob, hasWildcard } from '../tree/glob.ts';

interface Options extends SelectionWords, PolicyWords {
  readonly recursive?: boolean;
  readonly ephemeralsAsPersistent?: boolean;
  /** undefined: between two services. */
  readonly verify?: boolean;
}

/** `cp`: znodes to other places, of this service or another one. */
export const cp: DefineCommand = (command, host) => {
  command
    .argument(
      '<source>',
      'what is copied: /path, zk://host:port/path or profile:/path; may be several, or a pattern such as "/app/*"',
    )
    .argument('<target...>', 'what the copy is called; with "/" at its end: into it, under the name of the source')
    .usage('[options] <source> [sources...] <target>')
    .option('-r, --recursive', 'with everything below');
  addPolicyOptions(command);
  addSelectionOptions(command, 'copy data alone: new znodes are open to anyone')
    .option('--ephemerals-as-persistent', 'copy ephemeral znodes too; they stay then (default: left out and counted)')
    .option('--verify', 'read both sides again afterwards and compare (default: between two services)')
    .option('--no-verify', 'do not')
    .addHelpText(
      'after',
      examples([
        ['meerkat cp /app/config /app/config.old', 'one znode'],
        ['meerkat cp -r /app zk://zk2:2181/app', 'a tree to another service, verified'],
        ['meerkat cp -r prod:/app staging:/app --delete --dry-run', 'what a mirror would change'],
        ['meerkat cp -r /a "/b*" /backup/', 'to /backup/a and what begins with /backup/b'],
        ['meerkat cp -r /app /new --exclude "lock-*"', 'without what is called so'],
      ]) + CANNOT_BE_KEPT,
    )
    .action((source: string, rest: string[], options: Options) =>
      host.run((context) => copy(context, [source, ...rest.slice(0, -1)], rest.at(-1) ?? '', options)),
    );
};

const CANNOT_BE_KEPT = `

No client can see, and no copy keeps: versions, times and zxids; whether a znode is a container or has a time to live;
the number that the next sequential child gets. Names with such numbers are kept as they are.`;

async function copy(
  context: Context,
  sources: readonly string[],
  target: string,
  options: Options,
): Promise<CommandExit> {
  const isInto = target.endsWith('/') && !target.endsWith('://');
  const { isMirror, ...policyWords } = policyOf(options);
  if (isMirror && options.recursive !== true) throw new InvocationFailure('--delete needs -r: it is for trees');
  const policy = { ...policyWords, isMirror, ephemeralsAsPersistent: options.ephemeralsAsPersistent === true };
  const selection = selectionOf(options, options.recursive === true);
  const { call } = context;
  const located = (await Promise.all(sources.map((text) => expandSource(context, text)))).flat();
  if (located.length > 1 && !isInto) {
    throw new InvocationFailure(`several znodes are copied into another one: write "${target}/"`);
  }
  let exitCode: CommandExit = CommandExit.ok;
  for (const source of located) {
    const to = await locateTarget(context, source, target, isInto);
    await refuseItself(context, source, to);
    const stat = await source.client.exists(source.path, call);
    const isOther = source.client !== to.client;
    if (stat !== null && stat.numChildren > 0 && options.recursive !== true) {
      context.note(`${source.shown} has ${count(stat.numChildren)} children: -r copies them too`);
    }
    const job: CopyJob = {
      verb: 'copy',
      source: source.shown,
      readSource: () => selectFromService(source.client, source.path, selection, call, 'fails'),
      target: to,
      selection,
      policy,
      makesParents: options.parents === true,
      isDryRun: options.dryRun === true,
      surveysAlways: false,
      isSure: options.yes === true,
      verifies: options.verify ?? isOther,
    };
    // What the servers of the two services have applied by now is what is copied.
    await source.client.sync('/', call);
    const ended = await runCopy(context, job);
    if (exitCode === CommandExit.ok) exitCode = ended;
  }
  return exitCode;
}

/** A pattern means all znodes that are like it. */
async function expandSource(context: Context, text: string): Promise<readonly Located[]> {
  const located = await context.locate(text);
  if (!hasWildcard(located.path)) return [located];
  const { client, path: pattern } = located;
  const paths = await expandGlob(client, pattern, context.call);
  if (paths.length === 0) throw new CommandFailure(CommandExit.noNode, `there is no znode like ${text}`);
  const service = text.endsWith(pattern) ? text.slice(0, -pattern.length) : '';
  return paths.map((path) => ({ client, path, shown: `${service}${path}` }));
}

async function locateTarget(context: Context, source: Located, text: string, isInto: boolean): Promise<Located> {
  if (!isInto) return context.locate(text);
  const name = nameOf(source.path);
  if (name === '') throw new InvocationFailure(`the root has no name to be copied into "${text}" under`);
  const parent = text.replace(/(?<!^|:|\/)\/+$/, '');
  const located = await context.locate(/^zk:\/\/[^/]+$/.test(parent) ? `${parent}/` : parent);
  return { client: located.client, path: joinPath(located.path, name), shown: `${text.replace(/\/+$/, '')}/${name}` };
}

/** A tree that is copied into itself would grow forever. */
async function refuseItself(context: Context, source: Located, target: Located): Promise<void> {
  const [from, to] = [placeOf(source), placeOf(target)];
  const isInside = isBelow(to.path, from.path);
  if (!isInside && from.path !== to.path) return;
  const seen = [from.path, parentOf(to.path)].map((path) => isSeenByBoth(context, source.client, target.client, path));
  if (from.service !== to.service && !(await Promise.all(seen)).includes(true)) return;
  throw new InvocationFailure(
    isInside
      ? `${target.shown} lies below ${source.shown}: a tree cannot be copied into itself`
      : `${source.shown} and ${target.shown} are the same znode`,
  );
}

/** A service has many addresses: two clients see the same znode when its czxid and ctime are equal. */
async function isSeenByBoth({ call }: Context, source: Client, target: Client, path: string): Promise<boolean> {
  if (source.chroot !== '' || target.chroot !== '' || path === '') return false;
  const [a, b] = await Promise.all([source.exists(path, call), target.exists(path, call)]);
  // The root has no creator and no time of creation.
  return a !== null && b !== null && a.ctime !== 0 && a.ctime === b.ctime && a.czxid === b.czxid;
}

function placeOf({ client, path }: Located): { readonly service: string; readonly path: string } {
  const { server, chroot } = client;
  const service = server === null ? '' : `${server.host}:${server.port}`;
  return { service, path: path === '/' && chroot !== '' ? chroot : `${chroot}${path}` };
}
