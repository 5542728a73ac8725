/** A command on a page, and its expected output. */
export interface Step {
  /** Line number of the `$` line, from 1. */
  readonly line: number;
  readonly command: string;
  /** Without trailing line feeds. */
  readonly expected: string;
}

/**
 * Finds the steps in the blocks of a page that are fenced as `console`:
 *
 *     $ meerkat get /greeting          typed; directly following `> ` lines continue it
 *     hello                            printed on standard output or standard error
 *     $ meerkat stat /greeting
 *     czxid  0x…                       … matches anything within a line
 *     …                                and, alone on a line, any number of lines, including none
 */
export function findSteps(page: string): readonly Step[] {
  const steps: { line: number; command: string; expected: string[]; isTyping: boolean }[] = [];
  let isInside = false;
  for (const [index, text] of page.split('\n').entries()) {
    const fence = /^ *```(.*)$/.exec(text);
    if (fence !== null) {
      isInside = !isInside && fence[1] === 'console';
      if (isInside) steps.push({ line: index + 1, command: '', expected: [], isTyping: false });
      continue;
    }
    if (!isInside) continue;
    const last = steps.at(-1);
    if (text.startsWith('$ ')) steps.push({ line: index + 1, command: text.slice(2), expected: [], isTyping: true });
    else if (last?.isTyping === true && text.startsWith('> ')) last.command += `\n${text.slice(2)}`;
    else if (last !== undefined) {
      last.isTyping = false;
      last.expected.push(text);
    }
  }
  const orphan = steps.find(({ command, expected }) => command === '' && expected.length > 0);
  if (orphan !== undefined) throw new Error(`line ${orphan.line}: the block shows output before its first command`);
  return steps
    .filter(({ command }) => command !== '')
    .map(({ line, command, expected }) => ({ line, command, expected: expected.join('\n').trimEnd() }));
}

/** Whether a command printed what its page says. Trailing spaces are ignored. */
export function isAsExpected(printed: string, expected: string): boolean {
  const pattern = trimmed(expected)
    .split('\n')
    .map((line) => (line === '…' ? '(?:.*\n)*' : `${line.split('…').map(escapePattern).join('.*')}\n`))
    .join('');
  return new RegExp(`^${pattern}$`).test(`${trimmed(printed)}\n`);
}

/** The text without invisible characters. */
export function trimmed(text: string): string {
  return text.replaceAll(/[ \t\r]+$/gm, '').trimEnd();
}

function escapePattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
