import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { findQuorumProblem, makeQuorum, type QuorumShape } from './quorum.ts';

const VERDICTS = readFileSync(new URL('apache-verdicts.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('quorums '))
  .map((line) => /^quorums (.*) :(.*) \|(.*)$/.exec(line)!.slice(1) as [shape: string, yes: string, no: string]);

test.each(VERDICTS)('with %s, quorums are those of Apache ZooKeeper', (text, yes, no) => {
  const quorum = makeQuorum(parseShape(text));
  for (const set of yes.trim().split(' ')) expect(quorum.isReachedBy(parseSet(set)), `{${set}}`).toBe(set !== '');
  for (const set of no.trim().split(' ')) expect(quorum.isReachedBy(parseSet(set)), `{${set}}`).toBe(false);
});

const GROUPS = [
  [1, 2, 3],
  [4, 5, 6],
  [7, 8, 9],
];

describe('quorums', () => {
  it('share a voter with weight, any two of them', () => {
    const ids = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    const weight = fc.array(fc.nat(3), { minLength: 9, maxLength: 9 });
    const set = fc.subarray(ids);
    fc.assert(
      fc.property(weight, fc.boolean(), set, set, (all, isGrouped, a, b) => {
        const weights = new Map(ids.map((id, i) => [id, all[i]!]));
        const shape = isGrouped ? { voters: ids, groups: GROUPS, weights } : { voters: ids };
        fc.pre(findQuorumProblem(shape) === null);
        const quorum = makeQuorum(shape);
        if (!quorum.isReachedBy(a) || !quorum.isReachedBy(b)) return;
        expect(a.some((id) => b.includes(id) && quorum.weightOf(id) > 0)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it('are not reached by observers, strangers or the same server twice', () => {
    expect(makeQuorum({ voters: [1, 2, 3] }).isReachedBy([1, 8, 9, 1])).toBe(false);
    expect(makeQuorum({ voters: [1, 2, 3, 4, 5, 6, 7, 8, 9], groups: GROUPS }).isReachedBy([1, 1, 4, 4, 99])).toBe(
      false,
    );
  });

  it('do not count a group without weight (ZOOKEEPER-479)', () => {
    const weights = new Map([
      [7, 0],
      [8, 0],
      [9, 0],
    ]);
    const quorum = makeQuorum({ voters: GROUPS.flat(), groups: GROUPS, weights });
    expect(quorum.isReachedBy([1, 2, 4, 5])).toBe(true);
    expect(quorum.isReachedBy([1, 2, 7, 8, 9])).toBe(false);
  });

  it('give no weight to strangers', () => {
    expect(makeQuorum({ voters: [1, 2, 3] }).weightOf(4)).toBe(0);
    expect(makeQuorum({ voters: GROUPS.flat(), groups: GROUPS }).weightOf(10)).toBe(0);
  });
});

test.each<[string, QuorumShape]>([
  ['there is no voter', { voters: [] }],
  ['a voter is listed twice', { voters: [1, 2, 1] }],
  ['server 5 is in no group', { voters: [1, 2, 3, 4, 5], groups: [[1, 2, 3], [4]] }],
  [
    'server 3 is in more than one group',
    {
      voters: [1, 2, 3, 4],
      groups: [
        [1, 2, 3],
        [3, 4],
      ],
    },
  ],
  ['server 9 is in a group but is no voter', { voters: [1, 2, 3], groups: [[1, 2, 3, 9]] }],
  ['weights need groups (group.1=1:2:3)', { voters: [1, 2], weights: new Map([[1, 2]]) }],
  ['weight.2 is -1: it must be a whole number ≥ 0', { voters: [1, 2], groups: [[1, 2]], weights: new Map([[2, -1]]) }],
  ['every server has the weight 0: there can be no leader', { voters: [1], groups: [[1]], weights: new Map([[1, 0]]) }],
])('a configuration is refused because %s', (problem, shape) => {
  expect(findQuorumProblem(shape)).toBe(problem);
  expect(() => makeQuorum(shape)).toThrow(problem);
});

/** `voters=5 groups=1:2:3/4:5 weights=4=0,5=0` */
function parseShape(text: string): QuorumShape {
  const parts = new Map(
    text.split(' ').map((part) => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)]),
  );
  const groups =
    parts
      .get('groups')
      ?.split('/')
      .map((group) => group.split(':').map(Number)) ?? [];
  const weights =
    parts
      .get('weights')
      ?.split(',')
      .map((pair) => pair.split('=').map(Number) as [number, number]) ?? [];
  const voters = Array.from({ length: Number(parts.get('voters')) }, (_, i) => i + 1);
  return { voters, groups, weights: new Map(weights) };
}

function parseSet(digits: string): number[] {
  return [...digits].map(Number);
}
