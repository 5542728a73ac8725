import { aclEntryText, type Difference, differencesOf, type TreeEntry } from '../copy/tree-entry.ts';
import { pairTrees, type TreePair } from '../copy/tree-pairs.ts';
import { addSelectionOptions, type SelectionWords, selectionOf } from '../copy/tree-selection.ts';
import type { Cell, Column } from '../output/column.ts';
import type { Paint } from '../output/paint.ts';
import { byteCount, count } from '../output/stat-columns.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { openTree } from '../transfer/tree-source.ts';
import { diffValues } from '../value/value-diff.ts';
import { valueRecord } from '../value/value-record.ts';

interface Options extends SelectionWords {
  readonly recursive?: boolean;
  readonly brief?: boolean;
  /** --no-ephemerals makes it false. */
  readonly ephemerals?: boolean;
}

/** `diff`: what two trees do not have in common. */
export const diff: DefineCommand = (command, host) => {
  command
    .argument('<left>', 'what was: /path, zk://host:port/path, profile:/path, or an export: app.ndjson, file:/tmp/app')
    .argument('<right>', 'what is')
    .option('--no-recursive', 'these two znodes alone')
    .option('-b, --brief', 'paths, without what their values are')
    .option('--no-ephemerals', 'leave ephemeral znodes out');
  addSelectionOptions(command, 'do not compare ACLs')
    .addHelpText(
      'after',
      examples([
        ['meerkat diff /app /app.old', 'two trees'],
        ['meerkat diff prod:/app staging:/app --brief', 'of two services, paths alone'],
        ['meerkat diff backup.ndjson.gz /app', 'what has changed since an export'],
        ['meerkat diff /app/a /app/b --no-recursive', 'two values'],
      ]) +
        '\n\n- is only on the left, + only on the right, ~ on both and not the same. Exit code 1 when anything differs.',
    )
    .action((left: string, right: string, options: Options) =>
      host.run((context) => compare(context, left, right, options)),
    );
};

/** What differs at one path. */
interface Differing {
  readonly path: string;
  readonly change: 'removed' | 'added' | 'changed';
  readonly what: readonly Difference[];
  readonly left: TreeEntry | null;
  readonly right: TreeEntry | null;
}

const COLUMNS: readonly Column<Differing>[] = [
  { name: 'path', value: ({ path }) => path },
  { name: 'change', value: ({ change }) => change },
  { name: 'what', value: ({ what }) => what },
  { name: 'left', value: ({ left }) => describeEntry(left) },
  { name: 'right', value: ({ right }) => describeEntry(right) },
];
const BRIEF_COLUMNS: readonly Column<Differing>[] = COLUMNS.slice(0, 3);

async function compare(context: Context, left: string, right: string, options: Options): Promise<CommandExit> {
  const { report } = context;
  const selection = selectionOf(options, options.recursive !== false);
  const [a, b] = await Promise.all([openTree(context, left, selection), openTree(context, right, selection)]);
  const isBrief = options.brief === true;
  const list = report.isForPeople ? null : await report.list(isBrief ? BRIEF_COLUMNS : COLUMNS);
  using progress = context.progress();
  let compared = 0;
  const totals = { removed: 0, added: 0, changed: 0 };
  for await (const pair of pairTrees(a.read(), b.read())) {
    compared++;
    progress.update(() => `compared ${count(compared)} paths`);
    const differing = differingOf(pair, options.ephemerals !== false);
    if (differing === null) continue;
    totals[differing.change]++;
    progress.clear();
    if (list === null) await report.line(describe(context, differing, isBrief));
    else await list.add(differing);
  }
  await list?.end();
  const { removed, added, changed } = totals;
  if (removed + added + changed === 0) {
    if (report.isForPeople) context.note(`${a.shown} and ${b.shown} are the same: ${count(compared)} znodes`);
    return CommandExit.ok;
  }
  if (report.isForPeople) {
    context.note(`${count(removed)} only in ${a.shown}, ${count(added)} only in ${b.shown}, ${count(changed)} differ`);
  }
  return CommandExit.no;
}

/** @returns null when there is no difference */
function differingOf({ path, left, right }: TreePair, withEphemerals: boolean): Differing | null {
  const [a, b] = withEphemerals ? [left, right] : [lasting(left), lasting(right)];
  if (a !== null && b !== null) {
    const what = differencesOf(a, b);
    return what.length === 0 ? null : { path, change: 'changed', what, left: a, right: b };
  }
  if (a === null && b === null) return null;
  return { path, change: a === null ? 'added' : 'removed', what: [], left: a, right: b };
}

function lasting(entry: TreeEntry | null): TreeEntry | null {
  return entry?.kind === 'ephemeral' ? null : entry;
}

function describe({ report: { paint } }: Context, differing: Differing, isBrief: boolean): string {
  const { path, change, what, left, right } = differing;
  if (change === 'removed') return paint.bad(`- ${path}${sizeOf(left)}`);
  if (change === 'added') return paint.good(`+ ${path}${sizeOf(right)}`);
  const line = paint.notable(`~ ${path}  ${what.join(', ')}`);
  if (isBrief || left === null || right === null) return line;
  const details = [
    ...(what.includes('kind') ? [paint.bad(`-${left.kind}`), paint.good(`+${right.kind}`)] : []),
    ...(what.includes('acl') ? aclLines(left, right, paint) : []),
    ...(what.includes('data') ? dataLines(left, right, paint) : []),
  ];
  return [line, ...details.map((detail) => `    ${detail}`)].join('\n');
}

function aclLines(left: TreeEntry, right: TreeEntry, paint: Paint): readonly string[] {
  const [before, after] = [entriesOf(left), entriesOf(right)];
  return [
    ...before.filter((text) => !after.includes(text)).map((text) => paint.bad(`-acl ${text}`)),
    ...after.filter((text) => !before.includes(text)).map((text) => paint.good(`+acl ${text}`)),
  ];
}

const NOTHING = new Uint8Array(0);

function dataLines(left: TreeEntry, right: TreeEntry, paint: Paint): readonly string[] {
  const lines = diffValues(left.data ?? NOTHING, right.data ?? NOTHING, paint)?.split('\n') ?? [];
  // Nothing at all and an empty value look the same in lines.
  const isNull = left.data === null || right.data === null;
  return isNull ? [`${sizeText(left)} → ${sizeText(right)}`, ...lines] : lines;
}

function sizeText({ data }: TreeEntry): string {
  if (data === null) return 'no data (null)';
  return data.length === 0 ? 'empty data' : byteCount(data.length);
}

function sizeOf(entry: TreeEntry | null): string {
  const kind = entry?.kind === 'persistent' ? '' : `, ${entry?.kind}`;
  return `  ${byteCount(entry?.data?.length ?? 0)}${kind}`;
}

function entriesOf({ acl }: TreeEntry): readonly string[] {
  return (acl ?? []).map(aclEntryText);
}

/** The fields of an export's line. */
function describeEntry(entry: TreeEntry | null): Cell {
  if (entry === null) return null;
  const data = entry.data === null ? { data: null } : valueRecord(entry.data);
  return { ...data, acl: entry.acl === null ? null : entriesOf(entry), kind: entry.kind };
}
