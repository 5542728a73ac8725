import { runCopy } from '../copy/copy-run.ts';
import { addPolicyOptions, type PolicyWords, policyOf } from '../copy/policy-words.ts';
import { absolutePath } from '../copy/tree-entry.ts';
import { addSelectionOptions, type SelectionWords, selectionOf } from '../copy/tree-selection.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import type { CommandExit } from '../run/exit-code.ts';
import { Spool } from '../transfer/spool.ts';
import { openFile, type TreeSource } from '../transfer/tree-source.ts';

interface Options extends SelectionWords, PolicyWords {
  readonly prefix?: string;
  readonly ephemeralsAsPersistent?: boolean;
  readonly verify?: boolean;
}

/** `import`: what `export` has written, back into a service. */
export const importTree: DefineCommand = (command, host) => {
  command
    .argument('<file>', 'what "export" has written, packed or not; a directory of it; "-" is standard input')
    .argument('[target]', 'the top of the tree: /path, zk://host:port/path or profile:/path (default: where it was)')
    .option('--prefix <path>', 'put it below this znode, under the path that it had: /app becomes /prefix/app');
  addPolicyOptions(command);
  addSelectionOptions(command, 'import data alone: new znodes are open to anyone')
    .option('--ephemerals-as-persistent', 'import ephemeral znodes too; they stay then (default: left out and counted)')
    .option('--verify', 'read the service again afterwards and compare (default)')
    .option('--no-verify', 'do not')
    .addHelpText(
      'after',
      `${examples([
        ['meerkat import app.ndjson', 'to where it was'],
        ['meerkat import app.ndjson /restored', 'to another place'],
        ['meerkat import backup.ndjson.gz --dry-run --delete', 'what would change on the way back to a backup'],
        ['meerkat import app --prefix /test --parents', 'a directory, below /test'],
      ])}\n\nEvery line is checked before anything is changed. A file that was cut off is noticed.`,
    )
    .action((file: string, target: string | undefined, options: Options) =>
      host.run((context) => importFrom(context, file, target, options)),
    );
};

async function importFrom(
  context: Context,
  file: string,
  target: string | undefined,
  options: Options,
): Promise<CommandExit> {
  const policy = { ...policyOf(options), ephemeralsAsPersistent: options.ephemeralsAsPersistent === true };
  const selection = selectionOf(options, true);
  using spool = file === '-' ? await Spool.fill(context) : null;
  const source = await openFile(spool?.file ?? { name: file, path: file }, selection);
  if (source.isDirectory && policy.existing === 'update') {
    throw new InvocationFailure('--update compares times, and a directory has none: --overwrite or --skip');
  }
  if (source.isDirectory && source.root === null) {
    context.note(`${source.shown} has no _meerkat.json: it may be incomplete`);
  }
  const located = await context.locate(targetOf(context, source, target, options));
  // Standard input is kept until it is done.
  return await runCopy(context, {
    verb: 'import',
    source: source.shown,
    readSource: () => source.read(),
    target: located,
    selection,
    policy,
    makesParents: options.parents === true,
    isDryRun: options.dryRun === true,
    surveysAlways: true,
    isSure: options.yes === true,
    verifies: options.verify !== false,
  });
}

function targetOf(
  context: Context,
  { root, shown }: TreeSource,
  target: string | undefined,
  { prefix }: Options,
): string {
  if (target !== undefined) {
    if (prefix !== undefined) throw new InvocationFailure('choose one: a target, or --prefix for the path that it had');
    return target;
  }
  if (root === null) throw new InvocationFailure(`${shown} does not say where it was: name the target`);
  return prefix === undefined ? root : absolutePath(context.resolve(prefix), root);
}
