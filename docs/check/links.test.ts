import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { headingsOf, listPages, pageExists, readPage } from './pages.ts';

test.each(listPages())('every link in %s leads to an existing file and heading', (page) => {
  for (const target of linksOf(readPage(page))) {
    if (/^[a-z]+:/.test(target)) continue;
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? page : normalize(join(dirname(page), path));
    expect(pageExists(file), `${page} links to ${target}`).toBe(true);
    if (anchor === undefined || !file.endsWith('.md')) continue;
    const anchors = headingsOf(readPage(file)).map((heading) => heading.anchor);
    expect(anchors, `${page} links to ${target}`).toContain(anchor);
  }
});

function linksOf(text: string): string[] {
  return [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? '');
}

function withoutCode(text: string): string {
  return text.replaceAll(/```[\s\S]*?```/g, '').replaceAll(/`[^`\n]*`/g, '');
}

test('the page for operators keeps its order of sections', () => {
  const chapters = [...readPage('docs/operations.md').matchAll(/^## (.*)$/gm)].map(([, chapter]) => chapter);
  expect(chapters.join(', ')).toBe('Install, Configure, Watch, Change, Back up, Restore, Diagnose, Upgrade, Retire');
});
