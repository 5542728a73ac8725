import { describe, expect, it } from 'vitest';
import { EnsembleScript, SESSION } from './testing/ensemble-script.ts';

const TIMEOUT_MS = 1000;

function expire(script: EnsembleScript, atMs: number): string[] {
  script.nowMs = atMs;
  script.trace(3, { kind: 'session-expired', sessionId: SESSION, timeoutMs: TIMEOUT_MS });
  return script.broken;
}

/** A client asks a server at 10,000 ms and is answered at 10,300 ms. */
function answered(server: number): EnsembleScript {
  const script = new EnsembleScript().serve();
  script.nowMs = 10_000;
  const asked = script.checker.onAsked(server, SESSION);
  script.nowMs = 10_300;
  script.checker.onAnswered(SESSION, asked);
  return script;
}

describe('S8', () => {
  it.each([
    [10_999, ['S8']],
    [11_000, []],
  ])('a leader that answered a request counts from when it was sent, and ends the session at %d', (atMs, broken) => {
    expect(expire(answered(3), atMs)).toEqual(broken);
  });

  it.each([
    [11_399, ['S8']],
    [11_400, []],
  ])('a learner says so with its next answer to a ping, and the session ends at %d', (atMs, broken) => {
    const script = answered(1);
    script.nowMs = 10_400;
    script.pong(1, 3);
    expect(expire(script, atMs)).toEqual(broken);
  });

  it('a learner may report the session while the request is in flight', () => {
    const script = new EnsembleScript().serve();
    script.nowMs = 10_000;
    const asked = script.checker.onAsked(1, SESSION);
    script.nowMs = 10_100;
    script.pong(1, 3);
    script.nowMs = 10_300;
    script.checker.onAnswered(SESSION, asked);
    script.nowMs = 10_400;
    script.pong(1, 3);
    expect(expire(script, 11_099)).toEqual(['S8']);
    expect(expire(new EnsembleScript().serve(), 11_099)).toEqual([]);
  });

  it.each([
    [11_499, true],
    [11_500, false],
  ])('a follower passes on what an observer of its own has said, and the session ends at %d', (atMs, isBroken) => {
    const script = new EnsembleScript().serve();
    const relayPong = (toMs: number): void => {
      script.nowMs = toMs;
      script.isRelayed = true;
      script.pong(4, 1);
      script.isRelayed = false;
    };
    relayPong(9000);
    script.pong(1, 3);
    script.nowMs = 10_000;
    const asked = script.checker.onAsked(4, SESSION);
    script.nowMs = 10_300;
    script.checker.onAnswered(SESSION, asked);
    relayPong(10_400);
    script.nowMs = 10_500;
    script.pong(1, 3);
    expect(expire(script, atMs).includes('S8')).toBe(isBroken);
  });

  it('nothing is known before a ping reply arrives, nor from a lost connection', () => {
    expect(expire(answered(1), 10_400)).toEqual([]);
    const script = answered(1);
    script.disconnect(1, 3);
    script.nowMs = 10_400;
    script.pong(1, 3);
    expect(expire(script, 10_500)).not.toContain('S8');
  });

  it('a leader of another term does not know when the session was last active', () => {
    const script = answered(3);
    script.role(3, 'looking');
    script.elect(3, [1, 2, 3], 2);
    expect(expire(script, 10_500)).not.toContain('S8');
  });
});
