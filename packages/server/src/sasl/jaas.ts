/**
 * The files in which Java programs keep their logins (JAAS), read as `sun.security.provider.ConfigFile` reads them.
 *
 *     file    = *section
 *     section = name "{" *entry "}" ";"
 *     entry   = class flag *(key "=" value) ";"
 *
 * Comments are those of Java. A word is letters, digits and `_ - $ * .`, and does not begin with a digit; everything else is
 * quoted with `"`. Such files hold passwords: what is told of a fault shows nothing that may be one.
 */

export interface JaasEntry {
  /** The login module: the name of a Java class. */
  readonly module: string;
  readonly options: ReadonlyMap<string, string>;
  readonly line: number;
}

/** Sections by their names. */
export type JaasSections = ReadonlyMap<string, readonly JaasEntry[]>;

/** Why a file cannot be read. */
export interface JaasFault {
  /** From 1. */
  readonly line: number;
  readonly found: string;
  readonly expected: string;
}

/** @param properties Java's system properties, for `${name}` in values */
export function parseJaas(
  text: string,
  properties: ReadonlyMap<string, string> = new Map(),
): { readonly sections: JaasSections } | { readonly fault: JaasFault } {
  try {
    return { sections: new JaasParser(text, properties).parse() };
  } catch (error) {
    if (!(error instanceof Misfit)) throw error;
    return { fault: error.fault };
  }
}

/** Ends the parsing; never leaves this file. */
class Misfit extends Error {
  readonly fault: JaasFault;

  constructor(line: number, found: string, expected: string) {
    super(expected);
    this.fault = { line, found, expected };
  }
}

interface Token {
  /** `text` is quoted; `mark` is a single character. */
  readonly kind: 'word' | 'text' | 'mark' | 'end';
  readonly value: string;
  readonly line: number;
}

const FLAGS: ReadonlySet<string> = new Set(['required', 'requisite', 'sufficient', 'optional']);

class JaasParser {
  readonly #text: string;
  readonly #properties: ReadonlyMap<string, string>;
  #at = 0;
  #line = 1;
  #token: Token;

  constructor(text: string, properties: ReadonlyMap<string, string>) {
    this.#text = text;
    this.#properties = properties;
    this.#token = this.#read();
  }

  parse(): JaasSections {
    const sections = new Map<string, readonly JaasEntry[]>();
    while (this.#token.kind !== 'end') {
      const { line } = this.#token;
      const name = this.#takeName('the name of a section');
      this.#takeMark('{', `"{" behind the name of section ${name}`);
      const entries: JaasEntry[] = [];
      while (!this.#isMark('}')) entries.push(this.#parseEntry());
      this.#takeMark('}', '"}"');
      this.#takeMark(';', `";" behind the "}" of section ${name}`);
      if (sections.has(name)) throw new Misfit(line, `section ${name} again`, 'each section once');
      sections.set(name, entries);
    }
    return sections;
  }

  #parseEntry(): JaasEntry {
    const { line } = this.#token;
    const module = this.#takeName('the class of a login module, or "}"');
    const flag = this.#token;
    if (flag.kind !== 'word' || !FLAGS.has(flag.value.toLowerCase())) {
      throw this.#misfit(`${[...FLAGS].join(', ')} behind the class ${module}`);
    }
    this.#next();
    const options = new Map<string, string>();
    while (!this.#isMark(';')) {
      const key = this.#takeName(`an option of ${module}, or ";"`);
      this.#takeMark('=', '"=" behind the name of an option');
      const value = this.#takeName('the value of an option, in double quotes unless it is a plain word');
      options.set(key, this.#expand(value));
    }
    this.#next();
    return { module, options, line };
  }

  #takeName(expected: string): string {
    const { kind, value } = this.#token;
    if (kind !== 'word' && kind !== 'text') throw this.#misfit(expected);
    this.#next();
    return value;
  }

  #takeMark(mark: string, expected: string): void {
    if (!this.#isMark(mark)) throw this.#misfit(expected);
    this.#next();
  }

  #isMark(mark: string): boolean {
    return this.#token.kind === 'mark' && this.#token.value === mark;
  }

  /** Words and texts may be parts of passwords. */
  #misfit(expected: string): Misfit {
    const { kind, value, line } = this.#token;
    const found =
      kind === 'end' ? 'the end of the file' : kind === 'text' ? 'a quoted text' : kind === 'word' ? 'a word' : value;
    return new Misfit(line, found, expected);
  }

  #expand(value: string): string {
    return value.replaceAll(/\$\{([^}]*)\}/g, (whole, name: string) => {
      if (name === '/') return '/';
      const known = this.#properties.get(name);
      if (known === undefined)
        throw new Misfit(this.#line, whole, 'a system property that is set; write the value itself');
      return known;
    });
  }

  #next(): void {
    this.#token = this.#read();
  }

  #read(): Token {
    this.#skipBlanks();
    const line = this.#line;
    const first = this.#text[this.#at];
    if (first === undefined) return { kind: 'end', value: '', line };
    if (first === '"') return { kind: 'text', value: this.#readText(line), line };
    WORD.lastIndex = this.#at;
    const word = WORD.exec(this.#text)?.[0];
    if (word !== undefined) {
      this.#at += word.length;
      return { kind: 'word', value: word, line };
    }
    this.#at++;
    // A digit may begin a password that should have been quoted.
    return { kind: 'mark', value: /\d/.test(first) ? 'a number' : first, line };
  }

  #skipBlanks(): void {
    for (;;) {
      BLANKS.lastIndex = this.#at;
      const blanks = BLANKS.exec(this.#text)?.[0] ?? '';
      if (blanks === '') return;
      this.#at += blanks.length;
      this.#line += blanks.split('\n').length - 1;
    }
  }

  #readText(line: number): string {
    let value = '';
    for (let at = this.#at + 1; at < this.#text.length; at++) {
      const character = this.#text[at]!;
      if (character === '"') {
        this.#at = at + 1;
        return value;
      }
      if (character === '\n' || character === '\r') break;
      if (character !== '\\') {
        value += character;
        continue;
      }
      ESCAPE.lastIndex = at + 1;
      const escaped = ESCAPE.exec(this.#text)?.[0] ?? '';
      value += readEscape(escaped);
      at += escaped.length;
    }
    throw new Misfit(line, 'a quoted text that does not end on its line', 'a closing "');
  }
}

function readEscape(escaped: string): string {
  return /^[0-7]/.test(escaped) ? String.fromCharCode(Number.parseInt(escaped, 8)) : (ESCAPES[escaped] ?? escaped);
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\u000b',
};
const BLANKS = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)+/y;
const WORD = /[\p{L}_$*.-][\p{L}\d_$*.-]*/uy;
/** Behind a backslash: up to three octal digits, or one character. */
const ESCAPE = /[0-3][0-7]{0,2}|[4-7][0-7]?|[^\n\r]/y;
