import { makeZxid, ServerState, ZXID_NONE } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { EnsembleScript } from './testing/ensemble-script.ts';

describe('the rules of elections', () => {
  it('E9: a server changes its vote of one round for the worse', () => {
    const script = new EnsembleScript();
    script.vote(1, 2, { leader: 3, electionEpoch: 5 });
    script.vote(1, 2, { leader: 2, electionEpoch: 6 });
    expect(script.broken).toEqual([]);
    script.vote(1, 2, { leader: 1, electionEpoch: 6 });
    expect(script.broken).toEqual(['E9']);
  });

  it('E10: a server follows one for whom only itself has voted', () => {
    const script = new EnsembleScript();
    script.vote(1, 2, { leader: 3 });
    script.role(1, 'following', 3);
    expect(script.broken).toEqual(['E10']);
  });

  it('E10: votes of another round do not count', () => {
    const script = new EnsembleScript();
    script.vote(1, 2, { leader: 3, electionEpoch: 2 });
    script.vote(2, 1, { leader: 3, electionEpoch: 1 });
    script.role(1, 'following', 3);
    expect(script.broken).toEqual(['E10']);
  });

  it.each([
    [[1, 2], [3], []],
    [[1, 2, 3], [], ['E10']],
  ])(
    'E10: a server that is no member follows by a quorum of its own list, %j and itself',
    (voters, observers, broken) => {
      const script = new EnsembleScript({ voters, observers, spares: [4] });
      script.vote(4, 1, { leader: 1 });
      script.vote(1, 4, { leader: 1 });
      script.role(4, 'following', 1);
      expect(script.broken).toEqual(broken);
    },
  );

  it('E10 holds for a later round than the last one that a server could announce', () => {
    const script = new EnsembleScript();
    script.vote(1, 2, { leader: 1, electionEpoch: 1 });
    script.vote(2, 1, { leader: 3, electionEpoch: 2 });
    script.role(1, 'following', 3);
    expect(script.broken).toEqual([]);
  });

  it('E10 holds where the leader itself has said that it leads', () => {
    const script = new EnsembleScript();
    script.vote(1, 2, { leader: 1, electionEpoch: 9 });
    script.vote(3, 1, { leader: 3, state: ServerState.leading });
    script.role(1, 'following', 3);
    expect(script.broken).toEqual([]);
  });

  it('E10: a server follows one whose later notification says that it is looking', () => {
    const script = new EnsembleScript();
    script.vote(1, 2, { leader: 1, electionEpoch: 9 });
    script.vote(3, 1, { leader: 3, state: ServerState.leading });
    script.nowMs += 1;
    script.vote(3, 1, { leader: 3, electionEpoch: 2 });
    script.role(1, 'following', 3);
    expect(script.broken).toEqual(['E10']);
  });

  it('E10 holds where both notifications came in one chunk: the first may have decided', () => {
    const script = new EnsembleScript();
    script.vote(1, 2, { leader: 1, electionEpoch: 9 });
    script.vote(3, 1, { leader: 3, state: ServerState.leading });
    script.vote(3, 1, { leader: 3, electionEpoch: 2 });
    script.role(1, 'following', 3);
    expect(script.broken).toEqual([]);
  });

  it.each([
    ['holds once the first connection is gone', true, []],
    ['does not hold before', false, ['E10']],
  ])(
    'E10 by a vote that came on a second connection before the server looked for a leader %s',
    (_when, isGone, broken) => {
      const script = new EnsembleScript();
      script.elect(2);
      script.vote(3, 1, { leader: 3, electionEpoch: 2 });
      script.role(1, 'looking');
      script.vote(1, 2, { leader: 3, electionEpoch: 2 });
      if (isGone) script.disconnect(1, 3);
      script.role(1, 'following', 3);
      expect(script.broken).toEqual(broken);
    },
  );

  it('E12: a server is chosen whose data cannot be trusted', () => {
    const script = new EnsembleScript();
    for (const [from, to] of [
      [1, 2],
      [2, 1],
    ] as const) {
      script.vote(from, to, { leader: 3, zxid: ZXID_NONE });
    }
    script.role(1, 'following', 3);
    expect(script.broken).toEqual(['E12']);
  });

  it('E13: an observer leads', () => {
    const script = new EnsembleScript();
    script.role(4, 'leading', 4);
    expect(script.broken).toEqual(['E13']);
  });

  it('E14: a follower leads without an election', () => {
    const script = new EnsembleScript();
    script.elect(3);
    script.role(1, 'leading', 1);
    expect(script.broken).toEqual(['E14']);
  });

  it('a vote may start over on another connection', () => {
    const script = new EnsembleScript();
    script.vote(1, 2, { leader: 3, zxid: makeZxid(1, 1) });
    script.disconnect(1, 2);
    script.vote(1, 2, { leader: 1, zxid: makeZxid(0, 0) });
    expect(script.broken).toEqual([]);
  });
});
