import type { Stat } from '@meerkat/client';
import { byteCount, count } from '../output/stat-columns.ts';
import { InvocationFailure } from '../run/command-failure.ts';
import { textOf } from '../value/value-kind.ts';

/** A znode at one moment. */
export interface ZnodeState {
  /** null: it is not there. */
  readonly stat: Stat | null;
  /** null: it is not there, or was not asked for. */
  readonly data: Uint8Array | null;
}

/** What is waited for. */
export interface Condition {
  /** As it was typed: `--children >=3`. */
  readonly shown: string;
  readonly needsData: boolean;
  readonly holds: (state: ZnodeState) => boolean;
}

/** Conditions as the command line has them. */
export interface ConditionWords {
  readonly exists?: boolean;
  readonly gone?: boolean;
  readonly children?: string;
  readonly value?: string;
  readonly valueMatches?: string;
  readonly dataVersion?: string;
}

/** All that is asked for; that the znode is there, when nothing is. @throws InvocationFailure */
export function parseConditions(words: ConditionWords): readonly Condition[] {
  const { gone, children, value, valueMatches, dataVersion: version } = words;
  const conditions: Condition[] = [];
  const add = (shown: string, needsData: boolean, holds: Condition['holds']): void => {
    conditions.push({ shown, needsData, holds });
  };
  if (children !== undefined) {
    const compare = parseComparison(children, '--children');
    add(`--children ${children}`, false, ({ stat }) => stat !== null && compare(stat.numChildren));
  }
  if (version !== undefined) {
    const compare = parseComparison(version, '--data-version');
    add(`--data-version ${version}`, false, ({ stat }) => stat !== null && compare(stat.version));
  }
  if (value !== undefined) {
    const wanted = new TextEncoder().encode(value);
    add(`--value ${JSON.stringify(value)}`, true, ({ data }) => data !== null && Buffer.compare(data, wanted) === 0);
  }
  if (valueMatches !== undefined) {
    const pattern = parsePattern(valueMatches);
    add(`--value-matches ${valueMatches}`, true, ({ data }) => {
      const text = data === null ? null : textOf(data);
      return text !== null && pattern.test(text);
    });
  }
  if (gone === true) {
    if (conditions.length > 0 || words.exists === true) {
      throw new InvocationFailure('--gone: a znode that is not there fulfils no other condition');
    }
    add('--gone', false, ({ stat }) => stat === null);
  }
  if (words.exists === true || conditions.length === 0) add('--exists', false, ({ stat }) => stat !== null);
  return conditions;
}

/** `>=3`, `<3`, `!=3`, `3`. */
function parseComparison(text: string, origin: string): (found: number) => boolean {
  const match = /^\s*(>=|<=|!=|==|=|>|<)?\s*(\d+)\s*$/.exec(text);
  if (match === null) {
    throw new InvocationFailure(
      `${origin}: expected a number, or a comparison such as '>=3' (in quotes), found "${text}"`,
    );
  }
  const wanted = Number(match[2]);
  const compare = COMPARISONS[match[1] ?? '='] ?? COMPARISONS['='];
  return (found) => compare?.(found, wanted) ?? false;
}

const COMPARISONS: Readonly<Record<string, (found: number, wanted: number) => boolean>> = {
  '=': (found, wanted) => found === wanted,
  '==': (found, wanted) => found === wanted,
  '!=': (found, wanted) => found !== wanted,
  '>=': (found, wanted) => found >= wanted,
  '<=': (found, wanted) => found <= wanted,
  '>': (found, wanted) => found > wanted,
  '<': (found, wanted) => found < wanted,
};

function parsePattern(text: string): RegExp {
  try {
    return new RegExp(text, 'su');
  } catch (error) {
    throw new InvocationFailure(`--value-matches: ${(error as Error).message}`, error);
  }
}

/** What a znode is like, to people. */
export function describeState({ stat }: ZnodeState): string {
  if (stat === null) return 'it is not there';
  const { version, numChildren, dataLength } = stat;
  const children = numChildren === 1 ? '1 child' : `${count(numChildren)} children`;
  return `it is there, with version ${version}, ${children} and ${byteCount(dataLength)}`;
}
