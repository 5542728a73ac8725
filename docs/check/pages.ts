import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** The root of the repository. */
export const ROOT = join(import.meta.dirname, '../..');

/** With RECORD=1 the generated parts of the pages are rewritten instead of compared. */
export const IS_RECORDING = process.env['RECORD'] === '1';

/** Paths of all pages of the repository, relative to its root. */
export function listPages(): string[] {
  const found: string[] = [];
  const visit = (directory: string): void => {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) {
        if (!SKIPPED.has(entry.name)) visit(path);
      } else if (entry.name.endsWith('.md')) found.push(relative(ROOT, path));
    }
  };
  visit(ROOT);
  return found.sort();
}

/** Folders of generated files. */
export const SKIPPED: ReadonlySet<string> = new Set(['node_modules', 'dist', '.git', 'api', 'coverage']);

export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

export function writePage(page: string, text: string): void {
  writeFileSync(join(ROOT, page), text);
}

export function pageExists(page: string): boolean {
  return existsSync(join(ROOT, page));
}

/** The headings of a page, each with its anchor on GitHub. */
export function headingsOf(text: string): { readonly text: string; readonly anchor: string }[] {
  return [...text.replaceAll(/```[\s\S]*?```/g, '').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => ({
    text: heading,
    anchor: heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  }));
}

/** A code block on a page, with its source file from the comment above it. */
export interface Snippet {
  readonly page: string;
  readonly line: number;
  /** `examples/name.ts`, `examples/name.ts#region`; null without a comment. */
  readonly origin: string | null;
  readonly code: string;
}

const SNIPPET = /(?:<!-- (examples\/\S+) -->\n\n)?```(?:ts|js|typescript|javascript)\n([\s\S]*?)```/g;

/** All TypeScript and JavaScript blocks of a page. */
export function findSnippets(page: string): Snippet[] {
  const text = readPage(page);
  return [...text.matchAll(SNIPPET)].map((match) => ({
    page,
    line: text.slice(0, match.index).split('\n').length,
    origin: match[1] ?? null,
    code: match[2] ?? '',
  }));
}

/** The page with every snippet updated from its file. */
export function withFreshSnippets(page: string): string {
  return readPage(page).replaceAll(SNIPPET, (whole, origin: string | undefined) => {
    if (origin === undefined) return whole;
    const fence = whole.slice(whole.indexOf('```'), whole.indexOf('\n', whole.indexOf('```')));
    return `<!-- ${origin} -->\n\n${fence}\n${readSource(origin)}\`\`\``;
  });
}

/**
 * The code of a snippet: a whole file, or its region between `// #region name` and `// #endregion`. Several regions of
 * one name are concatenated. Common indentation is removed.
 *
 * @throws Error when the file or region does not exist
 */
export function readSource(origin: string): string {
  const [path = '', region] = origin.split('#');
  const lines = readFileSync(join(ROOT, path), 'utf8').split('\n');
  if (region === undefined) return lines.filter((line) => !/^\s*\/\/ #(?:end)?region/.test(line)).join('\n');
  const shown: string[] = [];
  let isInside = false;
  for (const line of lines) {
    const mark = /^\s*\/\/ #(end)?region ?(\S*)/.exec(line);
    if (mark === null) {
      if (isInside) shown.push(line);
    } else isInside = mark[1] === undefined && mark[2] === region;
  }
  if (shown.length === 0) throw new Error(`${path} has no region ${region}`);
  const indents = shown.filter((line) => line !== '').map((line) => line.length - line.trimStart().length);
  const indent = Math.min(...indents);
  return `${shown.map((line) => line.slice(indent)).join('\n')}\n`;
}

/** The text between `<!-- name: begin -->` and `<!-- name: end -->`. */
export function readPart(page: string, name: string): string {
  return partOf(readPage(page), page, name)[1];
}

export function writePart(page: string, name: string, content: string): void {
  const [before, , after] = partOf(readPage(page), page, name);
  writePage(page, before + content + after);
}

function partOf(text: string, page: string, name: string): [before: string, content: string, after: string] {
  const [begin, end] = [`<!-- ${name}: begin -->\n`, `<!-- ${name}: end -->`];
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${page} has no part ${begin.trim()} … ${end}`);
  return [text.slice(0, from + begin.length), text.slice(from + begin.length, to), text.slice(to)];
}

/** A Markdown list, with blank lines around it. */
export function formatList(entries: readonly (readonly string[])[]): string {
  return `\n${entries.map(([name = '', text = '']) => `- ${name}: ${text}`).join('\n')}\n\n`;
}
