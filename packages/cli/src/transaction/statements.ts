/** A word of a statement. */
export interface Word {
  readonly text: string;
  /** Some of it stood in quotes or behind a backslash: it means nothing but itself. */
  readonly isQuoted: boolean;
}

/** The words of an operation. */
export interface Statement {
  /** The line where it begins, from 1. */
  readonly line: number;
  readonly words: readonly Word[];
}

/** A text cannot be split into statements. */
export class StatementError extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

/**
 * Splits a text into statements, one a line.
 *
 *     # a comment, also behind a statement
 *     set /a plain\ word          a backslash takes the meaning from the next character, and joins lines at their end
 *     set /b 'as it is: \n "'     nothing means anything in single quotes
 *     set /c "tab\t line\n"       \n \t \r \0 \" \\ \uHHHH \u{HHHHH} in double quotes
 *
 * Quotes may go over several lines.
 *
 * @throws StatementError
 */
export function splitStatements(text: string): readonly Statement[] {
  const statements: Statement[] = [];
  let words: Word[] = [];
  /** null between words. */
  let word: { text: string; isQuoted: boolean } | null = null;
  let line = 1;
  let firstLine = 1;
  let at = 0;
  const begin = (): { text: string; isQuoted: boolean } => {
    if (words.length === 0 && word === null) firstLine = line;
    word ??= { text: '', isQuoted: false };
    return word;
  };
  const endWord = (): void => {
    if (word !== null) words.push(word);
    word = null;
  };
  const endStatement = (): void => {
    endWord();
    if (words.length > 0) statements.push({ line: firstLine, words });
    words = [];
  };
  while (at < text.length) {
    const character = text[at] ?? '';
    at++;
    switch (character) {
      case '\n':
        endStatement();
        line++;
        break;
      case ' ':
      case '\t':
      case '\r':
        endWord();
        break;
      case '#':
        if (word === null) {
          const end = text.indexOf('\n', at);
          at = end === -1 ? text.length : end;
        } else begin().text += character;
        break;
      case "'":
      case '"': {
        const quoted = character === "'" ? readPlain(text, at, line) : readEscaped(text, at, line);
        const target = begin();
        target.text += quoted.text;
        target.isQuoted = true;
        line += quoted.lines;
        at = quoted.end;
        break;
      }
      case '\\': {
        const next = text[at] ?? '';
        at++;
        if (next === '\n') line++;
        else {
          const target = begin();
          target.text += next;
          target.isQuoted = true;
        }
        break;
      }
      default:
        begin().text += character;
    }
  }
  endStatement();
  return statements;
}

interface Quoted {
  readonly text: string;
  /** Behind the closing quote. */
  readonly end: number;
  /** Line feeds inside. */
  readonly lines: number;
}

function readPlain(text: string, start: number, line: number): Quoted {
  const end = text.indexOf("'", start);
  if (end === -1) throw new StatementError(line, "the quote ' is not closed");
  const inner = text.slice(start, end);
  return { text: inner, end: end + 1, lines: countLines(inner) };
}

function readEscaped(text: string, start: number, line: number): Quoted {
  let inner = '';
  let at = start;
  for (;;) {
    const character = text[at];
    if (character === undefined) throw new StatementError(line, 'the quote " is not closed');
    at++;
    if (character === '"') return { text: inner, end: at, lines: countLines(text.slice(start, at)) };
    if (character !== '\\') {
      inner += character;
      continue;
    }
    const sequence = /^(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|([\s\S]))/.exec(text.slice(at, at + 10));
    const code = Number.parseInt(sequence?.[1] ?? sequence?.[2] ?? '', 16);
    const simple = sequence?.[3] === undefined ? undefined : ESCAPES[sequence[3]];
    if (sequence === null || (simple === undefined && !(code <= 0x10ffff))) {
      const atLine = line + countLines(text.slice(start, at));
      throw new StatementError(
        atLine,
        `"\\${text[at] ?? ''}" means nothing in double quotes; a backslash itself is \\\\`,
      );
    }
    inner += simple ?? String.fromCodePoint(code);
    at += sequence[0].length;
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  '0': '\0',
  '"': '"',
  '\\': '\\',
  $: '$',
  '\n': '',
};

function countLines(text: string): number {
  let lines = 0;
  for (const character of text) if (character === '\n') lines++;
  return lines;
}
