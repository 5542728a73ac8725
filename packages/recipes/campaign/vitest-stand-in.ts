/**
 * What the simulations import as `vitest` when they run outside of it: `test` and `describe` only remember what there is to
 * run, so that it can be run with one seed after the other; `expect` is vitest's own.
 */
import { expect } from 'vitest';
import { seeds } from './seeds-stand-in.ts';

// Some of its matchers look for the file that runs, which only vitest itself knows.
expect.setState({ testPath: 'a simulation' });

export { expect };

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
