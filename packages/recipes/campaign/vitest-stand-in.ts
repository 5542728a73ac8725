/**
 * What the simulations import as `vitest` when they run outside of it: `test` and `describe` only collect the tests, so
 * that they can be run with one seed after the other.
 */
import { chai, expect as expectInVitest } from 'vitest';
import { seeds } from './seeds-stand-in.ts';

// Some of its matchers look for the running file, which only vitest itself knows.
expectInVitest.setState({ testPath: 'a simulation' });

/** vitest's, without counting assertions, which takes longer than most assertions themselves. */
export const expect: typeof chai.expect = Object.assign(
  ((value: unknown, message?: string) => chai.expect(value, message)) as typeof chai.expect,
  expectInVitest,
);

export interface SimulationTest {
  readonly title: string;
  /** Runs it with the current seed. */
  readonly run: () => unknown;
}

type Body<A extends unknown[]> = (...args: A) => unknown;
type Options = number | { readonly timeout?: number };

const groups: string[] = [];
let found: SimulationTest[] = [];

/** The tests of the modules loaded since the last call, in order. */
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

/** A test that loops over all seeds itself: the list holds one at a time. */
export function test(title: string, options: Options, body: Body<[]>): void;
export function test(title: string, body: Body<[]>, timeoutMs?: number): void;
export function test(title: string, first: Options | Body<[]>, second?: Body<[]> | number): void {
  const body = typeof first === 'function' ? first : second;
  if (typeof body !== 'function') throw new TypeError(`the test “${title}” has no body`);
  add(title, body);
}

/** One test per seed. */
test.each = (table: readonly number[]): ((title: string, body: Body<[number]>, timeoutMs?: number) => void) => {
  if (table !== seeds()) throw new TypeError('a simulation has tests of seeds() and of nothing else');
  return (title, body) => add(title, () => body(table[0] ?? 0));
};

function add(title: string, run: () => unknown): void {
  found.push({ title: [...groups, title.replace(/,? \(?seed %i\)?$/, '')].join(' › '), run });
}
