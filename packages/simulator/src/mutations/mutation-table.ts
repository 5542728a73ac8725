import type { Finding } from './finding.ts';
import type { Mutation } from './mutation.ts';

/** The table of findings in a page, between two comments. */
const BEGIN = '<!-- findings: written by npm run mutations -- --record -->';
const END = '<!-- end of findings -->';
const HEAD = [
  '| mutation | what it brings back | in | options | found by seeds | found by a test | seconds |',
  '| --- | --- | --- | --- | --- | --- | --: |',
];

/** The page with new rows for what has been found now; rows of mutations that are gone are dropped. */
export function renewTable(page: string, mutations: readonly Mutation[], findings: readonly Finding[]): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`the page needs the lines ${BEGIN} and ${END}`);
  const known = new Map(rowsOf(page).map((row) => [idOf(row), row]));
  for (const finding of findings) {
    const mutation = mutations.find(({ id }) => id === finding.id);
    if (mutation !== undefined) known.set(finding.id, formatRow(mutation, finding, known.get(finding.id)));
  }
  const rows = mutations.flatMap(({ id }) => known.get(id) ?? []);
  return `${page.slice(0, begin)}${[BEGIN, '', ...HEAD, ...rows, '', END].join('\n')}${page.slice(end + END.length)}`;
}

/** Ids of the mutations that the table of a page lists. */
export function idsOf(page: string): readonly string[] {
  return rowsOf(page).map(idOf);
}

function rowsOf(page: string): readonly string[] {
  const table = page.slice(page.indexOf(BEGIN), page.indexOf(END));
  return table.split('\n').filter((line) => line.startsWith('| `'));
}

function idOf(row: string): string {
  return /^\| `([^`]+)`/.exec(row)?.[1] ?? '';
}

function formatRow(
  { id, defect, simulate, blind, hunks }: Mutation,
  { isFound, bySeeds, byTest, seconds }: Finding,
  before = '',
): string {
  // What seeds have found stays where none were run this time.
  const seeds = bySeeds ?? before.split(' | ')[4] ?? '';
  const files = new Set(hunks.map(({ file }) => `\`${file.replace(/^packages\/(\w+)\/src\//, '$1/')}\``));
  const options = simulate === null ? '' : `\`${simulate.join(' ')}\``;
  const test = isFound || blind === null ? byTest : `${byTest}: ${blind}`;
  return `| \`${id}\` | ${defect} | ${[...files].join(', ')} | ${options} | ${seeds} | ${test} | ${seconds.toFixed(1)} |`;
}
