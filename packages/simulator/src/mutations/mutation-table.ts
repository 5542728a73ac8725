import type { Finding } from './finding.ts';
import type { Mutation } from './mutation.ts';
import { nameOf, type PageTable, renewRows, rowsOf } from './page-table.ts';

const FINDINGS: PageTable = {
  begin: '<!-- findings: written by npm run mutations -- --record -->',
  end: '<!-- end of findings -->',
  head: ['| mutation | defect | found by |', '| --- | --- | --- |'],
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

/** The seed that fails first says more than the test; what seeds found before stays where none were run this time. */
function formatRow({ id, defect, blind }: Mutation, { isFound, bySeeds, byTest }: Finding, before = ''): string {
  const seeds = bySeeds ?? /\| (seed [^|]*) \|$/.exec(before)?.[1] ?? '';
  const missed = blind === null ? 'nothing' : `nothing: ${blind}`;
  const others = seeds.startsWith('seed ') ? seeds : isFound ? 'its test' : missed;
  const foundBy = byTest === 'by the compiler' ? 'the compiler' : others;
  return `| \`${id}\` | ${defect} | ${foundBy} |`;
}
