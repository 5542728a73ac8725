import { makeZxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { Electorate } from './electorate.ts';
import { makeQuorum } from './quorum.ts';

const zxid = makeZxid(1, 1);

describe('Electorate', () => {
  it('needs a quorum of the proposed configuration as well as of the committed one (ZOOKEEPER-1699)', () => {
    const electorate = new Electorate(makeQuorum({ voters: [1, 2, 3] }), makeQuorum({ voters: [3, 4, 5] }));
    expect(electorate.isQuorum([1, 2, 3])).toBe(false);
    expect(electorate.isQuorum([3, 4, 5])).toBe(false);
    expect(electorate.isQuorum([2, 3, 4])).toBe(true);
    expect([...electorate.voters]).toEqual([1, 2, 3, 4, 5]);
  });

  it('does not accept a majority of both configurations together as a quorum of each (CCF 3948)', () => {
    const electorate = new Electorate(makeQuorum({ voters: [1, 2, 3] }), makeQuorum({ voters: [3, 4, 5, 6, 7] }));
    expect(electorate.isQuorum([4, 5, 6, 7])).toBe(false);
    expect(electorate.isQuorum([1, 2, 4, 5])).toBe(false);
  });

  it('lets voters lead that have weight in the committed configuration, or are only in the proposed one', () => {
    const current = makeQuorum({ voters: [1, 2, 3], groups: [[1, 2, 3]], weights: new Map([[3, 0]]) });
    const electorate = new Electorate(current, makeQuorum({ voters: [1, 2, 3, 4] }));
    expect([1, 2, 3, 4, 5].filter((id) => electorate.canLead(id))).toEqual([1, 2, 4]);
  });

  it('ranks votes for a server without weight below votes for one that can lead (ZOOKEEPER-498)', () => {
    const current = makeQuorum({ voters: [1, 2, 3], groups: [[1, 2, 3]], weights: new Map([[3, 0]]) });
    const electorate = new Electorate(current);
    const weightless = { leader: 3, zxid: makeZxid(9, 9), peerEpoch: 9 };
    expect(electorate.isBetter(weightless, { leader: 1, zxid, peerEpoch: 1 })).toBe(false);
    expect(electorate.isBetter({ leader: 1, zxid, peerEpoch: 1 }, weightless)).toBe(true);
  });
});
