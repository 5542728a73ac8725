/** A table in a page, between two comments. Its first column has names in backticks. */
export interface PageTable {
  readonly begin: string;
  readonly end: string;
  readonly head: readonly string[];
}

/** The page with these rows instead of those of the same names; in the order of `names`, and others are dropped. */
export function renewRows(
  page: string,
  { begin, end, head }: PageTable,
  names: readonly string[],
  rows: ReadonlyMap<string, string>,
): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) throw new Error(`the page needs the lines ${begin} and ${end}`);
  const known = new Map(rowsOf(page, { begin, end, head }).map((row) => [nameOf(row), row]));
  const all = names.flatMap((name) => rows.get(name) ?? known.get(name) ?? []);
  return `${page.slice(0, from)}${[begin, '', ...head, ...all, '', end].join('\n')}${page.slice(to + end.length)}`;
}

export function rowsOf(page: string, { begin, end }: PageTable): readonly string[] {
  const table = page.slice(page.indexOf(begin), page.indexOf(end));
  return table.split('\n').filter((line) => line.startsWith('| `'));
}

export function nameOf(row: string): string {
  return /^\| `([^`]+)`/.exec(row)?.[1] ?? '';
}
