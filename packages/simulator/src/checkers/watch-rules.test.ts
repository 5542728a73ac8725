import { makeZxid, OpCode } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { ClientScript, deleteTxn } from './testing/client-script.ts';

/** Client c2 watches what c1 does; `/a` is there. */
function watching(): ClientScript {
  const script = new ClientScript();
  script.connect('c1');
  script.connect('c2');
  script.make('c1', '/a');
  return script;
}

describe('a watch for one change', () => {
  it('behaves correctly', () => {
    const script = watching();
    const read = script.read('c2', 'get', '/a', { hasWatch: true });
    const { zxid } = script.set('c1', '/a', 'x', 1);
    script.event('c2', 'changed', '/a', zxid);
    script.notified(read, 'changed', '/a', zxid);
    script.read('c2', 'get', '/a');
    expect(script.violations).toEqual([]);
  });

  it('W1: a reply shows the change before the event', () => {
    const script = watching();
    script.read('c2', 'get', '/a', { hasWatch: true });
    const { zxid } = script.set('c1', '/a', 'x', 1);
    script.read('c2', 'get', '/a');
    expect(script.broken).toEqual(['W1']);
    script.event('c2', 'changed', '/a', zxid);
    expect(script.violations).toHaveLength(2);
  });

  it.each([
    ['of a change that was missed', 'exists', true, []],
    ['of a change that was missed', 'children', true, []],
    ['of none', 'exists', false, ['W4']],
    ['of none', 'children', false, ['W4']],
  ] as const)('notifies on another connection %s: the watch of %s', (_what, op, isChanged, broken) => {
    const script = watching();
    const read = script.read('c2', op, op === 'exists' ? '/b' : '/a', { hasWatch: true });
    const relative = script.lastZxid;
    if (isChanged) script.make('c1', op === 'exists' ? '/b' : '/a/b');
    script.connect('c2');
    script.rearm('c2', relative, op === 'exists' ? { exist: ['/b'] } : { child: ['/a'] });
    const [type, path] = op === 'exists' ? (['created', '/b'] as const) : (['children', '/a'] as const);
    script.event('c2', type, path, null);
    script.notified(read, type, path, null);
    script.read('c2', 'get', '/a');
    script.make('c1', '/later');
    expect(script.broken).toEqual(broken);
  });

  it('of children notifies on another connection when the client says that it has seen nothing, not even the znode', () => {
    const script = watching();
    const read = script.read('c2', 'children', '/a', { hasWatch: true });
    script.connect('c2');
    script.rearm('c2', 0, { child: ['/a'] });
    script.event('c2', 'children', '/a', null);
    script.notified(read, 'children', '/a', null);
    script.read('c2', 'get', '/a');
    script.make('c1', '/later');
    expect(script.broken).toEqual([]);
  });

  it.each([
    ['beside a recursive watch', ['/a'], []],
    ['without a recursive watch', [], ['W4']],
  ] as const)('of children notifies of a child that another watch has waited for, %s', (_what, recursive, broken) => {
    const script = watching();
    script.make('c1', '/a/b');
    const read = script.read('c2', 'children', '/a', { hasWatch: true });
    const relative = script.lastZxid;
    script.connect('c2');
    script.rearm('c2', relative, { child: ['/a'], exist: ['/a/b'], recursive: [...recursive] });
    script.event('c2', 'created', '/a/b', null);
    script.notified(read, 'children', '/a', null);
    script.read('c2', 'get', '/a');
    script.make('c1', '/later');
    expect(script.broken).toEqual(broken);
  });

  it.each(['exists', 'children'] as const)('W1: no event comes for the watch of %s', (op) => {
    const script = watching();
    script.read('c2', op, op === 'exists' ? '/b' : '/', { hasWatch: true });
    script.make('c1', '/b');
    script.read('c2', 'exists', '/a');
    expect(script.broken).toEqual(['W1']);
  });

  it('W1: the program is notified twice', () => {
    const script = watching();
    const read = script.read('c2', 'get', '/a', { hasWatch: true });
    const first = script.set('c1', '/a', 'x', 1);
    script.notified(read, 'changed', '/a', first.zxid);
    const second = script.set('c1', '/a', 'y', 2);
    script.notified(read, 'changed', '/a', second.zxid);
    expect(script.broken).toEqual(['W1']);
  });

  it('W1: the program is notified of a later change than the first', () => {
    const script = watching();
    const read = script.read('c2', 'get', '/a', { hasWatch: true });
    script.set('c1', '/a', 'x', 1);
    const second = script.set('c1', '/a', 'y', 2);
    script.notified(read, 'changed', '/a', second.zxid);
    expect(script.broken).toEqual(['W1']);
  });

  it('W2: events come in another order than their changes', () => {
    const script = watching();
    script.make('c1', '/b');
    script.read('c2', 'get', '/a', { hasWatch: true });
    script.read('c2', 'get', '/b', { hasWatch: true });
    const first = script.set('c1', '/a', 'x', 1);
    const second = script.set('c1', '/b', 'x', 1);
    script.event('c2', 'changed', '/b', second.zxid);
    script.event('c2', 'changed', '/a', first.zxid);
    expect(script.broken).toEqual(['W2']);
  });

  it('W4: an event is about no change', () => {
    const script = watching();
    script.read('c2', 'get', '/a', { hasWatch: true });
    const { zxid } = script.make('c1', '/b');
    script.event('c2', 'changed', '/a', zxid);
    expect(script.broken).toEqual(['W4']);
  });

  it('W4: the program is notified without a change', () => {
    const script = watching();
    const read = script.read('c2', 'get', '/a', { hasWatch: true });
    const { zxid } = script.make('c1', '/b');
    script.notified(read, 'deleted', '/a', zxid);
    expect(script.broken).toEqual(['W4']);
  });
});

describe('a watch that is set again after a reconnect', () => {
  it.each([
    ['data', 'changed'],
    ['exist', 'created'],
    ['child', 'children'],
  ] as const)('W3: a %s watch does not fire although there was a change', (kind, type) => {
    const script = watching();
    const relative = script.lastZxid;
    const path = kind === 'exist' ? '/b' : kind === 'child' ? '/' : '/a';
    script.set('c1', '/a', 'x', 1);
    script.make('c1', '/b');
    script.connect('c2');
    script.rearm('c2', relative, { [kind]: [path] });
    const fired = watching();
    script.read('c2', 'exists', '/none');
    expect(script.broken).toEqual(['W3']);

    fired.set('c1', '/a', 'x', 1);
    fired.make('c1', '/b');
    fired.connect('c2');
    fired.rearm('c2', relative, { [kind]: [path] });
    fired.event('c2', type, path, null);
    fired.read('c2', 'exists', '/none');
    expect(fired.broken).toEqual([]);
  });

  it('W3 holds where nothing has changed', () => {
    const script = watching();
    const relative = script.lastZxid;
    script.connect('c2');
    script.rearm('c2', relative, { data: ['/a'], exist: ['/none'], child: ['/'] });
    script.read('c2', 'exists', '/none');
    expect(script.broken).toEqual([]);
  });
});

describe('a watch for one change, on another connection', () => {
  it.each([
    ['get', '/a', 'changed'],
    ['exists', '/b', 'created'],
    ['children', '/', 'children'],
  ] as const)(
    'W3: the program of a %s is notified of nothing before a reply shows what has changed',
    (op, path, type) => {
      const lives = [true, false].map((isNotified) => {
        const script = watching();
        const read = script.read('c2', op, path, { hasWatch: true });
        script.set('c1', '/a', 'x', 1);
        script.make('c1', '/b');
        script.connect('c2');
        // Independent of what the client has sent to the server.
        if (isNotified) script.notified(read, type, path, null);
        script.read('c2', 'exists', '/none');
        script.nowMs += 10_000;
        script.notified(read, type, path, null);
        return script;
      });
      expect(lives[0]!.broken).toEqual(['W1']);
      expect(lives[1]!.broken).toEqual(['W3']);
    },
  );

  it('W3 asks nothing of a program that has ended, nor where a znode has come and gone again', () => {
    const script = watching();
    script.read('c2', 'get', '/a', { hasWatch: true });
    script.end('c2');
    script.set('c1', '/a', 'x', 1);
    script.connect('c2');
    script.read('c2', 'exists', '/none');
    script.connect('c3');
    script.read('c3', 'exists', '/b', { hasWatch: true });
    script.make('c1', '/b');
    script.write('c1', { op: 'delete', path: '/b', version: -1 }, deleteTxn('/b'));
    script.connect('c3');
    script.read('c3', 'exists', '/none');
    expect(script.violations).toEqual([]);
  });
});

/** A persistent watch that ends is replaced by setWatches for what else is watched there, in the middle of a connection. */
describe('a watch that is set again behind a pending request', () => {
  /** c2 asks for `/a`, sets its child watch on `/` again, and the request is answered before the server reads that. */
  function behindRequest(): { script: ClientScript; relative: number } {
    const script = watching();
    const relative = script.lastZxid;
    const waiting = script.send('c2', { op: 'exists', path: '/a', hasWatch: false, isLinearizable: false });
    script.rearm('c2', relative, { child: ['/'] });
    script.make('c1', '/b');
    script.answer(waiting);
    return { script, relative };
  }

  it('keeps its promises when its event comes behind the reply of that request', () => {
    const { script } = behindRequest();
    script.event('c2', 'children', '/', null);
    script.read('c2', 'exists', '/b');
    expect(script.violations).toEqual([]);
  });

  it('W3: the next reply comes without an event', () => {
    const { script } = behindRequest();
    script.read('c2', 'exists', '/b');
    expect(script.broken).toEqual(['W3']);
  });

  it('W3: an event that was sent before the request was answered is not its own', () => {
    const script = watching();
    const relative = script.lastZxid;
    const waiting = script.send('c2', { op: 'exists', path: '/a', hasWatch: false, isLinearizable: false });
    script.rearm('c2', relative, { child: ['/'] });
    const { zxid } = script.make('c1', '/b');
    script.event('c2', 'children', '/', zxid);
    script.answer(waiting);
    script.read('c2', 'exists', '/b');
    expect(script.broken).toEqual(['W3']);
  });
});

describe('a persistent watch', () => {
  function persistent(isRecursive: boolean): { script: ClientScript; watch: ReturnType<ClientScript['send']> } {
    const script = watching();
    const watch = script.send('c2', { op: 'watch', path: '/a', isRecursive });
    script.reply(watch, script.lastZxid, { result: { op: 'watch' } });
    return { script, watch };
  }

  it.each([false, true])('keeps its promises (recursive: %s)', (isRecursive) => {
    const { script, watch } = persistent(isRecursive);
    const changed = script.set('c1', '/a', 'x', 1);
    script.notified(watch, 'changed', '/a', changed.zxid);
    const created = script.make('c1', '/a/b');
    if (isRecursive) script.notified(watch, 'created', '/a/b', created.zxid);
    else script.notified(watch, 'children', '/a', created.zxid);
    expect(script.violations).toEqual([]);
  });

  it.each([false, true])('W1: misses a change without a gap (recursive: %s)', (isRecursive) => {
    const { script, watch } = persistent(isRecursive);
    script.set('c1', '/a', 'x', 1);
    const second = script.set('c1', '/a', 'y', 2);
    script.notified(watch, 'changed', '/a', second.zxid);
    expect(script.broken).toEqual(['W1']);
  });

  it('notifies once of a list of children that a multi has changed twice', () => {
    const { script, watch } = persistent(false);
    const parts = [script.create('/a/b'), script.create('/a/c')];
    const zxid = script.commit({ type: OpCode.multi, txns: parts });
    script.notified(watch, 'children', '/a', zxid);
    const created = script.make('c1', '/a/d');
    script.notified(watch, 'children', '/a', created.zxid);
    expect(script.broken).toEqual([]);
  });

  it('may miss changes at a gap', () => {
    const { script, watch } = persistent(true);
    script.set('c1', '/a', 'x', 1);
    script.notified(watch, 'gap', '', null);
    const second = script.set('c1', '/a', 'y', 2);
    script.notified(watch, 'changed', '/a', second.zxid);
    expect(script.broken).toEqual([]);
  });

  it('may tell a change again behind a gap', () => {
    const { script, watch } = persistent(true);
    const { zxid } = script.set('c1', '/a', 'x', 1);
    script.notified(watch, 'changed', '/a', zxid);
    script.notified(watch, 'gap', '', null);
    script.notified(watch, 'changed', '/a', zxid);
    expect(script.broken).toEqual([]);
  });

  it('W1: never notifies of the last change', () => {
    const { script } = persistent(true);
    script.set('c1', '/a', 'x', 1);
    script.read('c2', 'get', '/a');
    script.nowMs += 60_000;
    script.sync('c1');
    expect(script.broken).toEqual(['W1']);
  });

  it('need not report what happens after its program removed it', () => {
    const { script, watch } = persistent(true);
    script.history.unwatch(watch);
    script.set('c1', '/a', 'x', 1);
    script.read('c2', 'get', '/a');
    script.nowMs += 60_000;
    script.sync('c1');
    expect(script.broken).toEqual([]);
  });

  it('W2: notifies of a change twice', () => {
    const { script, watch } = persistent(true);
    const { zxid } = script.set('c1', '/a', 'x', 1);
    script.notified(watch, 'changed', '/a', zxid);
    script.notified(watch, 'changed', '/a', zxid);
    expect(script.broken).toEqual(['W2']);
  });

  it('W4: notifies of what is not below it', () => {
    const { script, watch } = persistent(true);
    const { zxid } = script.make('c1', '/b');
    script.notified(watch, 'created', '/b', zxid);
    expect(script.broken).toEqual(['W4']);
    expect(zxid).toBeGreaterThan(makeZxid(1, 0));
  });
});
