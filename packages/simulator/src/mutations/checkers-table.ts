import type { Catch, CheckersOff } from './checkers-off.ts';
import type { Mutation } from './mutation.ts';
import { type PageTable, renewRows, rowsOf } from './page-table.ts';

const BY_MUTATION: PageTable = {
  begin: '<!-- checkers switched off: written by npm run mutations -- --checkers --record -->',
  end: '<!-- end of checkers switched off -->',
  head: [
    '| mutation | first seed that fails, and the promises it breaks | with one of these switched off |',
    '| --- | --- | --- |',
  ],
};

const BY_PROMISE: PageTable = {
  begin: '<!-- promises: written by npm run mutations -- --checkers --record -->',
  end: '<!-- end of promises -->',
  head: [
    '| promise | mutations that break it | noticed by no other | unit tests that fail without its checker |',
    '| --- | --: | --- | --: |',
  ],
};

/** The page with new rows for these mutations, and the sums of all rows by promise. */
export function renewCheckers(
  page: string,
  mutations: readonly Mutation[],
  results: readonly CheckersOff[],
  promises: readonly string[],
  testsWithout: ReadonlyMap<string, number>,
): string {
  const rows = new Map(results.map((result) => [result.id, formatRow(result)]));
  const ids = mutations.map(({ id }) => id);
  const renewed = renewRows(page, BY_MUTATION, ids, rows);
  const sums = sumsOf(rowsOf(renewed, BY_MUTATION));
  const before = new Map(rowsOf(page, BY_PROMISE).map((row) => [cellsOf(row)[0]!, cellsOf(row)[3]!]));
  const promiseRows = promises.map((promise): [string, string] => {
    const { count, alone } = sums.get(promise) ?? { count: 0, alone: [] };
    const tests = testsWithout.get(promise) ?? before.get(`\`${promise}\``) ?? '';
    return [promise, `| \`${promise}\` | ${count} | ${alone.join(', ')} | ${tests} |`];
  });
  return renewRows(renewed, BY_PROMISE, promises, new Map(promiseRows));
}

function formatRow({ id, caught, without }: CheckersOff): string {
  const others = [...without].map(([invariant, other]) => `${invariant}: ${formatCatch(other)}`);
  return `| \`${id}\` | ${formatCatch(caught)} | ${others.join('; ')} |`;
}

function formatCatch(caught: Catch | null): string {
  return caught === null ? NOTHING : `seed ${caught.seed}, ${caught.invariants.join(' ')}`;
}

/** By promise: how many mutations break it, and which of them nothing else notices. */
function sumsOf(rows: readonly string[]): Map<string, { count: number; readonly alone: string[] }> {
  const sums: Map<string, { count: number; readonly alone: string[] }> = new Map();
  for (const row of rows) {
    const [id = '', caught = '', without = ''] = cellsOf(row);
    for (const promise of caught.split(', ')[1]?.split(' ') ?? []) {
      const sum = sums.get(promise) ?? { count: 0, alone: [] };
      sums.set(promise, sum);
      sum.count++;
      if (without.split('; ').includes(`${promise}: ${NOTHING}`)) sum.alone.push(id);
    }
  }
  return sums;
}

function cellsOf(row: string): readonly string[] {
  return row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}

const NOTHING = 'nothing';
