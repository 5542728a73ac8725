import { describe, expect, it } from 'vitest';
import type { Operation } from '../history.ts';
import { ClientScript } from './testing/client-script.ts';

/** Client c2 waits for what c1 does; `/a` is there. */
function waiting(): { script: ClientScript; read: Operation; watch: Operation } {
  const script = new ClientScript();
  script.connect('c1');
  script.connect('c2');
  script.make('c1', '/a');
  const read = script.read('c2', 'get', '/a', { hasWatch: true });
  const watch = script.send('c2', { op: 'watch', path: '/a', isRecursive: false });
  script.reply(watch, script.lastZxid, { result: { op: 'watch' } });
  return { script, read, watch };
}

describe('W7: when everything is at rest and every znode changes', () => {
  it.each([
    ['both are told', true, true, []],
    ['the one-shot watch is not', false, true, ['W7']],
    ['the persistent watch is not', true, false, ['W7']],
  ])('%s', (_what, hasReadEvent, hasWatchEvent, broken) => {
    const { script, read, watch } = waiting();
    script.stir(() => {
      const { zxid } = script.set('c1', '/a', 'x', 1);
      script.event('c2', 'changed', '/a', zxid);
      if (hasReadEvent) script.notified(read, 'changed', '/a', zxid);
      if (hasWatchEvent) script.notified(watch, 'changed', '/a', zxid);
    });
    expect(script.broken).toEqual(broken);
  });

  it('a watch that has fired before is not waited for', () => {
    const { script, read, watch } = waiting();
    const first = script.set('c1', '/a', 'x', 1);
    script.event('c2', 'changed', '/a', first.zxid);
    for (const operation of [read, watch]) script.notified(operation, 'changed', '/a', first.zxid);
    script.stir(() => {
      const { zxid } = script.set('c1', '/a', 'y', 2);
      script.notified(watch, 'changed', '/a', zxid);
    });
    expect(script.violations).toEqual([]);
  });

  it('a program that has ended, or has removed its watch, waits for nothing', () => {
    const { script, watch } = waiting();
    script.history.unwatch(watch);
    script.end('c2');
    script.stir(() => script.set('c1', '/a', 'x', 1));
    expect(script.violations).toEqual([]);
  });

  it('a persistent watch has a gap where its client connects again', () => {
    const { script, read, watch } = waiting();
    script.stir(() => {
      const { zxid } = script.set('c1', '/a', 'x', 1);
      script.connect('c2');
      script.notified(read, 'changed', '/a', zxid);
      script.notified(watch, 'gap', '', null);
    });
    expect(script.violations).toEqual([]);
  });
});

describe('S8: a server reports a session as ended', () => {
  it('that was never ended', () => {
    const { script } = waiting();
    script.refuse('c2');
    expect(script.broken).toEqual(['S8']);
  });

  it('that was ended by a leader, by its own client, or by a txn', () => {
    for (const end of ['expired', 'closed', 'committed']) {
      const { script } = waiting();
      const { sessionId } = script.connect('c2');
      if (end === 'expired') script.history.note({ kind: 'expired', sessionId });
      if (end === 'closed') script.send('c2', { op: 'close' });
      if (end === 'committed') script.commit({ type: -11, paths: [] }, sessionId);
      script.refuse('c2');
      expect(script.violations, end).toEqual([]);
    }
  });
});

describe('S11: a client reconnects', () => {
  const notified = (sessionId: bigint, sameSession: boolean): string[] => {
    const script = new ClientScript();
    const note = (state: string, id: bigint, isSame: boolean): void =>
      void script.history.note({ kind: 'state', client: 'c1', state, sessionId: id, sameSession: isSame, reason: '' });
    note('connected', 1n, true);
    note('suspended', 1n, true);
    note('connected', sessionId, sameSession);
    note('closed', sessionId, true);
    note('connected', 9n, true);
    return script.broken;
  };

  it.each([
    ['with its session and says so', 1n, true, []],
    ['with another one and says so', 2n, false, []],
    ['with another one and says that it is the same', 2n, true, ['S11']],
    ['with its session and says that it is another', 1n, false, ['S11']],
  ] as const)('%s', (_how, sessionId, sameSession, broken) => expect(notified(sessionId, sameSession)).toEqual(broken));
});
