import { OpCode } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { EnsembleScript, SESSION } from './testing/ensemble-script.ts';

const TIMEOUT_MS = 1000;
const REMOTE = { ip: Uint8Array.of(10, 0, 0, 1), host: '10.0.0.1', port: 1 };
/** The timeout, syncLimit and ten ticks. */
const LATEST_MS = TIMEOUT_MS + 1500;

/** Server 3 leads. A session is created at 1000 ms. */
function withSession(): EnsembleScript {
  const script = new EnsembleScript();
  script.nowMs = 1000;
  script.serve();
  script.write(3, [1, 2], script.nextTxn(3, { type: OpCode.createSession, timeoutMs: TIMEOUT_MS }));
  look(script, 1000);
  return script;
}

/** @returns whether S14 is violated when the leader serves at this moment */
function look(script: EnsembleScript, atMs: number): boolean {
  script.nowMs = atMs;
  script.checker.onServing(3);
  return script.broken.includes('S14');
}

/** Whether the leader may still keep the session so long after `sinceMs`, and no longer. */
function expectUntil(script: EnsembleScript, sinceMs: number): void {
  expect(look(script, sinceMs + LATEST_MS)).toBe(false);
  expect(look(script, sinceMs + LATEST_MS + 100)).toBe(true);
}

describe('S14', () => {
  it('a leader ends a session that nothing was heard of', () => {
    expectUntil(withSession(), 1000);
  });

  it.each<[string, (script: EnsembleScript) => void]>([
    ['its client sends a request', (script) => void script.checker.onAsked(1, SESSION)],
    ['a learner reports it', (script) => script.pong(1, 3, [SESSION])],
    [
      'its client connects again',
      (script) =>
        script.trace(2, { kind: 'session-resumed', sessionId: SESSION, timeoutMs: TIMEOUT_MS, remote: REMOTE }),
    ],
    ['its leader is paused until then', (script) => script.checker.onResumed(3)],
  ])('the time starts again when %s', (_what, act) => {
    const script = withSession();
    script.nowMs = 2000;
    act(script);
    expectUntil(script, 2000);
  });

  it.each<[string, boolean, (script: EnsembleScript) => void]>([
    ['of its client', true, (script) => script.disconnect(1, 3)],
    ['of its client is silent for the leader', true, (script) => closed(script, 1)],
    ['of others', false, (script) => script.disconnect(2, 3)],
  ])('the time starts again when the server %s leaves the leader: %s', (_whose, isLonger, act) => {
    const script = withSession();
    script.checker.onAsked(1, SESSION);
    script.nowMs = 2000;
    act(script);
    expectUntil(script, isLonger ? 2000 : 1000);
  });

  it('the timeout is the longest that its client was given', () => {
    const script = withSession();
    script.trace(1, { kind: 'session-resumed', sessionId: SESSION, timeoutMs: 3 * TIMEOUT_MS, remote: REMOTE });
    expectUntil(script, 1000 + 2 * TIMEOUT_MS);
  });

  it('a session that has ended, or whose end the leader has decided, is not overdue', () => {
    const ended = withSession();
    ended.write(3, [1, 2], ended.nextTxn(3, { type: OpCode.closeSession, paths: [] }));
    const expired = withSession();
    expired.trace(3, { kind: 'session-expired', sessionId: SESSION, timeoutMs: TIMEOUT_MS });
    const closing = withSession();
    closing.propose(3, 1, closing.nextTxn(3, { type: OpCode.closeSession, paths: [] }));
    for (const script of [ended, expired, closing]) expect(look(script, 20_000)).toBe(false);
  });

  it('a new leader gives every session its whole timeout', () => {
    const script = withSession();
    script.nowMs = 3000;
    script.role(3, 'looking');
    script.elect(3, [1, 2, 3], 2);
    script.begin(3, 2, [1, 2]);
    expectUntil(script, 3000);
  });
});

function closed(script: EnsembleScript, serverId: number): void {
  script.trace(3, { kind: 'learner-closed', serverId, reason: 'it is silent' });
}
