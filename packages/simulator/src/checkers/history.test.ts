import { makeZxid, OpCode, type Txn } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { OperationError } from '../history.ts';
import { checkHistory } from './history.ts';
import { ClientScript, createRequest, deleteTxn, ERROR_TXN, setTxn } from './testing/client-script.ts';

function withClient(): ClientScript {
  const script = new ClientScript();
  script.connect('c1');
  return script;
}

function brokenWithLocalSessions({ history, committed }: ClientScript): string[] {
  return checkHistory(history, committed, { hasLocalSessions: true }).map(({ invariant }) => invariant);
}

const NOT_APPLIED: OperationError = { code: 'NONODE', outcome: 'not-applied', failedPart: null };
const UNKNOWN: OperationError = { code: 'CONNECTIONLOSS', outcome: 'unknown', failedPart: null };

describe('a history without violations', () => {
  it('is accepted', () => {
    const script = withClient();
    script.connect('c2');
    script.make('c1', '/a', { data: 'x' });
    script.read('c2', 'get', '/a');
    script.set('c2', '/a', 'y', 1);
    script.make('c1', '/a/b');
    script.read('c1', 'children', '/a');
    script.read('c2', 'exists', '/none');
    script.write('c1', { op: 'delete', path: '/a/b', version: -1 }, deleteTxn('/a/b'));
    script.sync('c2');
    script.read('c2', 'children', '/', { isLinearizable: true });
    expect(script.violations).toEqual([]);
  });
});

describe('C1: the order of one client', () => {
  it('a reply comes before that of an earlier request', () => {
    const script = withClient();
    const [first, second] = [1, 2].map(() => script.send('c1', { op: 'sync', path: '/' }));
    script.answer(second!);
    script.answer(first!);
    expect(script.broken).toEqual(['C1']);
  });

  it('a read is resent on the next connection behind later requests, and not behind an earlier write', () => {
    const script = withClient();
    const write = script.send('c1', createRequest('/a'));
    const read = { op: 'exists', path: '/b', hasWatch: false, isLinearizable: false } as const;
    const [first, second] = [script.send('c1', read), script.send('c1', read)];
    script.history.fail(write, UNKNOWN);
    script.connect('c1');
    for (const each of [first, second]) script.sendAgain(each);
    for (const each of [first, second]) script.answer(each);
    expect(script.broken).toEqual([]);
    const third = script.send('c1', read);
    script.connect('c1');
    const later = script.send('c1', { op: 'sync', path: '/' });
    script.sendAgain(third);
    script.answer(later);
    script.answer(third);
    expect(script.violations).toMatchObject([{ invariant: 'C1' }]);
  });

  it('writes are committed in another order than they were sent', () => {
    const script = withClient();
    const first = script.send('c1', createRequest('/a'));
    const second = script.send('c1', createRequest('/b'));
    script.commit(script.create('/b'), second.sessionId, second.xid);
    script.commit(script.create('/a'), first.sessionId, first.xid);
    expect(script.broken).toEqual(['C1']);
  });

  it('S5: a write of an old connection is committed behind one of the new connection', () => {
    const script = withClient();
    const first = script.send('c1', createRequest('/a'));
    script.history.fail(first, UNKNOWN);
    script.connect('c1');
    script.make('c1', '/b');
    script.commit(script.create('/a'), first.sessionId, first.xid);
    expect(script.broken).toEqual(['S5']);
  });

  it('S5: a write of an old session is committed behind one of the next, unless sessions may be local', () => {
    const script = withClient();
    const first = script.send('c1', createRequest('/a'));
    script.history.fail(first, UNKNOWN);
    script.connect('c1', { sessionId: 0x200n });
    script.make('c1', '/b');
    script.commit(script.create('/a'), first.sessionId, first.xid);
    expect(script.broken).toEqual(['S5']);
    expect(brokenWithLocalSessions(script)).toEqual([]);
    const [second, third] = ['/c', '/d'].map((path) => script.send('c1', createRequest(path)));
    script.commit(script.create('/d'), third!.sessionId, third!.xid);
    script.commit(script.create('/c'), second!.sessionId, second!.xid);
    expect(brokenWithLocalSessions(script)).toEqual(['C1']);
  });

  it('S5 allows a request in doubt to be repeated with the same xid on another connection', () => {
    const script = withClient();
    const first = script.send('c1', createRequest('/a'));
    script.history.fail(first, UNKNOWN);
    script.connect('c1');
    const last = script.send('c1', createRequest('/a'));
    script.history.fail(last, UNKNOWN);
    expect(last.xid).toBe(first.xid);
    script.connect('c1');
    script.make('c1', '/b');
    script.connect('c1');
    const again = script.send('c1', createRequest('/a'));
    script.history.fail(again, UNKNOWN);
    script.commit(script.create('/a'), again.sessionId, again.xid);
    expect(script.broken).toEqual([]);
  });
});

describe('C2: zxids that a client sees', () => {
  it('go back from one server to the next', () => {
    const script = withClient();
    script.make('c1', '/a');
    script.connect('c1');
    script.read('c1', 'exists', '/a', { zxid: makeZxid(1, 1) });
    expect(script.broken).toEqual(['C2']);
  });
});

describe('C3: what reads show', () => {
  it('other data than at the zxid of the reply', () => {
    const script = withClient();
    script.make('c1', '/a', { data: 'x' });
    script.read('c1', 'get', '/a', { result: { op: 'get', data: 'y', stat: script.stat('/a') } });
    expect(script.broken).toEqual(['C3']);
  });

  it('a stat of before', () => {
    const script = withClient();
    script.make('c1', '/a', { data: 'x' });
    const stat = script.stat('/a');
    script.set('c1', '/a', 'y', 1);
    script.read('c1', 'exists', '/a', { result: { op: 'exists', stat } });
    expect(script.broken).toEqual(['C3']);
  });

  it('a znode that is not there', () => {
    const script = withClient();
    script.make('c1', '/a');
    const stat = script.stat('/a');
    script.write('c1', { op: 'delete', path: '/a', version: -1 }, deleteTxn('/a'));
    script.read('c1', 'exists', '/a', { result: { op: 'exists', stat } });
    expect(script.broken).toEqual(['C3']);
  });

  it('nothing, where a znode is', () => {
    const script = withClient();
    script.make('c1', '/a');
    script.read('c1', 'get', '/a', { error: NOT_APPLIED });
    expect(script.broken).toEqual(['C3']);
  });

  it('other children', () => {
    const script = withClient();
    script.make('c1', '/a');
    script.read('c1', 'children', '/', {
      result: { op: 'children', names: ['b', 'zookeeper'], stat: script.stat('/') },
    });
    expect(script.broken).toEqual(['C3']);
  });

  it('a zxid that was never committed', () => {
    const script = withClient();
    script.read('c1', 'exists', '/a', { zxid: makeZxid(1, 9) });
    expect(script.broken).toEqual(['C3']);
  });
});

describe('C4: what became of writes', () => {
  it('D4: an acknowledged write is not committed', () => {
    const script = withClient();
    const operation = script.send('c1', { op: 'delete', path: '/a', version: -1 });
    script.reply(operation, makeZxid(1, 7), { result: { op: 'delete' } });
    expect(script.broken).toEqual(['D4']);
  });

  it('an acknowledged write is another txn', () => {
    const script = withClient();
    script.make('c1', '/a');
    const operation = script.send('c1', { op: 'delete', path: '/a', version: -1 });
    script.reply(operation, script.lastZxid, { result: { op: 'delete' } });
    expect(script.broken).toEqual(['C4']);
  });

  it('a write takes effect twice', () => {
    const script = withClient();
    script.make('c1', '/a');
    const operation = script.set('c1', '/a', 'x', 1);
    script.commit(setTxn('/a', 'x', 2), operation.sessionId, operation.xid);
    expect(script.broken).toEqual(['C4']);
  });

  it('a write that has certainly failed takes effect', () => {
    const script = withClient();
    script.write('c1', createRequest('/a'), script.create('/a'), { error: NOT_APPLIED });
    expect(script.broken).toEqual(['C4']);
  });

  it('a write in doubt may take effect, once', () => {
    const script = withClient();
    const operation = script.send('c1', createRequest('/a'));
    script.commit(script.create('/a'), operation.sessionId, operation.xid);
    script.history.fail(operation, UNKNOWN);
    expect(script.broken).toEqual([]);
  });

  it('a txn is committed that no client requested', () => {
    const script = withClient();
    script.commit(script.create('/a'), 0x100n, 5);
    expect(script.broken).toEqual(['C4']);
  });

  it('a write succeeds where it had to be refused', () => {
    const script = withClient();
    script.make('c1', '/a');
    const request = { op: 'set', path: '/a', data: 'x', version: 0 } as const;
    script.write('c1', request, setTxn('/a', 'x', 1));
    expect(script.broken).toEqual([]);
    script.write('c1', { op: 'delete', path: '/a', version: 0 }, deleteTxn('/a'));
    expect(script.broken).toEqual(['C4']);
  });

  it('a write is refused that had to succeed', () => {
    const script = withClient();
    script.make('c1', '/a');
    script.write('c1', { op: 'delete', path: '/a', version: -1 }, ERROR_TXN, { error: NOT_APPLIED });
    expect(script.broken).toEqual(['C4']);
  });

  it('a write comes before one that was acknowledged when it began', () => {
    const script = withClient();
    script.connect('c2');
    const early = script.commit(script.create('/b'), 0x101n, 1);
    script.make('c1', '/a');
    const operation = script.send('c2', createRequest('/b'));
    script.reply(operation, early, { result: { op: 'create', path: '/b', stat: script.stat('/b', early) } });
    expect(script.broken).toEqual(['C4']);
  });

  it('W6: a reply carries the wrong stat', () => {
    const script = withClient();
    const stat = () => script.stat('/a', script.lastZxid, { version: 7 });
    const operation = script.send('c1', createRequest('/a'));
    const zxid = script.commit(script.create('/a'), operation.sessionId, operation.xid);
    script.reply(operation, zxid, { result: { op: 'create', path: '/a', stat: stat() } });
    expect(script.broken).toEqual(['W6']);
  });
});

describe('C5: a sync', () => {
  it.each(['sync', 'read'] as const)('is behind what was acknowledged before a %s began', (kind) => {
    const script = withClient();
    script.connect('c2');
    const before = script.lastZxid;
    script.make('c1', '/a');
    if (kind === 'sync') script.sync('c2', before);
    else script.read('c2', 'exists', '/a', { zxid: before, isLinearizable: true });
    expect(script.broken).toEqual(['C5']);
  });

  it('may be behind what was acknowledged while it was under way', () => {
    const script = withClient();
    script.connect('c2');
    const before = script.lastZxid;
    const operation = script.send('c2', { op: 'sync', path: '/' });
    script.make('c1', '/a');
    script.reply(operation, before, { result: { op: 'sync' } });
    script.read('c2', 'exists', '/a', { zxid: before });
    expect(script.broken).toEqual([]);
  });
});

describe('a server without a leader', () => {
  /** Client c2 is at one whose log ends with `ends`. */
  function reading(ends: 'committed' | 'other'): { readonly script: ClientScript; readonly zxid: number } {
    const script = withClient();
    script.make('c1', '/a', { data: 'x' });
    const zxid = ends === 'committed' ? script.lastZxid : makeZxid(1, 9999);
    script.set('c1', '/a', 'y', 1);
    script.connect('c2', { isReadOnly: true });
    return { script, zxid };
  }

  it('may show what is old', () => {
    const { script, zxid } = reading('committed');
    script.read('c2', 'get', '/a', { zxid });
    expect(script.violations).toEqual([]);
  });

  it('C3: shows nothing but what its log has, where that is committed', () => {
    const { script, zxid } = reading('committed');
    script.read('c2', 'exists', '/none', { zxid, result: { op: 'exists', stat: script.stat('/a', zxid) } });
    expect(script.broken).toEqual(['C3']);
  });

  it('may show what is never committed, and another server shows less then', () => {
    const { script, zxid } = reading('other');
    const stat = script.stat('/a', script.lastZxid, { version: 7 });
    script.read('c2', 'exists', '/a', { zxid, result: { op: 'exists', stat } });
    script.connect('c2');
    script.sync('c1');
    script.read('c2', 'get', '/a');
    expect(script.violations).toEqual([]);
  });

  it('C5: answers no sync', () => {
    const { script, zxid } = reading('committed');
    script.sync('c2', zxid);
    expect(script.broken).toEqual(['C5']);
  });
});

describe('C6: a multi', () => {
  const request = {
    op: 'multi',
    parts: [createRequest('/a'), { op: 'delete', path: '/a', version: -1 } as const],
  } as const;

  it('that was refused has changed something', () => {
    const script = withClient();
    const txn: Txn = { type: OpCode.multi, txns: [script.create('/a'), deleteTxn('/a')] };
    script.write('c1', request, txn, { error: NOT_APPLIED });
    expect(script.broken).toEqual(['C6']);
  });

  it('is told with another name than it created', () => {
    const script = withClient();
    const txn: Txn = { type: OpCode.multi, txns: [script.create('/a'), deleteTxn('/a')] };
    const results = [{ op: 'create', path: '/b', stat: null } as const, { op: 'delete' } as const];
    script.write('c1', request, txn, { result: { op: 'multi', results } });
    expect(script.broken).toEqual(['C6']);
  });

  it('is seen as a whole only', () => {
    const script = withClient();
    const parts = [createRequest('/a'), createRequest('/b')];
    const txn: Txn = { type: OpCode.multi, txns: [script.create('/a'), script.create('/b')] };
    const results = ['/a', '/b'].map((path) => ({ op: 'create', path, stat: null }) as const);
    script.write('c1', { op: 'multi', parts }, txn, { result: { op: 'multi', results } });
    expect(script.broken).toEqual([]);
    script.read('c1', 'exists', '/b', { result: { op: 'exists', stat: null } });
    expect(script.broken).toEqual(['C3']);
  });
});

describe('W5: sequential names', () => {
  function sequential(script: ClientScript, number: number, parentCversion: number): void {
    const path = `/n-${String(number).padStart(10, '0')}`;
    script.write('c1', createRequest('/n-', '', false, true), script.create(path, { parentCversion }));
  }

  it('grow', () => {
    const script = withClient();
    sequential(script, 0, 1);
    sequential(script, 1, 2);
    expect(script.broken).toEqual([]);
  });

  it('do not grow', () => {
    const script = withClient();
    sequential(script, 5, 1);
    sequential(script, 4, 2);
    expect(script.broken).toEqual(['W5']);
  });

  it('come from a count that leaves one out', () => {
    const script = withClient();
    sequential(script, 0, 1);
    sequential(script, 2, 3);
    expect(script.broken).toEqual(['W5']);
  });
});
