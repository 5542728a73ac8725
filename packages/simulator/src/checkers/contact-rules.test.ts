import { describe, expect, it } from 'vitest';
import { EnsembleScript } from './testing/ensemble-script.ts';

/** Server 3 leads servers 1 and 2; all were last heard at 1000 ms. The limit is 5 ticks, and 2 to notice it. */
function serving(): EnsembleScript {
  const script = new EnsembleScript();
  script.nowMs = 1000;
  return script.serve();
}

function serve(script: EnsembleScript, server: number, atMs: number): string[] {
  script.nowMs = atMs;
  script.checker.onServing(server);
  return script.broken;
}

describe('L4', () => {
  it('a leader keeps serving as long as one of two followers answers', () => {
    const script = serving();
    for (let atMs = 1200; atMs <= 4000; atMs += 200) {
      script.nowMs = atMs;
      script.ping(3, 1);
      expect(serve(script, 3, atMs + 100)).toEqual([]);
    }
  });

  it.each([
    [1700, []],
    [1701, ['L4']],
  ])('a leader without contact to any follower since 1000 serves at %d', (atMs, broken) => {
    expect(serve(serving(), 3, atMs)).toEqual(broken);
  });

  it.each([
    [1700, []],
    [1701, ['L4']],
  ])('a follower without contact to its leader since 1000 serves at %d', (atMs, broken) => {
    expect(serve(serving(), 1, atMs)).toEqual(broken);
  });

  it('a follower that has only just been sent UPTODATE is given syncLimit, one that is joining initLimit', () => {
    const script = new EnsembleScript();
    script.nowMs = 1000;
    script.elect(3);
    script.begin(3, 1, [1]);
    script.nowMs = 1500;
    script.greet(2, 3);
    // Follower 1 is silent; follower 2 forms a quorum with the leader while it may still join.
    expect(serve(script, 3, 3700)).toEqual([]);
    expect(serve(script, 3, 3701)).toEqual(['L4']);
  });

  it('a follower that waited for the others is given syncLimit from UPTODATE on', () => {
    const script = new EnsembleScript();
    script.nowMs = 1000;
    script.elect(3);
    script.discover(3, 1, [1, 2]);
    script.synchronize(1, 3, 1);
    script.nowMs = 2500;
    script.establish(3, 1);
    script.upToDate(1, 3);
    expect(serve(script, 3, 3200)).toEqual([]);
    expect(serve(script, 3, 3201)).toEqual(['L4']);
  });

  it('a connection that is closed counts for no longer than one that is silent', () => {
    const script = serving();
    for (const follower of [1, 2]) script.disconnect(follower, 3);
    expect(serve(script, 3, 1700)).toEqual([]);
    expect(serve(script, 3, 1701)).toEqual(['L4']);
  });

  it('an observer does not count for a quorum', () => {
    const script = serving();
    script.observe(4, 3, 1);
    script.upToDate(4, 3);
    script.nowMs = 1600;
    script.ping(3, 4);
    expect(serve(script, 3, 1701)).toEqual(['L4']);
  });

  it('a process that was paused is given two ticks', () => {
    const script = serving();
    script.nowMs = 5000;
    script.checker.onResumed(3);
    expect(serve(script, 3, 5200)).toEqual([]);
    expect(serve(script, 3, 5201)).toEqual(['L4']);
  });

  it('a server that has left its role is not checked', () => {
    const script = serving();
    script.role(3, 'looking');
    expect(serve(script, 3, 9000)).toEqual([]);
  });
});
