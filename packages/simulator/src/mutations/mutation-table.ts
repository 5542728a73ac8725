import type { Finding } from './finding.ts';
import type { Mutation } from './mutation.ts';
import { nameOf, type PageTable, renewRows, rowsOf } from './page-table.ts';

const FINDINGS: PageTable = {
  begin: '<!-- findings: written by npm run mutations -- --record -->',
  end: '<!-- end of findings -->',
  head: [
    '| mutation | what it brings back | in | options | found by seeds | found by a test | seconds |',
    '| --- | --- | --- | --- | --- | --- | --: |',
  ],
};

/** The page with new rows for what has been found now; rows of mutations that are gone are dropped. */
export function renewTable(page: string, mutations: readonly Mutation[], findings: readonly Finding[]): string {
  const known = new Map(rowsOf(page, FINDINGS).map((row) => [nameOf(row), row]));
  const rows: Map<string, string> = new Map();
  for (const finding of findings) {
    const mutation = mutations.find(({ id }) => id === finding.id);
    const before = rows.get(finding.id) ?? known.get(finding.id);
    if (mutation !== undefined) rows.set(finding.id, formatRow(mutation, finding, before));
  }
  return renewRows(
    page,
    FINDINGS,
    mutations.map(({ id }) => id),
    rows,
  );
}

/** Ids of the mutations that the table of a page lists. */
export function idsOf(page: string): readonly string[] {
  return rowsOf(page, FINDINGS).map(nameOf);
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
