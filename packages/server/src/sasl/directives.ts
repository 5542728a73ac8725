/*
 * What a client sends in DIGEST-MD5 (RFC 2831 §2.1.2), read as Java's SASL server reads it:
 *
 *     response  = *(blank / ",") directive *((blank / ",") [directive])      a name alone may stand at the very end
 *     directive = name blanks "=" blanks (quoted / plain)
 *     quoted    = <"> *(character / "\" character) <">          behind it a blank, a comma or the end
 *     plain     = *(anything but blanks and commas)
 */

/** Directives by their names in lower case. Values are bytes. */
export type Directives = ReadonlyMap<string, Buffer>;

/** Reads a response; null when it is no list of directives, or has one of those with a meaning (`KNOWN`) twice. */
export function parseDirectives(token: Uint8Array): Directives | null {
  const directives = new Map<string, Buffer>();
  let at = skipBlanks(token, 0);
  while (at < token.length) {
    if (token[at] === COMMA) {
      at = skipBlanks(token, at + 1);
      continue;
    }
    const nameEnd = findNameEnd(token, at);
    if (nameEnd === at) return null;
    if (nameEnd === token.length) break;
    const equals = skipBlanks(token, nameEnd);
    if (token[equals] !== EQUALS) return null;
    const name = Buffer.from(token.subarray(at, nameEnd)).toString('latin1').toLowerCase();
    const valueAt = skipBlanks(token, equals + 1);
    if (valueAt === token.length) return null;
    const value = token[valueAt] === QUOTE ? readQuoted(token, valueAt + 1) : readPlain(token, valueAt);
    if (value === null) return null;
    if (directives.has(name) && KNOWN.has(name)) return null;
    directives.set(name, value.bytes);
    at = skipBlanks(token, value.end);
  }
  return directives;
}

/** A quoted string. */
export function quote(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
}

interface Value {
  readonly bytes: Buffer;
  readonly end: number;
}

function readQuoted(token: Uint8Array, start: number): Value | null {
  const bytes: number[] = [];
  let at = start;
  for (; at < token.length && token[at] !== QUOTE; at++) {
    if (token[at] === BACKSLASH) at++;
    if (at === token.length) return null;
    bytes.push(token[at]!);
  }
  const end = at + 1;
  if (at === token.length || (end < token.length && token[end] !== COMMA && !isBlank(token[end]))) return null;
  return { bytes: Buffer.from(bytes), end };
}

function readPlain(token: Uint8Array, start: number): Value {
  let end = start;
  while (end < token.length && token[end] !== COMMA && !isBlank(token[end])) end++;
  return { bytes: Buffer.from(token.subarray(start, end)), end };
}

function findNameEnd(token: Uint8Array, start: number): number {
  let at = start;
  while (at < token.length && token[at] !== EQUALS && token[at] !== COMMA && !isBlank(token[at])) at++;
  return at;
}

function skipBlanks(token: Uint8Array, start: number): number {
  let at = start;
  while (at < token.length && isBlank(token[at])) at++;
  return at;
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

/** `nc` is not checked: a nonce is used only once here. */
const KNOWN: ReadonlySet<string> = new Set([
  'username',
  'realm',
  'nonce',
  'cnonce',
  'qop',
  'digest-uri',
  'response',
  'charset',
  'maxbuf',
  'authzid',
]);

const COMMA = 0x2c;
const EQUALS = 0x3d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
