import { readFileSync } from 'node:fs';
import { makeZxid, type Zxid } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { Electorate } from './electorate.ts';
import { makeQuorum } from './quorum.ts';
import { compareVotes, isSameVote, NO_VOTE, type Vote } from './vote.ts';

const vote: fc.Arbitrary<Vote> = fc
  .record({ leader: fc.integer({ min: 1, max: 4 }), epoch: fc.nat(2), counter: fc.nat(2), peerEpoch: fc.nat(2) })
  .map(({ leader, epoch, counter, peerEpoch }) => ({ leader, zxid: makeZxid(epoch, counter), peerEpoch }));

describe('the order of votes', () => {
  it('is total and transitive, so that no cycle keeps an election going (ZOOKEEPER-1419)', () => {
    fc.assert(
      fc.property(vote, vote, vote, (a, b, c) => {
        expect(compareVotes(a, b)).toBe(-compareVotes(b, a) + 0);
        expect(compareVotes(a, b) === 0).toBe(isSameVote(a, b));
        if (compareVotes(a, b) > 0 && compareVotes(b, c) > 0) expect(compareVotes(a, c)).toBe(1);
      }),
    );
  });

  it('compares the adopted epoch before the zxid, and the zxid before the id', () => {
    const best = { leader: 1, zxid: makeZxid(1, 1), peerEpoch: 3 };
    const longer = { leader: 2, zxid: makeZxid(2, 9), peerEpoch: 2 };
    const higher = { leader: 3, zxid: makeZxid(2, 8), peerEpoch: 2 };
    expect([higher, best, longer].sort(compareVotes)).toEqual([higher, longer, best]);
  });

  it('ranks a vote without a candidate below every other, including an untrusted one', () => {
    expect(compareVotes(NO_VOTE, { leader: 0, zxid: -1 as Zxid, peerEpoch: 0 })).toBe(-1);
  });
});

const ORDERS = readFileSync(new URL('apache-verdicts.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('order '));

test('the order of votes is that of Apache ZooKeeper', () => {
  const weights = new Map([[3, 0]]);
  const groups = [
    [1, 2, 3],
    [4, 5],
  ];
  const electorate = new Electorate(makeQuorum({ voters: groups.flat(), groups, weights }));
  for (const line of ORDERS) {
    const [, vote, , other, verdict] = line.split(' ') as [string, string, string, string, string];
    expect(electorate.isBetter(parseVote(vote), parseVote(other)), line).toBe(verdict === 'true');
  }
  expect(ORDERS.length).toBeGreaterThan(100);
});

function parseVote(text: string): Vote {
  const [leader, zxid, peerEpoch] = text.split(',') as [string, string, string];
  return { leader: Number(leader), zxid: Number.parseInt(zxid, 16) as Zxid, peerEpoch: Number(peerEpoch) };
}
