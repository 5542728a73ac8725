import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { KNOWN_DIFFERENCES, NOT_COMPARED } from './known-differences.ts';

const PAGE = new URL('../../docs/differences-from-apache-zookeeper.md', import.meta.url);
const BEGIN = '<!-- known differences: begin -->\n';
const END = '<!-- known differences: end -->\n';

/** `RECORD=1 npx vitest run differences-page` writes the tables again. */
describe('the page about differences', () => {
  it('lists exactly what the comparison lets pass', () => {
    const page = readFileSync(PAGE, 'utf8');
    const before = page.slice(0, page.indexOf(BEGIN) + BEGIN.length);
    const after = page.slice(page.indexOf(END));
    const expected = `${before}${tables()}${after}`;
    if (process.env['RECORD'] === '1') writeFileSync(PAGE, expected);
    else expect(page).toBe(expected);
  });
});

function tables(): string {
  const known = KNOWN_DIFFERENCES.map(({ name, reason }) => `| ${name} | ${reason} |`);
  const left = NOT_COMPARED.map(({ what, reason }) => `| ${what} | ${reason} |`);
  return [
    '',
    '| what Meerkat does | and Apache ZooKeeper 3.8.0 |',
    '| --- | --- |',
    ...known,
    '',
    'Left out of the comparison, because its answer would say nothing or harm the other server:',
    '',
    '| what | Apache ZooKeeper |',
    '| --- | --- |',
    ...left,
    '',
    '',
  ].join('\n');
}
