import { expect, test } from 'vitest';
import { listPages, readPage } from './pages.ts';
import { readRecipeOptions } from './recipe-options.ts';

/** What a page says of one option. */
interface Row {
  readonly option: string;
  readonly byDefault: string;
}

/** A table on a page, below the comment `<!-- options of MutexOptions -->`, which may name several. */
interface Table {
  readonly page: string;
  readonly names: readonly string[];
  readonly rows: readonly Row[];
}

const PAGES = listPages().filter((page) => page.startsWith('docs/recipes/'));
const TABLES = PAGES.flatMap(findTables);
const OPTIONS = readRecipeOptions();

test('the options of recipes are found', () => {
  expect(OPTIONS.get('MutexOptions')?.map(({ name }) => name)).toContain('lockDelayMs');
  expect(OPTIONS.get('PublishedSet.publish')).toEqual([{ name: 'onlyAfter', isRequired: false, literals: [] }]);
  expect(OPTIONS.size).toBeGreaterThan(30);
});

test.each([...OPTIONS.keys()])('a page lists every option of %s', (name) => {
  const tables = TABLES.filter(({ names }) => names.includes(name)).map(({ page }) => page);
  expect(tables, `no page has a table below <!-- options of ${name} -->`).toHaveLength(1);
});

test.each(TABLES)('the table of $names on $page says what the sources say', ({ page, names, rows }) => {
  const options = names.flatMap((name) => {
    const some = OPTIONS.get(name);
    if (some === undefined) throw new Error(`${page} has a table of ${name}, which is not there`);
    return some;
  });
  expect(new Set(rows.map(({ option }) => option))).toEqual(new Set(options.map(({ name }) => name)));
  for (const { name, isRequired, literals } of options) {
    const byDefault = rows.filter(({ option }) => option === name).map((row) => row.byDefault);
    if (isRequired) expect(byDefault, `${page}: ${name}`).toEqual(['required']);
    else expect(byDefault, `${page}: ${name}`).not.toContain('required');
    for (const literal of literals)
      expect(byDefault, `${page}: ${name}`).toContainEqual(expect.stringContaining(literal));
  }
});

function findTables(page: string): Table[] {
  return [...readPage(page).matchAll(/<!-- options of (.*) -->\n\n((?:\|.*\n)+)/g)].map(
    ([, names = '', table = '']) => {
      const [, , ...lines] = table.trimEnd().split('\n');
      return { page, names: names.split(', '), rows: lines.flatMap(readRow) };
    },
  );
}

/** One or more options, with the method that takes them where it is not the constructor: `errorsMax` of `down`. */
function readRow(line: string): Row[] {
  const [, first = '', byDefault = ''] = line.split(/(?<!\\)\|/);
  const [listed = ''] = first.split(' of ');
  return [...listed.matchAll(/`(\w+)`/g)].map(([, option = '']) => ({ option, byDefault: byDefault.trim() }));
}
