import { nameOf } from '@meerkat/client';
import type { Column } from '../output/column.ts';
import type { Paint } from '../output/paint.ts';
import type { ListReport } from '../output/report.ts';
import { type DefineCommand, examples } from '../run/command.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { CommandExit } from '../run/exit-code.ts';
import { parseWholeNumber } from '../run/whole-number.ts';
import { parseExpression } from '../tree/find-conditions.ts';
import { expandPaths } from '../tree/path-arguments.ts';
import { Survey } from '../tree/survey.ts';
import type { Visited } from '../tree/tree-walk.ts';
import { excerptOf, type FoundLine, searchLines } from '../value/line-search.ts';
import { kindOf, textOf, unpack } from '../value/value-kind.ts';

interface Options {
  readonly ignoreCase?: boolean;
  readonly fixedStrings?: boolean;
  readonly names?: boolean;
  readonly listPaths?: boolean;
  readonly count?: boolean;
  readonly context?: string;
  readonly depth?: string;
}

/** `grep`: the lines of data that match. */
export const grep: DefineCommand = (command, host) => {
  command
    .argument('<pattern>', 'a regular expression of JavaScript')
    .argument('[paths...]', 'where to search, with everything below; patterns too', [host.isShell ? '.' : '/'])
    .option('-i, --ignore-case', 'upper and lower case are the same')
    .option('-F, --fixed-strings', 'the pattern is no expression, but what is sought')
    .option('-n, --names', 'search the names of znodes as well')
    .option('-l, --list-paths', 'only the paths of znodes with a match')
    .option('-c, --count', 'only how many lines match, of each znode that has some')
    .option('-C, --context <lines>', 'so many lines before and behind each match (default 0)')
    .option('--depth <levels>', 'go down so many levels (default: to the leaves)')
    .addHelpText(
      'after',
      `\n${NOTES}\n${examples([
        ['meerkat grep localhost /app', 'who refers to localhost'],
        ["meerkat grep -i 'port *[:=]' /app -C 1", 'an expression, with a line around'],
        ["meerkat grep -F 'a.b[0]' '/app/*/config' -l", 'a text, and only the paths'],
        ['meerkat grep -l password / || echo none', 'the answer for a script'],
      ])}`,
    )
    .action((pattern: string, texts: string[], options: Options) =>
      host.run((context) => search(context, pattern, texts, options)),
    );
};

const NOTES = `Each match is printed as path:line:text. Data that are gzip are unpacked; of data
that are no text only the match is printed. The exit code is 1 when nothing matches.`;

async function search(
  context: Context,
  pattern: string,
  texts: readonly string[],
  options: Options,
): Promise<CommandExit> {
  if (options.listPaths === true && options.count === true) throw new InvocationFailure('give one of -l and -c');
  const source = options.fixedStrings === true ? pattern.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&') : pattern;
  const expression = parseExpression(source, options.ignoreCase === true ? 'gi' : 'g', 'the pattern');
  const depthMax = options.depth === undefined ? {} : { depthMax: parseWholeNumber(options.depth, '--depth') };
  const contextLines = options.context === undefined ? 0 : parseWholeNumber(options.context, '--context');
  const client = await context.connect();
  const paths = await expandPaths(context, client, texts);
  const survey = new Survey(context, client);
  const listing = await listReportOf(context, options);
  let hasMatched = false;
  using progress = context.progress();
  for await (const visited of survey.walk(paths, progress, { ...depthMax, withData: true })) {
    const match = matchOf(visited, expression, contextLines, options);
    if (match === null) continue;
    hasMatched = true;
    progress.clear();
    await listing.add(match);
  }
  await listing.end();
  const exitCode = await survey.end();
  return exitCode === CommandExit.ok && !hasMatched ? CommandExit.no : exitCode;
}

/* ---------------------------------------------------------------------------------------------- matching ---- */

/** What was found in one znode. */
interface Match {
  readonly path: string;
  readonly isInName: boolean;
  /** Data that are no text have no lines. */
  readonly isInBinary: boolean;
  /** Those that match, and those around them. */
  readonly lines: readonly FoundLine[];
}

function matchOf({ path, data }: Visited, expression: RegExp, contextLines: number, options: Options): Match | null {
  const isInName = options.names === true && nameOf(path).search(expression) !== -1;
  const bytes = unpacked(data ?? new Uint8Array(0));
  const text = textOf(bytes);
  // What is readable in between can be found; the rest is no text.
  const isInBinary = text === null && new TextDecoder().decode(bytes).search(expression) !== -1;
  const lines = text === null || text === '' ? [] : searchLines(text, expression, contextLines);
  return isInName || isInBinary || lines.length > 0 ? { path, isInName, isInBinary, lines } : null;
}

function unpacked(data: Uint8Array): Uint8Array {
  return kindOf(data) === 'gzip' ? (unpack(data) ?? data) : data;
}

/* ----------------------------------------------------------------------------------------------- telling ---- */

async function listReportOf(context: Context, options: Options): Promise<ListReport<Match>> {
  const { report } = context;
  if (options.listPaths === true) {
    if (report.isForPeople) return { add: ({ path }) => report.line(path), end: () => undefined };
    return report.list(PATHS);
  }
  if (options.count === true) {
    if (report.isForPeople) {
      return { add: (match) => report.line(`${match.path}:${countOf(match)}`), end: () => undefined };
    }
    return report.list(COUNTS);
  }
  if (report.isForPeople) {
    const lengthMax = report.isTerminal ? LINE_LENGTH_MAX : Number.POSITIVE_INFINITY;
    const hasContext = options.context !== undefined;
    return { add: (match) => report.write(shown(match, report.paint, lengthMax, hasContext)), end: () => undefined };
  }
  const list = await report.list(HITS);
  return {
    add: async (match) => {
      for (const hit of hitsOf(match)) await list.add(hit);
    },
    end: () => list.end(),
  };
}

/** Longer lines, such as JSON in one line, are cut on a terminal. */
const LINE_LENGTH_MAX = 400;

function shown(
  { path, isInName, isInBinary, lines }: Match,
  paint: Paint,
  lengthMax: number,
  hasGaps: boolean,
): string {
  let text = isInName ? `${paint.bold(path)}: the name matches\n` : '';
  if (isInBinary) text += `${paint.bold(path)}: binary data match\n`;
  let last = 0;
  for (const line of lines) {
    if (hasGaps && last !== 0 && line.number > last + 1) text += `${paint.dim('--')}\n`;
    last = line.number;
    const mark = line.ranges.length > 0 ? ':' : '-';
    text += `${paint.bold(path)}${mark}${line.number}${mark}${painted(excerptOf(line, lengthMax), paint)}\n`;
  }
  return text;
}

function painted({ text, ranges }: FoundLine, paint: Paint): string {
  let result = '';
  let last = 0;
  for (const [start, end] of ranges) {
    if (start === end) continue;
    result += text.slice(last, start) + paint.bad(text.slice(start, end));
    last = end;
  }
  return result + text.slice(last);
}

/** A line, or the name, or data that are no text. */
interface Hit {
  readonly path: string;
  readonly where: 'data' | 'binary' | 'name';
  readonly line: number | null;
  readonly text: string | null;
}

function hitsOf({ path, isInName, isInBinary, lines }: Match): readonly Hit[] {
  return [
    ...(isInName ? [{ path, where: 'name', line: null, text: nameOf(path) } as const] : []),
    ...(isInBinary ? [{ path, where: 'binary', line: null, text: null } as const] : []),
    ...matching(lines).map(({ number, text }) => ({ path, where: 'data', line: number, text }) as const),
  ];
}

function matching(lines: readonly FoundLine[]): readonly FoundLine[] {
  return lines.filter(({ ranges }) => ranges.length > 0);
}

/** A name and binary data count as one line. */
function countOf(match: Match): number {
  return matching(match.lines).length + (match.isInName ? 1 : 0) + (match.isInBinary ? 1 : 0);
}

const PATHS: readonly Column<Match>[] = [{ name: 'path', value: ({ path }) => path }];
const COUNTS: readonly Column<Match>[] = [...PATHS, { name: 'count', value: countOf }];
const HITS: readonly Column<Hit>[] = [
  { name: 'path', value: ({ path }) => path },
  { name: 'line', value: ({ line }) => line },
  { name: 'text', value: ({ text }) => text },
  { name: 'where', value: ({ where }) => where },
];
