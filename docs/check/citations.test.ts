import { readdirSync } from 'node:fs';
import { extname, join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { headingsOf, pageExists, ROOT, readPage, SKIPPED } from './pages.ts';

/** References to documents that are not in the repository. */
const UNKNOWN = /\b(?:server-semantics|client-protocol|quorum-protocol)\b|\b(?:DESIGN|STYLE|ECOSYSTEM)(?:\.md)? ?§/g;

/** `docs/page.md` or a page at the root, followed by `, "Heading"`, perhaps on the next comment line, or `#heading`. */
const CITATION = /\b(?:docs\/[\w./-]+|ARCHITECTURE|CONTRIBUTING)\.md(?:#([\w-]+)|,(?:\s|\*|\/\/)+"([^"\n]+)")?/g;

const SOURCES: ReadonlySet<string> = new Set(['.ts', '.js', '.mjs', '.md']);

test('citations refer to existing pages and headings', () => {
  expect(listSources().flatMap((path) => mistakesOf(readPage(path)).map((mistake) => `${path}: ${mistake}`))).toEqual(
    [],
  );
});

test('a broken citation is reported', () => {
  expect(mistakesOf('/** See docs/zab.md, "Election", and docs/zab.md#election. */')).toEqual([]);
  expect(mistakesOf('/**\n * See docs/zab.md,\n * "Election".\n */')).toEqual([]);
  expect(mistakesOf('RFC 2831 §2.1, and 2.2 (§2.2)')).toEqual([]);
  expect(mistakesOf('docs/nowhere.md')).toHaveLength(1);
  expect(mistakesOf('docs/zab.md, "Nowhere"')).toHaveLength(1);
  expect(mistakesOf('docs/zab.md#nowhere')).toHaveLength(1);
  expect(mistakesOf('ARCHITECTURE.md, "Nowhere"')).toHaveLength(1);
  expect(mistakesOf('see DESIGN §6')).toHaveLength(2);
  expect(mistakesOf('server-semantics, Watches')).toHaveLength(1);
  expect(mistakesOf('the invariants of §8')).toHaveLength(1);
});

function mistakesOf(text: string): string[] {
  const mistakes = [...text.matchAll(UNKNOWN)].map(([cited]) => `cites "${cited}"`);
  // Only RFCs have section numbers.
  for (const { index } of text.matchAll(/§/g)) {
    if (!/RFC \d+[\s\S]*$/.test(text.slice(Math.max(0, index - 120), index))) mistakes.push('cites a § of no RFC');
  }
  for (const [cited, anchor, heading] of text.matchAll(CITATION)) {
    const [path = ''] = /^[^#,]*/.exec(cited) ?? [];
    const headings = pageExists(path) ? headingsOf(readPage(path)) : null;
    const isThere =
      headings !== null &&
      (anchor === undefined || headings.some((some) => some.anchor === anchor)) &&
      (heading === undefined || headings.some((some) => some.text === heading));
    if (!isThere) mistakes.push(`cites "${cited.replaceAll(/\s+(?:\*\s+)?/g, ' ')}"`);
  }
  return mistakes;
}

function listSources(): string[] {
  const found: string[] = [];
  const visit = (directory: string): void => {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) {
        if (!SKIPPED.has(entry.name)) visit(path);
      } else if (SOURCES.has(extname(entry.name)) && path !== import.meta.filename) found.push(relative(ROOT, path));
    }
  };
  visit(ROOT);
  return found.sort();
}
