/*
 * A line of the shell, cut into commands and words:
 *
 *     input    = command *((";" before a blank or the end / line feed) command)
 *     word     = 1*(quoted / escape / character)
 *     quoted   = "'" anything "'"  /  '"' anything, with \" and \\ '"'  /  "$'" anything, with \n \t \' \xHH … "'"
 *     escape   = "\" before a blank, a quote, "\", "#", ";", "$" or "<"; before a line feed it joins two lines
 *     comment  = "#" where a word could begin, up to the end of the line
 *     document = "<<" MARK as a word of its own: the lines behind this one, up to a line MARK, are the word
 *
 * As in zkCli, a quote opens where a word begins, and elsewhere it is a character like others, so that JSON can be typed
 * as it is: set /a {"debug":true}. It opens behind a quoted part, too ('it'\''s'), and behind the "=" of an option. A ";"
 * inside a word is a character: reconfig -add server.4=zk4:2888:3888;2181.
 */

export interface ShellWord {
  /** Without quotes and escapes. */
  readonly text: string;
  /** Where it begins in the input. */
  readonly start: number;
}

export interface CommandLine {
  readonly words: readonly string[];
  /** As it was typed, its here-documents included. */
  readonly text: string;
  /** The line of the input where it begins, from 1. */
  readonly lineNumber: number;
}

/** A quote that is open. */
export type Quote = "'" | '"' | "$'";

/** What the input waits for: the end of a quoted value, the next line behind a "\", or the end of a document. */
export type Missing =
  | { readonly kind: 'quote'; readonly quote: Quote }
  | { readonly kind: 'next-line' }
  | { readonly kind: 'document'; readonly mark: string };

export interface Scan {
  readonly commands: readonly CommandLine[];
  /** null when the input is complete. */
  readonly missing: Missing | null;
  /** Everything before is complete: the length of the input, or where the first command that continues begins. */
  readonly completeLength: number;
  /** The last command as far as it has come; the last word of it ends the input or, with a blank behind it, does not. */
  readonly last: readonly ShellWord[];
  readonly isInWord: boolean;
}

export function scan(text: string): Scan {
  return new Scanner(text).run();
}

const BLANK = /[ \t\r]/;
const ESCAPABLE = ' \t\'"\\#;$<';
const DOCUMENT = /^<<([A-Za-z0-9_]+)$/;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '0': '\0', e: '\x1b' };

interface OpenDocument {
  readonly mark: string;
  readonly command: OpenCommand;
  /** Which of its words it is. */
  readonly index: number;
}

interface OpenCommand {
  readonly words: string[];
  readonly start: number;
  readonly lineNumber: number;
  text: string;
}

class Scanner {
  readonly #text: string;
  readonly #commands: OpenCommand[] = [];
  #position = 0;
  #lineNumber = 1;
  #words: ShellWord[] = [];
  #firstLine = 1;
  #documents: { readonly mark: string; readonly index: number }[] = [];
  #open: OpenDocument[] = [];
  #missing: Missing | null = null;
  #isInWord = false;

  constructor(text: string) {
    this.#text = text;
  }

  run(): Scan {
    const text = this.#text;
    while (this.#position < text.length) {
      const character = text[this.#position] ?? '';
      this.#isInWord = false;
      if (character === '\n') {
        this.#endCommand();
        this.#step();
        this.#readDocuments();
      } else if (BLANK.test(character)) this.#position++;
      else if (this.#isSeparator()) {
        this.#endCommand();
        this.#position++;
      } else if (character === '#') this.#skipComment();
      else this.#readWord();
    }
    const last = this.#words;
    this.#endCommand();
    const [document] = this.#open;
    const goesOn = document?.command ?? (this.#missing === null ? undefined : this.#commands.at(-1));
    if (document !== undefined) this.#missing ??= { kind: 'document', mark: document.mark };
    return {
      commands: this.#commands,
      missing: this.#missing,
      completeLength: goesOn?.start ?? text.length,
      last,
      isInWord: this.#isInWord,
    };
  }

  /** Over one character, counting lines. */
  #step(): void {
    if (this.#text[this.#position] === '\n') this.#lineNumber++;
    this.#position++;
  }

  /** A ";" with a blank or nothing behind it. */
  #isSeparator(): boolean {
    if (this.#text[this.#position] !== ';') return false;
    const next = this.#text[this.#position + 1];
    return next === undefined || next === '\n' || BLANK.test(next);
  }

  #skipComment(): void {
    const end = this.#text.indexOf('\n', this.#position);
    this.#position = end === -1 ? this.#text.length : end;
  }

  #endCommand(): void {
    if (this.#words.length === 0) return;
    const words = this.#words.map(({ text }) => text);
    const start = this.#words[0]?.start ?? 0;
    const text = this.#text.slice(start, this.#position).trimEnd();
    const command: OpenCommand = { words, start, lineNumber: this.#firstLine, text };
    for (const { mark, index } of this.#documents) this.#open.push({ mark, command, index });
    this.#commands.push(command);
    this.#words = [];
    this.#documents = [];
  }

  #readDocuments(): void {
    for (let document = this.#open[0]; document !== undefined; document = this.#open[0]) {
      const body: string[] = [];
      for (;;) {
        if (this.#position >= this.#text.length) return;
        const feed = this.#text.indexOf('\n', this.#position);
        const end = feed === -1 ? this.#text.length : feed;
        const line = this.#text.slice(this.#position, end).replace(/\r$/, '');
        this.#position = end;
        if (feed !== -1) this.#step();
        if (line === document.mark) break;
        body.push(line);
      }
      document.command.words[document.index] = body.join('\n');
      document.command.text = this.#text.slice(document.command.start, this.#position).trimEnd();
      this.#open.shift();
    }
  }

  #readWord(): void {
    const text = this.#text;
    const start = this.#position;
    if (this.#words.length === 0) this.#firstLine = this.#lineNumber;
    this.#isInWord = true;
    let value = '';
    let mayQuote = true;
    let isBare = true;
    while (this.#position < text.length) {
      const character = text[this.#position] ?? '';
      const next = text[this.#position + 1];
      if (character === '\n' || BLANK.test(character) || this.#isSeparator()) break;
      if (character === '\\' && (next === undefined || next === '\n')) {
        if (next === undefined) this.#missing = { kind: 'next-line' };
        else this.#step();
        this.#step();
      } else if (character === '\\' && ESCAPABLE.includes(next ?? '')) {
        value += next;
        this.#position += 2;
        mayQuote = true;
        isBare = false;
      } else if (mayQuote && (character === "'" || character === '"' || (character === '$' && next === "'"))) {
        value += this.#readQuoted(character === '$' ? "$'" : character);
        isBare = false;
      } else {
        value += character;
        this.#position++;
        mayQuote = character === '=' && text[start] === '-';
      }
    }
    // Nothing but the end of one line and the beginning of the next.
    if (isBare && value === '') {
      this.#isInWord = false;
      return;
    }
    const document = isBare ? DOCUMENT.exec(value) : null;
    if (document !== null) this.#documents.push({ mark: document[1] ?? '', index: this.#words.length });
    this.#words.push({ text: value, start });
  }

  #readQuoted(quote: Quote): string {
    const text = this.#text;
    const end = quote === '"' ? '"' : "'";
    let value = '';
    this.#position += quote.length;
    while (this.#position < text.length) {
      const character = text[this.#position] ?? '';
      if (character === end) {
        this.#position++;
        return value;
      }
      if (character === '\\' && quote !== "'" && this.#position + 1 < text.length) {
        value += quote === '"' ? this.#doubleQuotedEscape() : this.#dollarEscape();
      } else {
        value += character;
        this.#step();
      }
    }
    this.#missing ??= { kind: 'quote', quote };
    return value;
  }

  #doubleQuotedEscape(): string {
    const next = this.#text[this.#position + 1] ?? '';
    this.#position++;
    if (next !== '"' && next !== '\\') return '\\';
    this.#position++;
    return next;
  }

  #dollarEscape(): string {
    const code = /^\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4}))/.exec(
      this.#text.slice(this.#position, this.#position + 6),
    );
    if (code !== null) {
      this.#position += code[0].length;
      return String.fromCharCode(Number.parseInt(code[1] ?? code[2] ?? '', 16));
    }
    const next = this.#text[this.#position + 1] ?? '';
    this.#position++;
    this.#step();
    return ESCAPES[next] ?? (`\\'"`.includes(next) ? next : `\\${next}`);
  }
}
