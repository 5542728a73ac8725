/** A line of a text, for which a search has a reason to show it. */
export interface FoundLine {
  /** From 1 on. */
  readonly number: number;
  readonly text: string;
  /** Where the expression matches, in UTF-16 units: [start, end). None: the line only stands beside one that matches. */
  readonly ranges: readonly (readonly [start: number, end: number])[];
}

/**
 * Finds the lines in which an expression matches, with context lines before and after each.
 *
 * @param expression with the flag g
 * @param context lines on each side
 */
export function searchLines(text: string, expression: RegExp, context = 0): readonly FoundLine[] {
  const lines = text.split(/\r?\n/);
  if (lines.length > 1 && lines.at(-1) === '') lines.pop();
  const found: FoundLine[] = [];
  /** Lines up to this one have been shown, or need not be. */
  let shown = 0;
  let wanted = 0;
  for (const [index, line] of lines.entries()) {
    const ranges = rangesOf(line, expression);
    if (ranges.length > 0) {
      for (let before = Math.max(shown, index - context); before < index; before++) {
        found.push({ number: before + 1, text: lines[before] ?? '', ranges: [] });
      }
      wanted = index + context + 1;
    } else if (index >= wanted) continue;
    found.push({ number: index + 1, text: line, ranges });
    shown = index + 1;
  }
  return found;
}

function rangesOf(line: string, expression: RegExp): FoundLine['ranges'] {
  return Array.from(line.matchAll(expression), ({ index, 0: match }) => [index, index + match.length] as const);
}

/** Characters kept on each side of a match when a long line is cut. */
const EXCERPT_MARGIN = 60;

/** Cuts a line that is longer than `lengthMax` down to what is around its first match. */
export function excerptOf(line: FoundLine, lengthMax: number): FoundLine {
  if (line.text.length <= lengthMax) return line;
  const start = Math.max(0, (line.ranges[0]?.[0] ?? 0) - EXCERPT_MARGIN);
  const end = Math.min(line.text.length, start + lengthMax);
  const prefix = start > 0 ? '…' : '';
  const offset = prefix.length - start;
  return {
    number: line.number,
    text: `${prefix}${line.text.slice(start, end)}${end < line.text.length ? '…' : ''}`,
    ranges: line.ranges
      .filter(([from]) => from < end)
      .map(([from, to]) => [from + offset, Math.min(to, end) + offset] as const),
  };
}
