/**
 * What the simulations import as `vitest` when they run outside of it: `test` and `describe` only remember what there is to
 * run, so that it can be run with one seed after the other.
 */
import { chai, expect as expectInVitest } from 'vitest';
import { seeds } from './seeds-stand-in.ts';

// Some of its matchers look for the file that runs, which only vitest itself knows.
expectInVitest.setState({ testPath: 'a simulation' });

/** vitest's, but that it does not count how often it is asked, which takes more time than most of the answers. */
export const expect: typeof chai.expect = Object.assign(
  ((value: unknown, message?: string) => chai.expect(value, message)) as typeof chai.expect,
  expectInVitest,
);

export interface SimulationTest {
  readonly title: string;
  /** Runs it with the seed that is set. */
  readonly run: () => unknown;
}

type Body<A extends unknown[]> = (...args: A) => unknown;
type Options = number | { readonly timeout?: number };

const groups: string[] = [];
let found: SimulationTest[] = [];

/** The tests of the modules that were loaded since the last time, in their order. */
export function takeTests(): SimulationTest[] {
  const tests = found;
  found = [];
  return tests;
}

export function describe(title: string, body: () => void): void {
  groups.push(title);
  body();
  groups.pop();
}

/** A test that goes through all seeds by itself: there is one at a time. */
export function test(title: string, options: Options, body: Body<[]>): void;
export function test(title: string, body: Body<[]>, timeoutMs?: number): void;
export function test(title: string, first: Options | Body<[]>, second?: Body<[]> | number): void {
  const body = typeof first === 'function' ? first : second;
  if (typeof body !== 'function') throw new TypeError(`the test “${title}” has no body`);
  add(title, body);
}

/** A test of each seed. */
test.each = (table: readonly number[]): ((title: string, body: Body<[number]>, timeoutMs?: number) => void) => {
  if (table !== seeds()) throw new TypeError('a simulation has tests of seeds() and of nothing else');
  return (title, body) => add(title, () => body(table[0] ?? 0));
};

function add(title: string, run: () => unknown): void {
  found.push({ title: [...groups, title.replace(/,? \(?seed %i\)?$/, '')].join(' › '), run });
}
