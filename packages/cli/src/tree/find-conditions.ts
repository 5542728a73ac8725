import { nameOf } from '@meerkat/client';
import { parseDuration } from '../connection/duration.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import { parseByteSize } from '../value/byte-size.ts';
import { globMatcher } from './glob.ts';
import type { Visited } from './tree-walk.ts';

/** What `find` is asked for, as words. */
export interface FindWords {
  /** Patterns; any of them. */
  readonly name?: readonly string[];
  readonly path?: readonly string[];
  readonly regex?: string;
  readonly ignoreCase?: boolean;
  readonly ephemeral?: boolean;
  readonly persistent?: boolean;
  readonly owner?: string;
  readonly newer?: string;
  readonly older?: string;
  readonly larger?: string;
  readonly smaller?: string;
  readonly empty?: boolean;
  readonly leaf?: boolean;
}

export type FindCondition = (znode: Visited) => boolean;

/**
 * All that is asked for must hold.
 *
 * @param nowMs the clock of this machine; times of znodes are those of the servers' clocks
 * @throws InvocationFailure when a word is no time, size …
 */
export function makeCondition(words: FindWords, nowMs: number): FindCondition {
  const conditions = conditionsOf(words, nowMs);
  return (znode) => conditions.every((holds) => holds(znode));
}

function conditionsOf(words: FindWords, nowMs: number): readonly FindCondition[] {
  const { name, path, regex, owner, newer, older, larger, smaller } = words;
  const ignoresCase = words.ignoreCase === true;
  const conditions: FindCondition[] = [];
  if (name !== undefined) {
    const matchers = name.map((pattern) => globMatcher(pattern, { ignoresCase }));
    conditions.push((znode) => matchers.some((isMatch) => isMatch(nameOf(znode.path))));
  }
  if (path !== undefined) {
    const matchers = path.map((pattern) => globMatcher(pattern, { ignoresCase }));
    conditions.push((znode) => matchers.some((isMatch) => isMatch(znode.path)));
  }
  if (regex !== undefined) {
    const expression = parseExpression(regex, ignoresCase ? 'i' : '', '--regex');
    conditions.push((znode) => expression.test(znode.path));
  }
  if (words.ephemeral === true) conditions.push(({ stat }) => stat.isEphemeral);
  if (words.persistent === true) conditions.push(({ stat }) => !stat.isEphemeral);
  if (owner !== undefined) {
    const session = parseSession(owner);
    conditions.push(({ stat }) => stat.isEphemeral && BigInt.asUintN(64, stat.ephemeralOwner) === session);
  }
  if (newer !== undefined) {
    const sinceMs = nowMs - parseDuration(newer, '--newer');
    conditions.push(({ stat }) => stat.mtime > sinceMs);
  }
  if (older !== undefined) {
    const untilMs = nowMs - parseDuration(older, '--older');
    conditions.push(({ stat }) => stat.mtime <= untilMs);
  }
  if (larger !== undefined) {
    const bytes = parseByteSize(larger, '--larger');
    conditions.push(({ stat }) => stat.dataLength > bytes);
  }
  if (smaller !== undefined) {
    const bytes = parseByteSize(smaller, '--smaller');
    conditions.push(({ stat }) => stat.dataLength < bytes);
  }
  if (words.empty === true) conditions.push(({ stat }) => stat.dataLength === 0);
  if (words.leaf === true) conditions.push(({ stat }) => stat.numChildren === 0);
  return conditions;
}

/** @param origin what it belongs to, for the error */
export function parseExpression(text: string, flags: string, origin: string): RegExp {
  try {
    return new RegExp(text, flags);
  } catch (error) {
    throw new InvocationFailure(`${origin}: ${(error as Error).message}`, error);
  }
}

/** A session id as usual: 0x100abc, or the same digits alone. */
function parseSession(text: string): bigint {
  if (/^(?:0x)?[0-9a-f]{1,16}$/i.test(text)) return BigInt(`0x${text.replace(/^0x/i, '')}`);
  throw new InvocationFailure(`--owner: expected the id of a session, such as 0x100000a1b2c0001, found "${text}"`);
}
