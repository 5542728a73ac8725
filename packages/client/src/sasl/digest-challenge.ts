/*
 * The server's messages in DIGEST-MD5, RFC 2831 §2.1.1 and §2.1.3, with the lists of RFC 2616 §2.1:
 *
 *     challenge = directive *("," [directive])          blanks are allowed around each part
 *     directive = name "=" (token / quoted)
 *     token     = 1*(any character but blanks, controls and separators)
 *     quoted    = <"> *(character / "\" character) <">
 */

/** Directives by their names in lower case, in order. Values are as sent, one byte per character. */
export type Directives = ReadonlyMap<string, readonly string[]>;

/**
 * Parses the directives of a challenge or of the final answer.
 *
 * @throws Error that says what is wrong
 */
export function parseDirectives(token: Uint8Array): Directives {
  if (token.length > TOKEN_BYTES_MAX) {
    throw new Error(`the SASL token of the server takes ${token.length} bytes, DIGEST-MD5 allows ${TOKEN_BYTES_MAX}`);
  }
  const text = Buffer.from(token).toString('latin1');
  const directives = new Map<string, string[]>();
  SEPARATORS.lastIndex = 0;
  for (;;) {
    SEPARATORS.exec(text);
    const at = SEPARATORS.lastIndex;
    if (at === text.length) return directives;
    DIRECTIVE.lastIndex = at;
    const found = DIRECTIVE.exec(text);
    if (found === null) throw malformed(text, at);
    const [, name = '', quoted, plain = ''] = found;
    const key = name.toLowerCase();
    const value = quoted === undefined ? plain : quoted.replaceAll(/\\(.)/gs, '$1');
    const known = directives.get(key);
    if (known === undefined) directives.set(key, [value]);
    else known.push(value);
    SEPARATORS.lastIndex = DIRECTIVE.lastIndex;
  }
}

/** The value of a directive that may occur once; null when it is missing. @throws Error when it occurs twice */
export function onlyValue(directives: Directives, name: string): string | null {
  const values = directives.get(name) ?? [];
  if (values.length > 1) throw new Error(`the SASL challenge of the server has ${values.length} times ${name}`);
  return values[0] ?? null;
}

/** A quoted string. */
export function quote(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
}

function malformed(text: string, at: number): Error {
  return new Error(`the SASL token of the server is no list of directives: ${JSON.stringify(text.slice(at, at + 40))}`);
}

const SEPARATORS = /[\s,]*/g;
const DIRECTIVE = /([!#$%&'*+.^_`|~\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,;:"()<>@\\/[\]?={}]+))\s*(?=,|$)/gsy;
/** Maximum of each token (RFC 2831 §2.1.1). */
const TOKEN_BYTES_MAX = 2048;
