import { makeZxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { EnsembleScript } from './testing/ensemble-script.ts';

describe('an ensemble that violates no invariant', () => {
  it('has no violation while it elects, synchronizes and writes', () => {
    const script = new EnsembleScript().serve();
    for (let i = 0; i < 10; i++) script.write();
    expect(script.checker.violations).toEqual([]);
    expect(script.checker.committed).toHaveLength(10);
    expect(script.checker.lastCommitted).toBe(makeZxid(1, 10));
  });

  it('has no violation when its leader is lost and another one commits the last proposal', () => {
    const script = new EnsembleScript().serve();
    script.write();
    const open = script.nextTxn(3);
    script.spread(3, [2], open);
    script.crash(3);
    for (const server of [1, 2]) {
      script.disconnect(server, 3);
      script.role(server, 'looking');
    }
    script.elect(2, [1, 2], 2);
    script.begin(2, 2, [1]);
    expect(script.checker.lastCommitted).toBe(open.zxid);
    script.write(2, [1]);
    expect(script.checker.violations).toEqual([]);
  });

  it('has no violation when a proposal that no other server had is truncated', () => {
    const script = new EnsembleScript().serve();
    script.write();
    const lost = script.nextTxn(3);
    script.store(3, lost);
    script.crash(3);
    for (const server of [1, 2]) {
      script.disconnect(server, 3);
      script.role(server, 'looking');
    }
    script.elect(2, [1, 2], 2);
    script.begin(2, 2, [1]);
    script.write(2, [1]);
    for (const voter of [1, 2]) script.vote(voter, 3, { leader: 2, state: voter === 2 ? 2 : 1, electionEpoch: 2 });
    script.role(3, 'following', 2);
    script.greet(3, 2);
    script.promise(3, 2, 2);
    script.synchronize(3, 2, 2);
    script.upToDate(3, 2);
    expect(script.checker.violations).toEqual([]);
    expect(script.checker.committed.map(({ header }) => header.zxid)).not.toContain(lost.zxid);
  });

  it('reports at which server and when an invariant was violated', () => {
    const script = new EnsembleScript().serve();
    script.nowMs = 1234;
    script.epoch(2, 'acceptedEpoch', 0);
    expect(script.checker.violations[0]).toMatchObject({ invariant: 'E1', atMs: 1234, servers: [2] });
  });
});
