import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';

const WEB = join(import.meta.dirname, '..');
/** Words between tags, on a separate line, or in visible or accessible attributes. */
const WORDS = [
  />[^<>{}=()]*[A-Za-z]{2,}[^<>{}=()]*<\//,
  /^\s+[A-Z][a-z]+(?: [a-z]+)*[.,:]?\s*$/,
  /\b(?:title|aria-label|aria-description|aria-valuetext|aria-roledescription|placeholder|alt|label)="[^"]*[A-Za-z]{2,}/,
];
/** A name is the same in all languages. */
const NAMES = ['<span className="brand-name">Meerkat</span>'];

function wordsIn(source: string): readonly string[] {
  return source
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => WORDS.some((pattern) => pattern.test(line)) && !NAMES.includes(line.trim()));
}

test('all texts of the page are in texts/', () => {
  const views = readdirSync(WEB, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.tsx'));
  expect(views.length).toBeGreaterThan(30);
  const found = views.flatMap((name) => {
    const path = join(WEB, name);
    return wordsIn(readFileSync(path, 'utf8')).map((line) => `${relative(WEB, path)}: ${line.trim()}`);
  });
  expect(found).toEqual([]);
});

test.each([
  '<p className="quiet">Loading…</p>',
  '          Nothing is here.',
  '<button aria-label="Close" type="button">',
])('words in a view are found: %s', (line) => {
  expect(wordsIn(line)).toEqual([line]);
});
