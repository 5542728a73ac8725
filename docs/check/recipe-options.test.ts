import { expect, test } from 'vitest';
import { listPages, readPage } from './pages.ts';
import { readRecipeOptions } from './recipe-options.ts';

/** A page's entry for one option. */
interface Entry {
  readonly option: string;
  readonly byDefault: string;
}

/** A list on a page, below the comment `<!-- options of MutexOptions -->`, which may name several. */
interface List {
  readonly page: string;
  /** The names as in the comment. */
  readonly title: string;
  readonly names: readonly string[];
  readonly entries: readonly Entry[];
}

const PAGES = listPages().filter((page) => page.startsWith('docs/recipes/'));
const COMMON = readCommon();
const LISTS = PAGES.flatMap(findLists);
const OPTIONS = readRecipeOptions();

test('finds the options of recipes', () => {
  expect(OPTIONS.get('MutexOptions')?.map(({ name }) => name)).toContain('lockDelayMs');
  expect(OPTIONS.get('PublishedSet.publish')).toEqual([{ name: 'onlyAfter', isRequired: false, literals: [] }]);
  expect(OPTIONS.size).toBeGreaterThan(30);
});

test.each([...OPTIONS.keys()])('a page lists every option of %s', (name) => {
  const lists = LISTS.filter(({ names }) => names.includes(name)).map(({ page }) => page);
  expect(lists, `no page has a list below <!-- options of ${name} -->`).toHaveLength(1);
});

test.each(LISTS)('the list of $title on $page matches the sources', ({ page, names, entries }) => {
  const options = names.flatMap((name) => {
    const some = OPTIONS.get(name);
    if (some === undefined) throw new Error(`${page} has a list of ${name}, which is not there`);
    return some;
  });
  expect(new Set(entries.map(({ option }) => option))).toEqual(new Set(options.map(({ name }) => name)));
  for (const { name, isRequired, literals } of options) {
    const byDefault = entries.filter(({ option }) => option === name).map((entry) => entry.byDefault);
    if (isRequired) expect(byDefault, `${page}: ${name}`).toEqual(['required']);
    else expect(byDefault, `${page}: ${name}`).not.toContain('required');
    for (const literal of literals)
      expect(byDefault, `${page}: ${name}`).toContainEqual(expect.stringContaining(literal));
  }
});

/** A list follows its comment; an entry names one or more options, and their method unless it is the constructor. */
function findLists(page: string): List[] {
  return [...readPage(page).matchAll(/<!-- options of (.*) -->\n\n((?:- .*\n)+)/g)].map(
    ([, names = '', list = '']) => ({
      page,
      title: names,
      names: names.split(', '),
      entries: list.trimEnd().split('\n').flatMap(readEntry),
    }),
  );
}

/** "- `errorsMax` of `down` (2): …"; options common to all recipes link to their page instead of a default. */
function readEntry(line: string): Entry[] {
  const [, first = '', byDefault] =
    /^- ((?:`\w+`(?:, )?)+)(?: of [^(:]*[^(: ])?(?: \((.*?)\)(?=: |$))?/.exec(line) ?? [];
  const isCommon = line.includes('(README.md#options)');
  return [...first.matchAll(/`(\w+)`/g)].map(([, option = '']) => ({
    option,
    byDefault: byDefault ?? (isCommon ? (COMMON.get(option) ?? '') : ''),
  }));
}

/** The entries of the common options on the page of all recipes. */
function readCommon(): ReadonlyMap<string, string> {
  const [, list = ''] = /<!-- common options -->\n\n((?:- .*\n)+)/.exec(readPage('docs/recipes/README.md')) ?? [];
  return new Map(
    [...list.matchAll(/^- `(\w+)` \((.*?)\): /gm)].map(([, name = '', byDefault = '']) => [name, byDefault]),
  );
}
