import { expect, test } from 'vitest';
import { findSnippets, IS_RECORDING, listPages, readSource, withFreshSnippets, writePage } from './pages.ts';

/** Pages for people who use the client and the embedded server. */
const PAGES = listPages().filter((page) =>
  /^(README|docs\/(?:client|recipes)\/[^/]+|docs\/simulator|packages\/[^/]+\/README|examples\/README)\.md$/.test(page),
);

test('the pages for users show code', () => {
  expect(PAGES.flatMap(findSnippets).length).toBeGreaterThan(20);
});

test.each(PAGES)('every code block in %s is taken from a tested example', (page) => {
  if (IS_RECORDING) writePage(page, withFreshSnippets(page));
  for (const { origin, code, line } of findSnippets(page)) {
    const place = `${page}:${line}`;
    expect(origin, `${place} has no comment <!-- examples/file.ts#region --> above it`).not.toBeNull();
    expect(code, `${place} differs from ${origin}; RECORD=1 updates it`).toBe(readSource(origin ?? ''));
  }
});
