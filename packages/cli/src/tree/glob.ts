import { type CallOptions, type Client, joinPath, NoAuthError, NoNodeError } from '@meerkat/client';
import { InvocationFailure } from '../run/command-failure.ts';
import { pipelined } from './pipelined.ts';
import { walkTree } from './tree-walk.ts';

/*
 * Patterns of paths:
 *
 *     *        any characters of one name, or none
 *     ?        one character of a name
 *     [a-c]    one of these characters; [!a-c] one other character
 *     {a,b}    either; {1..20} a number of these, {01..20} with its zeros
 *     **       as a name of its own: znodes at any depth
 *     \        the next character stands for itself
 *
 * Everything else stands for itself: names of znodes are not names of files, so that a dot at the beginning hides nothing
 * and quotes, parentheses, plus and exclamation marks are characters like others. (The libraries for names of files have
 * more meanings than these, which cannot all be switched off; here a wrong match may delete something.)
 */

/** Whether the text must be expanded before it is the path of a znode. */
export function hasWildcard(text: string): boolean {
  return /[*?[{\\]/.test(text);
}

export interface GlobOptions {
  /** Upper and lower case are the same. Default false. */
  readonly ignoresCase?: boolean;
}

/** @returns whether a whole path is meant by the pattern; with a pattern without "/", whether a name is */
export function globMatcher(pattern: string, { ignoresCase = false }: GlobOptions = {}): (path: string) => boolean {
  const expression = compile(pattern, ignoresCase ? 'is' : 's');
  return (path) => expression.test(path);
}

function compile(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(`^${translate(pattern)}$`, flags);
  } catch (error) {
    throw new InvocationFailure(
      `"${pattern}" is no pattern: a range in brackets goes from the first to the last`,
      error,
    );
  }
}

/**
 * The paths of the znodes that a pattern means, parents before children, siblings in the order of their names. Only
 * what the pattern can mean is listed: for `/app/w-?/config` the children of /app.
 *
 * @param pattern absolute
 * @returns none when there is nothing like it; what may not be listed has nothing in it, as for local shells
 */
export async function expandGlob(client: Client, pattern: string, call: CallOptions): Promise<readonly string[]> {
  let found: string[] = ['/'];
  let areCertain = true;
  for (const segment of segmentsOf(pattern)) {
    if (segment === '**' || segment.includes('/')) return walkMatching(client, found, pattern, call);
    const name = literalOf(segment);
    areCertain = name === null;
    found =
      name === null ? await childrenLike(client, found, segment, call) : found.map((parent) => joinPath(parent, name));
  }
  return areCertain ? found : present(client, found, call);
}

async function childrenLike(
  client: Client,
  parents: readonly string[],
  segment: string,
  call: CallOptions,
): Promise<string[]> {
  const isMatch = globMatcher(segment);
  const found: string[] = [];
  const list = async (parent: string): Promise<readonly string[]> => {
    const names = await childrenOf(client, parent, call);
    return names.filter(isMatch).map((name) => joinPath(parent, name));
  };
  for await (const paths of pipelined(parents, list)) found.push(...paths);
  return found;
}

/** @returns an empty list when the znode does not exist, was deleted meanwhile, or may not be read */
async function childrenOf(client: Client, path: string, call: CallOptions): Promise<readonly string[]> {
  try {
    return (await client.children(path, call)).children.toSorted();
  } catch (error) {
    if (error instanceof NoNodeError || error instanceof NoAuthError) return [];
    throw error;
  }
}

async function present(client: Client, paths: readonly string[], call: CallOptions): Promise<readonly string[]> {
  const found: string[] = [];
  const look = async (path: string): Promise<string | null> => {
    try {
      return (await client.exists(path, call)) === null ? null : path;
    } catch (error) {
      // Newer servers refuse this of a znode that may not be read; it is there.
      if (error instanceof NoAuthError) return path;
      throw error;
    }
  };
  for await (const path of pipelined(paths, look)) if (path !== null) found.push(path);
  return found;
}

async function walkMatching(
  client: Client,
  roots: readonly string[],
  pattern: string,
  call: CallOptions,
): Promise<readonly string[]> {
  const isMatch = globMatcher(pattern);
  const found: string[] = [];
  for (const root of await present(client, roots, call)) {
    const walk = walkTree(client, root, { ...call, onRefused: () => {}, onMissing: () => {} });
    for await (const { path, depth } of walk) if (depth > 0 && isMatch(path)) found.push(path);
  }
  return found;
}

/** The names between slashes; a slash in braces is no border. */
function segmentsOf(pattern: string): readonly string[] {
  const segments: string[] = [];
  let segment = '';
  let braces = 0;
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern[i] ?? '';
    if (character === '\\') segment += character + (pattern[++i] ?? '');
    else if (character === '/' && braces === 0) {
      segments.push(segment);
      segment = '';
    } else {
      if (character === '{' && braceEnd(pattern, i) !== -1) braces++;
      if (character === '}' && braces > 0) braces--;
      segment += character;
    }
  }
  segments.push(segment);
  return segments.filter((text) => text !== '');
}

/** The name that a segment stands for; null when it has a wildcard. */
function literalOf(segment: string): string | null {
  if (/[*?[{]/.test(segment.replace(/\\./g, ''))) return null;
  return segment.replace(/\\(.)/g, '$1');
}

/** The same pattern as a regular expression. */
function translate(pattern: string): string {
  let text = '';
  for (let i = 0; i < pattern.length; i++) {
    const rest = pattern.slice(i);
    const deep = /^\/\*\*(?=\/|$)/.exec(rest);
    if (deep !== null) {
      text += rest.length > deep[0].length ? '(?:/[^/]+)*' : '(?:/[^/]+)+';
      i += deep[0].length - 1;
      continue;
    }
    const set = /^\[([!^](?!\])|(?![!^]))([^\]]+)\]/.exec(rest);
    if (set !== null) {
      text += `[${set[1] === '' ? '' : '^/'}${(set[2] ?? '').replace(/[^\w-]/g, '\\$&')}]`;
      i += set[0].length - 1;
      continue;
    }
    const character = pattern[i] ?? '';
    const end = character === '{' ? braceEnd(pattern, i) : -1;
    if (end !== -1) {
      text += translateBraces(pattern.slice(i + 1, end));
      i = end;
    } else if (character === '*') text += '[^/]*';
    else if (character === '?') text += '[^/]';
    else if (character === '\\') text += literally(pattern[++i] ?? '\\');
    else text += literally(character);
  }
  return text;
}

/** @param inner what stands between the braces */
function translateBraces(inner: string): string {
  const members = membersOf(inner);
  if (members.length > 1) return `(?:${members.map(translate).join('|')})`;
  const range = /^(\d+|[a-zA-Z])\.\.(\d+|[a-zA-Z])$/.exec(inner);
  const expanded = range === null ? null : rangeOf(range[1] ?? '', range[2] ?? '');
  return expanded === null ? `\\{${translate(inner)}\\}` : `(?:${expanded.join('|')})`;
}

/** Splits at commas outside of inner braces. */
function membersOf(inner: string): readonly string[] {
  const members: string[] = [];
  let start = 0;
  for (let i = 0; i < inner.length; i++) {
    if (inner[i] === '\\') i++;
    else if (inner[i] === '{') i = Math.max(i, braceEnd(inner, i));
    else if (inner[i] === ',') {
      members.push(inner.slice(start, i));
      start = i + 1;
    }
  }
  members.push(inner.slice(start));
  return members;
}

/** Where the brace closes that opens at `start`; -1 when it does not. */
function braceEnd(pattern: string, start: number): number {
  let depth = 0;
  for (let i = start; i < pattern.length; i++) {
    if (pattern[i] === '\\') i++;
    else if (pattern[i] === '{') depth++;
    else if (pattern[i] === '}' && --depth === 0) return i;
  }
  return -1;
}

/** Longer ranges stand for themselves. */
const RANGE_LENGTH_MAX = 10_000;

/** 1..20, 08..12 with its zeros, a..f. @returns null for what is no range, or too long */
function rangeOf(first: string, last: string): readonly string[] | null {
  const areNumbers = /\d/.test(first) && /\d/.test(last);
  const areLetters = !/\d/.test(first) && !/\d/.test(last);
  const [from, to] = areNumbers ? [Number(first), Number(last)] : [first.charCodeAt(0), last.charCodeAt(0)];
  const length = Math.abs(to - from) + 1;
  if (!(areNumbers || areLetters) || length > RANGE_LENGTH_MAX) return null;
  const hasZeros = [first, last].some((text) => text.length > 1 && text.startsWith('0'));
  const width = hasZeros ? Math.max(first.length, last.length) : 1;
  return Array.from({ length }, (_, i) => {
    const value = from <= to ? from + i : from - i;
    return literally(areNumbers ? String(value).padStart(width, '0') : String.fromCharCode(value));
  });
}

function literally(character: string): string {
  return character.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}
