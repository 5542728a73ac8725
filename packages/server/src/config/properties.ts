/**
 * Java's properties files, with line numbers.
 *
 *     # a comment, as is a line that starts with "!"
 *     key = value        the first unescaped "=", ":" or blank ends the key
 *     key  value
 *     key = one \        a backslash at the end of the line continues it on the next one,
 *           value        whose leading blanks do not count
 *     \u00e9, \t, \n, \r, \f, \\ and a backslash before any other character, which stands for that character
 *
 * @see java.util.Properties.load; the text is read as UTF-8 where Java reads ISO 8859-1
 */

/** One `key = value`; the value has no blanks around it. */
export interface Property {
  readonly key: string;
  readonly value: string;
  /** The line of the key, from 1; null when it is not in the file. */
  readonly line: number | null;
  /** Where it stands otherwise: the name of an environment variable. */
  readonly origin?: string;
}

/** Something in the file that cannot be read. */
export interface PropertyFault {
  readonly line: number;
  readonly found: string;
  readonly expected: string;
}

export interface PropertiesFile {
  /** In the order of the file, repeated keys included. */
  readonly properties: readonly Property[];
  readonly faults: readonly PropertyFault[];
}

export function parseProperties(text: string): PropertiesFile {
  const properties: Property[] = [];
  const faults: PropertyFault[] = [];
  const lines = splitLines(text);
  for (let i = 0; i < lines.length; i++) {
    const line = i + 1;
    let logical = trimStart(lines[i] ?? '');
    if (logical === '' || logical.startsWith('#') || logical.startsWith('!')) continue;
    while (endsInsideEscape(logical)) {
      logical = logical.slice(0, -1);
      if (i + 1 >= lines.length) break;
      i++;
      logical += trimStart(lines[i] ?? '');
    }
    const { key, value } = splitProperty(logical);
    const malformed = findMalformedEscape(key) ?? findMalformedEscape(value);
    if (malformed === null) properties.push({ key: unescapeText(key), value: unescapeText(value).trim(), line });
    else faults.push({ line, found: malformed, expected: '\\u and four hexadecimal digits' });
  }
  return { properties, faults };
}

/** Where a property stands, for messages. */
export function placeOfProperty(
  property: Property | undefined,
  file: string,
): { readonly file: string; readonly line: number | null } {
  return { file: property?.origin ?? file, line: property?.line ?? null };
}

/** The file as it may be shown: without passwords, and without digests of super users. Those in comments count, too. */
export function hideSecrets(text: string): string {
  const secrets = parseProperties(text).properties.filter(({ key }) => SECRET.test(key));
  const lines = splitLines(text);
  const comments = lines.flatMap((line, index) => (/^[ \t\f]*[#!]/.test(line) && SECRET.test(line) ? [index] : []));
  if (secrets.length + comments.length === 0) return text;
  for (const index of comments) lines[index] = '# ***';
  for (const { key, line } of secrets) {
    if (line === null) continue;
    // A value may span several lines.
    let end = line;
    while (end < lines.length && endsInsideEscape(lines[end - 1] ?? '')) end++;
    lines.fill('', line - 1, end);
    lines[line - 1] = `${key}=***`;
  }
  return lines.join('\n');
}

const SECRET = /passw|superdigest|secret/i;

function splitLines(text: string): string[] {
  return text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/);
}

function trimStart(line: string): string {
  return line.replace(/^[ \t\f]+/, '');
}

/** True when the last backslash is not itself escaped. */
function endsInsideEscape(line: string): boolean {
  let backslashes = 0;
  while (backslashes < line.length && line[line.length - 1 - backslashes] === '\\') backslashes++;
  return backslashes % 2 === 1;
}

function splitProperty(line: string): { readonly key: string; readonly value: string } {
  let end = 0;
  while (end < line.length && !/[=: \t\f]/.test(line[end] ?? '')) end += line[end] === '\\' ? 2 : 1;
  const value = /^[ \t\f]*[=:]?[ \t\f]*([\s\S]*)$/.exec(line.slice(end));
  return { key: line.slice(0, end), value: value?.[1] ?? '' };
}

/** The first `\u` without four hexadecimal digits behind it. */
function findMalformedEscape(text: string): string | null {
  for (let i = 0; i < text.length; i++) {
    if (text[i] !== '\\') continue;
    i++;
    if (text[i] === 'u' && !/^u[0-9a-fA-F]{4}/.test(text.slice(i, i + 5))) return `\\${text.slice(i, i + 5)}`;
  }
  return null;
}

const CONTROL_ESCAPES: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', f: '\f' };

function unescapeText(text: string): string {
  return text.replace(/\\(?:u([0-9a-fA-F]{4})|([\s\S]))/g, (_all, hex: string | undefined, character: string) =>
    hex === undefined ? (CONTROL_ESCAPES[character] ?? character) : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
