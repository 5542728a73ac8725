const INDENT = '  ';

/**
 * Lays JSON out over lines as `JSON.stringify(value, null, 2)` does, and changes nothing else: numbers of any length,
 * repeated names and the order of names stay as they are written.
 *
 * @param text valid JSON
 */
export function prettyJson(text: string): string {
  const parts: string[] = [];
  let depth = 0;
  let hasJustOpened = false;
  for (const [token] of text.matchAll(TOKEN)) {
    const isOpening = token === '{' || token === '[';
    const isClosing = token === '}' || token === ']';
    if (isClosing) depth--;
    // Empty brackets stay on one line; everything else after a bracket starts a new line.
    if (hasJustOpened !== isClosing) parts.push(newLine(depth));
    if (isOpening) depth++;
    hasJustOpened = isOpening;
    parts.push(token === ':' ? ': ' : token);
    if (token === ',') parts.push(newLine(depth));
  }
  return parts.join('');
}

/** A string, a mark, or a number or word. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

function newLine(depth: number): string {
  return `\n${INDENT.repeat(depth)}`;
}
